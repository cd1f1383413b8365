package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// AdoptFleet makes this fleet the owner of inventories that another fleet of the same name has
// on its clusters. The subject of the order is the other fleet's ID, or at least its first
// eight digits; [ledger.NoID] stands for inventories without an ID. Without a cluster, it
// adopts the inventories of all clusters that the other fleet holds.
func (r *Reconciler) AdoptFleet(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(now time.Time) (string, error) { return r.adoptFleet(o, now) })
}

func (r *Reconciler) adoptFleet(o Order, now time.Time) (string, error) {
	if r.inForce == nil {
		return "", refuse("no commit is in force yet: try again in a moment")
	}
	if o.Cluster != "" {
		if err := r.knowsCluster(o.Cluster); err != nil {
			return "", err
		}
	}
	by := strings.TrimSpace(o.By)
	if !plainText(by) || by == "" {
		return "", refuse("the user name must be one line of text of at most %d bytes", longestText)
	}
	var all []ledger.Adoption
	var others []string
	for _, name := range r.ledger.Clusters() {
		for _, owner := range r.ledger.Cluster(name).Rivals {
			switch {
			case o.Cluster != "" && o.Cluster != name:
			case matchesID(owner, o.Subject):
				all = append(all, ledger.Adoption{Cluster: name, ID: owner.ID, By: by, At: now})
			default:
				others = append(others, owner.ShortID()+" on "+name)
			}
		}
	}
	switch {
	case len(all) == 0 && len(others) == 0:
		return "", refuse("no other fleet holds %s", cmp.Or(o.Cluster, "any cluster"))
	case len(all) == 0:
		return "", refuse("%q is no fleet that holds %s; there is: %s", o.Subject, cmp.Or(o.Cluster, "a cluster"), strings.Join(others, ", "))
	case slices.ContainsFunc(all, func(a ledger.Adoption) bool { return a.ID != all[0].ID }):
		return "", refuse("more than one fleet's ID begins with %q: write all of it", o.Subject)
	}
	return r.adopt(all), nil
}

// adopt records adoptions, all from one fleet, and returns the answer.
func (r *Reconciler) adopt(all []ledger.Adoption) string {
	var names []string
	id := ledger.Owner{ID: all[0].ID}.ShortID()
	for _, a := range all {
		names = append(names, a.Cluster)
		r.ledger.Adopt(a)
		r.userActions = append(r.userActions, userEntry(history.Adopted, ledger.Subject{Cluster: a.Cluster}, a.By, "what fleet "+id+" has there"))
	}
	r.cfg.Log.Info("fleet adopted", "id", all[0].ID, "clusters", strings.Join(names, ","), "by", all[0].By)
	return fmt.Sprintf("what fleet %s has on %s belongs to this fleet now; objects that the repository does not have stay until a commit with the trailer Gitfleet-Allow-Delete allows to delete them", id, strings.Join(names, ", "))
}

// matchesID reports whether an ID given by a user is that of an owner.
func matchesID(o ledger.Owner, id string) bool {
	if o.ID == "" {
		return id == ledger.NoID
	}
	return id == o.ID || len(id) >= len(o.ShortID()) && strings.HasPrefix(o.ID, id)
}
