package reconciler

import (
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

var errNoCommit = refuse("no commit is in force yet: try again in a moment")

// subjectOf returns the subject of an order. For an unknown name the error is a *status.UnknownError.
func (r *orderRun) subjectOf(o Order) (ledger.Subject, error) {
	if r.inForce == nil {
		return ledger.Subject{}, errNoCommit
	}
	if err := r.knowsCluster(o.Cluster); o.Cluster != "" && err != nil {
		return ledger.Subject{}, err
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

func (r *orderRun) declares(cluster string) bool {
	return r.inForce != nil && slices.ContainsFunc(r.inForce.Clusters, func(c *hub.Cluster) bool { return c.Name == cluster })
}

// knowsCluster returns an error unless a cluster is declared or in the ledger.
func (r *orderRun) knowsCluster(name string) error {
	names := r.ledger.Clusters()
	for _, c := range r.inForce.Clusters {
		names = append(names, c.Name)
	}
	return contains("cluster", name, names)
}

// contains returns a *status.UnknownError if a name is not among those that exist.
func contains(what, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	slices.Sort(names)
	return &status.UnknownError{What: what, Name: name, Exist: slices.Compact(names)}
}

func (r *orderRun) placementSubject(o Order) (ledger.Subject, error) {
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
	return ledger.Subject{Placement: key, Cluster: o.Cluster}, contains("placement", key.String(), names)
}

// object finds an object among the works of the clusters.
func (r *orderRun) object(object api.ObjectName, o Order) (api.ID, error) {
	ids := map[api.ID]bool{}
	for cluster, works := range r.works {
		if o.Cluster != "" && cluster != o.Cluster {
			continue
		}
		for _, w := range works {
			for _, m := range w.Manifests {
				ids[m.ID] = true
			}
		}
	}
	var found []api.ID
	var others []string
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
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
	return api.ID{}, refuse("%s may be %s or %s: write one of these", o.Subject, found[0].ExactName(), found[1].ExactName())
}
