package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

const invariantHolder = "nothing is written, deleted or released for a cluster under another name than that which holds it"

// namesShare is the share of scenarios in which clusters have several names: one of so many.
const namesShare = 8

// namesStep is the kind of steps in which names change.
const namesStep = 28

// checkedUnderNames are the invariants that are checked in these scenarios. The others count clusters by
// their names.
var checkedUnderNames = map[string]bool{
	invariantHolder: true, invariantInternal: true, invariantSound: true, invariantConverges: true, invariantLoop: true, invariantPlanned: true,
}

// foreignInterval is the interval between probes of a host that another member holds.
const foreignInterval = time.Minute

// changeNames declares a cluster under a second name, swaps the clusters of two names, or renames a member.
func (w *world) changeNames(r *rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid().clone()
		name, other := pick(r, keys(d.clusters)), pick(r, clusterNames)
		was, declared := d.clusters[other]
		if name == other {
			return
		}
		c := d.clusters[name]
		c.context = d.host(name)
		said := ""
		switch n := r.IntN(4); {
		case n == 0 && declared:
			was.context, c.context = c.context, d.host(other)
			d.clusters[name], d.clusters[other] = c, was
			said = fmt.Sprintf("members %s and %s swap their clusters", name, other)
		case n == 1 && !declared:
			delete(d.clusters, name)
			d.clusters[other] = c
			said = fmt.Sprintf("member %s is now %s", name, other)
		default:
			d.clusters[other] = c
			said = fmt.Sprintf("member %s leads to the cluster of %s", other, name)
		}
		w.push(fmt.Sprintf("%s, %s is cluster %s", said, other, d.host(other)), d)
	})
}

// putContexts writes the contexts of clusters into the files of a commit.
func (d *desired) putContexts(out fstest.MapFS) {
	for name, c := range d.clusters {
		if c.context != "" {
			f := out["cluster-"+name+".yaml"]
			f.Data = []byte(strings.Replace(string(f.Data), "name: "+name+",", "name: "+name+", annotations: {"+api.ContextAnnotation+": "+c.context+"},", 1))
		}
	}
}

// host returns the name of the host that a member leads to.
func (d *desired) host(member string) string { return cmp.Or(d.clusters[member].context, member) }

// connect returns the host that a member leads to.
func (w *world) connect(c *hub.Cluster) *host {
	name := cmp.Or(c.Annotations[api.ContextAnnotation], c.Name)
	if w.hosts[name] == nil {
		w.hosts[name] = newHost(name, w.seed)
	}
	return w.hosts[name]
}

// agent returns the agent of a member; nil if there is none.
func (d *daemon) agent(member string) *agent {
	for _, a := range d.agents {
		if a.name == member && !a.ended {
			return a
		}
	}
	return nil
}

// agentsOf returns the agents of a host, one for each of its names.
func (w *world) agentsOf(h *host) (out []*agent) {
	if w.daemon == nil {
		return nil
	}
	for _, a := range w.daemon.agents {
		if a.host == h && !a.ended {
			out = append(out, a)
		}
	}
	return out
}

// hostOf returns the host of a member; nil if it has none yet.
func (w *world) hostOf(member string) *host {
	if w.daemon != nil {
		if a := w.daemon.agent(member); a != nil {
			return a.host
		}
	}
	return w.hosts[member]
}

// uid returns the UID of the Namespace kube-system.
func (h *host) uid() string { return "uid-" + h.name }

// deleteInventory deletes an inventory, and the claim with the last one.
func (h *host) deleteInventory(key api.PlacementKey) {
	if delete(h.inventories, key); len(h.inventories) == 0 {
		h.claim, h.writer = "", ""
	}
}

// claimedByMember reports whether another member of the fleet holds the host, or the fleet has not identified it. Where
// no cluster has two names, that is left out.
func (a *agent) claimedByMember() bool {
	m := &a.membership
	return a.d.w.names && m.ID != "" && (m.SameAs != "" || m.UID != a.uid() || a.claim != "" && a.claim != a.name && a.claim != m.Formerly)
}

// renameClaim writes the name of the member into a claim that has a former name of it.
func (a *agent) renameClaim() {
	if a.claim != "" && a.claim != a.name {
		a.writeClaim()
		a.reportCluster()
	}
}

// writeClaim writes the name of the member into the claim.
func (a *agent) writeClaim() {
	if a.d.w.names && a.claim != a.name {
		a.d.w.checkHolder(a, "the claim")
		a.claim = a.name
	}
}

// checkHolder is called before every write to a host. Another member may hold the host if the one under whose name
// it was last written does not lead to it any more, at the commit in force or at that of the pass.
func (w *world) checkHolder(a *agent, what string) {
	by := a.writer
	a.writer = a.name
	if by == "" || by == a.name || !w.leadsTo(w.decided.head, by, a.host) || a.passModel != nil && !w.leadsTo(a.passModel.head, by, a.host) {
		return
	}
	w.violate(invariantHolder, "%s of cluster %s is written under the name %s, and the member %s holds it", what, a.host.name, a.name, by)
}

// leadsTo reports whether a member leads to a host at a commit.
func (w *world) leadsTo(commit, member string, h *host) bool {
	c := w.source.commits[commit]
	if c == nil {
		return false
	}
	_, declared := c.clusters[member]
	return declared && c.host(member) == h.name
}
