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

// subject finds what an order speaks of. A name that nothing has is a
// *status.UnknownError.
func (r *Reconciler) subject(o Order) (ledger.Subject, error) {
	if r.head == nil {
		return ledger.Subject{}, refuse("no commit is in force yet: try again in a moment")
	}
	if o.Cluster != "" {
		if err := r.knowsCluster(o.Cluster); err != nil {
			return ledger.Subject{}, err
		}
	}
	kind, name, _ := strings.Cut(o.Subject, "/")
	switch {
	case kind == "" || name == "":
		return ledger.Subject{}, refuse("%q names nothing; write crp/NAME, rp/NAMESPACE/NAME, cluster/NAME or KIND/NAME", o.Subject)
	case isPlacement(kind):
		return r.placementSubject(o)
	case isCluster(kind):
		if o.Cluster != "" || o.Namespace != "" {
			return ledger.Subject{}, refuse("%s is a cluster: it goes without --cluster and --namespace", o.Subject)
		}
		return ledger.Subject{Cluster: name}, r.knowsCluster(name)
	}
	id, err := r.object(kind, name, o)
	return ledger.Subject{Object: id, Cluster: o.Cluster}, err
}

func isCluster(kind string) bool {
	return api.KindCalled(api.GroupKind{Group: api.ClusterGroup, Kind: "MemberCluster"}, kind) || strings.EqualFold(kind, "cluster") || strings.EqualFold(kind, "clusters")
}

func isPlacement(kind string) bool {
	_, err := api.ParsePlacement(kind + "/a")
	_, namespaced := api.ParsePlacement(kind + "/a/b")
	return err == nil || namespaced == nil
}

func (r *Reconciler) knowsCluster(name string) error {
	names := r.ledger.Clusters()
	for _, c := range r.head.Clusters {
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
	for _, p := range r.head.Placements {
		names = append(names, p.Key.String())
	}
	if !slices.Contains(names, key.String()) {
		slices.Sort(names)
		return ledger.Subject{}, &status.UnknownError{What: "placement", Name: key.String(), Exist: slices.Compact(names)}
	}
	return ledger.Subject{Placement: key, Cluster: o.Cluster}, nil
}

// object finds an object among those that clusters have been told to hold.
func (r *Reconciler) object(kind, name string, o Order) (api.ID, error) {
	var found []api.ID
	var others []string
	for _, id := range r.objects(o.Cluster) {
		switch {
		case id.Name == name && id.Namespace == o.Namespace && api.KindCalled(id.GroupKind(), kind):
			found = append(found, id)
		case api.KindCalled(id.GroupKind(), kind) || id.Name == name:
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
		wanted := kind + "/" + strings.TrimPrefix(o.Namespace+"/"+name, "/")
		return api.ID{}, &status.UnknownError{What: what, Name: wanted, Exist: others}
	}
	return api.ID{}, refuse("%s may be %s or %s: write KIND.GROUP/NAME", o.Subject, found[0], found[1])
}

// objects lists what a cluster, or any cluster, has been told to hold, by ID.
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

// suspended finds the suspension that an order means, also of something that is
// there no more.
func (r *Reconciler) suspended(o Order) (ledger.Subject, bool) {
	kind, name, _ := strings.Cut(o.Subject, "/")
	for _, s := range r.ledger.Suspensions() {
		id := s.Object
		switch key, err := api.ParsePlacement(o.Subject); {
		case id != api.ID{}:
			if s.Cluster == o.Cluster && id.Name == name && id.Namespace == o.Namespace && api.KindCalled(id.GroupKind(), kind) {
				return s.Subject, true
			}
		case err == nil:
			if s.Placement == key && s.Cluster == o.Cluster {
				return s.Subject, true
			}
		case isCluster(kind) && s.Placement == api.PlacementKey{} && s.Cluster == name && o.Cluster == "":
			return s.Subject, true
		}
	}
	return ledger.Subject{}, false
}
