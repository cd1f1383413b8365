package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/window"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// deferralsOf returns a function that says what keeps new content from a cluster of a placement: a freeze of the placement or of
// the fleet, or a closed window. The content has a fingerprint and an index, its number in the history of the placement. Content that
// was available on every cluster before is not new: to return to it is a rollback, and a cluster that joins gets what the others have.
func (pl *placementPlanner) deferralsOf(p *Placement, fingerprint func() string, index int) func(*OnCluster) rollout.Deferral {
	none := func(*OnCluster) rollout.Deferral { return rollout.Deferral{} }
	if len(pl.planner.memo.suspensions.Freezes) == 0 && pl.current.windows == "" || p.wasProven(fingerprint()) {
		return none
	}
	for _, s := range []ledger.Subject{{Placement: p.Key, Effect: ledger.Freezes}, {Effect: ledger.Freezes}} {
		if f, frozen := pl.planner.memo.suspensions.Freezes[s]; frozen && !(f.Overrun && p.begun(index, anyCluster)) {
			deferral := rollout.Deferral{Why: "new content waits: " + s.String() + " is " + f.String(), Until: f.Until}
			return func(*OnCluster) rollout.Deferral { return deferral }
		}
	}
	if pl.current.windows == "" {
		return none
	}
	return func(c *OnCluster) rollout.Deferral { return windowDeferral(pl, p, c, index) }
}

// windowDeferral returns whether the windows for a placement on a cluster keep new content from it. If they are open, the deferral
// has no reason, and the time at which they close.
func windowDeferral(pl *placementPlanner, p *Placement, c *OnCluster, index int) rollout.Deferral {
	isOn := func(w *window.Window) func(string) bool {
		return func(name string) bool {
			cluster, _ := pl.planner.memo.members.Cluster(name)
			return w.IsOn(cluster.Labels)
		}
	}
	var set window.Set
	for _, w := range pl.planner.InForce.Windows {
		if w.Compiled.IsFor(p.Spec.Labels) && isOn(w.Compiled)(c.Binding.Cluster) {
			set = append(set, w.Compiled)
		}
	}
	at := set.At(pl.planner.Now)
	deferral := rollout.Deferral{Until: at.Until}
	if !at.Open && !(at.By.Finishes() && p.begun(index, isOn(at.By))) {
		deferral.Why, deferral.MaxAge = "new content waits: "+at.String(), at.By.MaxAge()
	}
	return deferral
}

// recordDeferrals records which clusters wait for the end of a freeze or for a window, and when that has ended, and warns of those
// that wait too long.
func recordDeferrals(pl *placementPlanner, p *Placement, targets []rollout.Target) {
	var overdue []string
	for i := range targets {
		deferral, c := targets[i].Deferral, p.near(targets[i].Cluster, i)
		if c.Latest().Hash == "" {
			continue // it is not known whether it has newer content
		}
		deferred := deferral.Why != "" && p.Lag(c).Commits > 0
		if deferral.Until.After(pl.planner.Now) && p.Lag(c).Commits > 0 { // the wait counts as lag, or not any more, from then on
			p.Rollout.Wake = api.Earliest(p.Rollout.Wake, deferral.Until)
		}
		if b := c.Binding; b.Deferred && !deferred {
			b.Change(func(in *placement.Circumstances) { in.FreeAt = pl.planner.Now })
		}
		if c.Binding.Deferred = deferred; !deferred {
			continue
		}
		if c.Waits != deferral.Why {
			continue
		}
		c.Deferred = true
		c.change(func(s *Circumstances) { s.deferredUntil = deferral.Until })
		if since := p.Lag(c).Since; deferral.MaxAge > 0 && !since.IsZero() {
			due := since.Add(deferral.MaxAge)
			if c.Overdue = !due.After(pl.planner.Now); c.Overdue {
				overdue = append(overdue, c.Binding.Cluster)
			} else {
				p.Rollout.Wake = api.Earliest(p.Rollout.Wake, due)
			}
		}
	}
	if n := len(overdue); n > 0 {
		p.warn("", fmt.Sprintf("new content has waited longer than the maxAge of its window on %d cluster(s): %s", n, strings.Join(overdue[:min(n, 10)], ", ")))
	}
}

// windowsOf identifies the windows for a placement; empty if there are none.
func (pl *planner) windowsOf(labels map[string]string) string {
	var all []string
	for _, w := range pl.InForce.Windows {
		if w.Compiled.IsFor(labels) {
			all = append(all, w.Name, w.SpecHash)
		}
	}
	return strings.Join(all, " ")
}

// begun reports whether the rollout of the content with a number has reached one of the clusters.
func (p *Placement) begun(index int, isOne func(cluster string) bool) bool {
	return slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool {
		return c.Binding.HasRevision() && !c.Binding.Removing && int(c.Binding.Index) == index && isOne(c.Binding.Cluster)
	})
}

func anyCluster(string) bool { return true }
