package reconciler

import (
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// subjectOf returns the subject of an order. For an unknown name the error is a
// *status.UnknownError.
func (r *Reconciler) subjectOf(o Order) (ledger.Subject, error) {
	if r.inForce == nil {
		return ledger.Subject{}, refuse("no commit is in force yet: try again in a moment")
	}
	if o.Cluster != "" {
		if err := r.knowsCluster(o.Cluster); err != nil {
			return ledger.Subject{}, err
		}
	}
	kind, name, _ := strings.Cut(o.Subject, "/")
	_, isPlacement := api.NamesPlacements(kind)
	switch {
	case kind == "" || name == "":
		return ledger.Subject{}, refuse("%q names nothing; write crp/NAME, rp/NAMESPACE/NAME, cluster/NAME or KIND/NAME", o.Subject)
	case isPlacement:
		return r.placementSubject(o)
	case api.NamesClusters(kind):
		if o.Cluster != "" || o.Namespace != "" {
			return ledger.Subject{}, refuse("%s is a cluster: it goes without --cluster and --namespace", o.Subject)
		}
		return ledger.Subject{Cluster: name}, r.knowsCluster(name)
	}
	object, err := api.ParseObject(o.Subject, o.Namespace)
	if err != nil {
		return ledger.Subject{}, refuse("%v", err)
	}
	id, err := r.object(object, o)
	return ledger.Subject{Object: id, Cluster: o.Cluster}, err
}

func (r *Reconciler) knowsCluster(name string) error {
	names := r.ledger.Clusters()
	for _, c := range r.inForce.Clusters {
		names = append(names, c.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	slices.Sort(names)
	return &status.UnknownError{What: "cluster", Name: name, Exist: slices.Compact(names)}
}

func (r *Reconciler) placementSubject(o Order) (ledger.Subject, error) {
	key, err := api.ParsePlacement(o.Subject)
	if err != nil {
		return ledger.Subject{}, refuse("%v", err)
	}
	if o.Namespace != "" {
		return ledger.Subject{}, refuse("%s is a placement: it goes without --namespace", o.Subject)
	}
	var names []string
	for _, known := range r.ledger.Placements() {
		names = append(names, known.String())
	}
	for _, p := range r.inForce.Placements {
		names = append(names, p.Key.String())
	}
	if !slices.Contains(names, key.String()) {
		slices.Sort(names)
		return ledger.Subject{}, &status.UnknownError{What: "placement", Name: key.String(), Exist: slices.Compact(names)}
	}
	return ledger.Subject{Placement: key, Cluster: o.Cluster}, nil
}

// object finds an object among the works of the clusters.
func (r *Reconciler) object(object api.ObjectName, o Order) (api.ID, error) {
	var found []api.ID
	var others []string
	for _, id := range r.objects(o.Cluster) {
		switch {
		case object.Means(id):
			found = append(found, id)
		case api.KindCalled(id.GroupKind(), object.Kind) || id.Name == object.Name:
			others = append(others, id.String())
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		what := "object"
		if o.Cluster != "" {
			what = "object on cluster " + o.Cluster + ","
		}
		return api.ID{}, &status.UnknownError{What: what, Name: object.String(), Exist: others}
	}
	return api.ID{}, refuse("%s may be %s or %s: write KIND.GROUP/NAME", o.Subject, found[0], found[1])
}

// objects lists the objects in the works of a cluster, or of all clusters, by ID.
func (r *Reconciler) objects(cluster string) []api.ID {
	ids, looked := map[api.ID]bool{}, map[**work.Manifest]bool{}
	for name, works := range r.works {
		if cluster != "" && name != cluster {
			continue
		}
		for _, w := range works {
			if len(w.Manifests) == 0 || looked[&w.Manifests[0]] {
				continue // clusters share most of their content
			}
			looked[&w.Manifests[0]] = true
			for _, m := range w.Manifests {
				ids[m.ID] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(ids), api.ID.Compare)
}

// suspended finds the suspension that an order refers to, even if its subject no longer exists.
func (r *Reconciler) suspended(o Order) (ledger.Subject, bool) {
	object, _ := api.ParseObject(o.Subject, o.Namespace)
	for _, s := range r.ledger.Suspensions() {
		id := s.Object
		switch key, err := api.ParsePlacement(o.Subject); {
		case id != api.ID{}:
			if s.Cluster == o.Cluster && object.Means(id) {
				return s.Subject, true
			}
		case err == nil:
			if s.Placement == key && s.Cluster == o.Cluster {
				return s.Subject, true
			}
		case api.NamesClusters(object.Kind) && s.Placement == api.PlacementKey{} && s.Cluster == object.Name && o.Cluster == "":
			return s.Subject, true
		}
	}
	return ledger.Subject{}, false
}
