package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

func (r *orderRun) adoptFleet(o Order) (string, error) {
	if r.inForce == nil {
		return "", errNoCommit
	}
	if err := r.knowsCluster(o.Cluster); o.Cluster != "" && err != nil {
		return "", err
	}
	by := strings.TrimSpace(o.By)
	if !plainText(by) || by == "" {
		return "", refuse("the user name must be one line of text of at most %d bytes", longestText)
	}
	var names, others []string
	var all []protocol.Owner
	for _, name := range r.ledger.Clusters() {
		if o.Cluster != "" && o.Cluster != name {
			continue
		}
		for _, owner := range r.ledger.Cluster(name).Rivals {
			if matchesID(owner, o.Subject) {
				names, all = append(names, name), append(all, owner)
			} else {
				others = append(others, owner.ShortID()+" on "+name)
			}
		}
	}
	switch {
	case len(all) == 0 && len(others) == 0:
		return "", refuse("no other fleet holds %s", cmp.Or(o.Cluster, "any cluster"))
	case len(all) == 0:
		return "", refuse("%q is no fleet that holds %s; there is: %s", o.Subject, cmp.Or(o.Cluster, "a cluster"), strings.Join(others, ", "))
	case slices.ContainsFunc(all, func(other protocol.Owner) bool { return other.ID != all[0].ID }):
		return "", refuse("more than one fleet's ID begins with %q: write all of it", o.Subject)
	}
	id := all[0].ShortID()
	for _, name := range names {
		r.ledger.Adopt(protocol.Adoption{Cluster: name, ID: all[0].ID, By: by, At: r.now})
		r.record(history.Adopted, ledger.Subject{Cluster: name}, by, "what fleet "+id+" has there")
	}
	return fmt.Sprintf("what fleet %s has on %s belongs to this fleet now; objects that the repository does not have stay until a commit with the trailer Gitfleet-Allow-Delete allows to delete them", id, strings.Join(names, ", ")), nil
}

func matchesID(o protocol.Owner, id string) bool {
	if o.ID == "" {
		return id == protocol.NoID
	}
	return id == o.ID || len(id) >= len(o.ShortID()) && strings.HasPrefix(o.ID, id)
}
