package reconciler

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A member is renamed by a commit that removes one MemberCluster and adds another one whose kubeconfig leads to the same
// cluster. That must be neither a departure, which would release everything on the cluster, nor the arrival of an empty
// cluster, so that placements would choose clusters anew. The UID of the cluster shows it, once the new member has
// answered.

// identifyTimeout is the longest time for which planning waits until the members that a commit adds have answered, if it
// also removes members: one of them may have been renamed.
const identifyTimeout = 10 * time.Second

// renameGrace is the longest time for which the objects on a removed member are kept while a new member has not answered,
// which may be the same cluster.
const renameGrace = time.Minute

// resolveRenames moves what the ledger has of a removed member to the member that is the same cluster. It returns nil, or what is
// dispatched if it is too early to plan: a new member, whose agent is started meanwhile, may turn out to be a removed one, or the
// agent of one has not ended yet. inForceFor is how long the commit has been in force.
func (a *agents) resolveRenames(inForce *hub.Snapshot, inForceFor time.Duration, l *ledger.Ledger) *plan.Plan {
	declared, unknown := make(map[string]bool, len(inForce.Clusters)), false
	for _, c := range inForce.Clusters {
		declared[c.Name] = true
		unknown = unknown || l.Cluster(c.Name) == nil
	}
	var removed []string
	for name := range l.ClusterNames() {
		if !declared[name] && l.Cluster(name).UID != "" {
			removed = append(removed, name)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	slices.Sort(removed)
	resolved := true
	waiting := plan.Pending(inForce)
	for _, name := range removed {
		switch to := newNameOf(name, inForce, l); {
		case a.isLeaving(name):
			waiting.Left = append(waiting.Left, name)
		case to != "":
			resolved = a.rename(l, name, to) && resolved
		case unknown && inForceFor < identifyTimeout:
			resolved = false
		}
	}
	if resolved {
		return nil
	}
	return waiting
}

// newNameOf returns the declared member that is the same cluster as one that is not declared any more, and has
// nothing yet; empty if there is none.
func newNameOf(cluster string, inForce *hub.Snapshot, l *ledger.Ledger) string {
	for _, c := range inForce.Clusters {
		if l.SameAs(c.Name) == cluster && !l.HasBinding(c.Name) {
			return c.Name
		}
	}
	return ""
}

// rename records that a member was renamed, once its agent has ended. It returns false if the agent has not.
func (a *agents) rename(l *ledger.Ledger, from, to string) (ended bool) {
	if m := a.members[from]; m != nil {
		a.stop(from, m)
		a.running.Go(func() {
			<-m.done
			a.wake()
		})
	}
	if done := a.ending[from]; done != nil {
		select {
		case <-done:
		default:
			return false
		}
	}
	l.RenameCluster(from, to)
	publish(a.cfg, occurrence.Occurrence{Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: from, Message: "it was renamed to " + to}, RenamedTo: to})
	return true
}

// mayBeRenamed reports whether a member that was removed may be the same cluster as one that has not answered yet, and
// there is time to wait for that.
func (a *agents) mayBeRenamed(name string, inForce *hub.Snapshot, l *ledger.Ledger, now time.Time) bool {
	since, known := a.removedSince[name]
	if !known {
		since = now
		a.removedSince[name] = now
	}
	if seen := l.Cluster(name); inForce == nil || seen == nil || seen.UID == "" || now.Sub(since) >= renameGrace {
		return false
	}
	for _, c := range inForce.Clusters {
		if seen := l.Cluster(c.Name); seen == nil || seen.UID == "" {
			return true
		}
	}
	return false
}
