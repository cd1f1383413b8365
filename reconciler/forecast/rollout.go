package forecast

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Rollout describes the rollout of a placement to its new content.
type Rollout struct {
	Placement string
	// Clusters is the number of clusters that change, and First are those that change at once, in order.
	Clusters int
	First    []string
	// MaxUnavailable and MaxSurge are how many clusters may be unavailable and added at a time.
	MaxUnavailable, MaxSurge int
	// External says that all clusters wait, because of the strategy External.
	External bool
	// Stages are the stages of the update run that the content gets; nil if it gets none.
	Stages []placement.RunStage
	// Waiting are the clusters that wait for the end of a freeze or the opening of a window, by what they wait for.
	Waiting []WaitingClusters
}

// WaitingClusters wait for the same.
type WaitingClusters struct {
	Why      string
	Clusters []string
}

// Calendar says which clusters change after which others, tasks and approvals, and when windows open; empty if all change
// within the budget.
func (r Rollout) Calendar() []string {
	var out []string
	for _, s := range r.Stages {
		if len(s.Clusters) == 0 {
			continue
		}
		text := "stage " + s.Name + ": "
		if s.NeedsApproval(true) {
			text += "after an approval, "
		}
		text += FewOf(s.Clusters)
		if n := s.Concurrency(len(s.Clusters)); n < len(s.Clusters) {
			text += fmt.Sprintf(", %d at a time", n)
		}
		if s.Wait() > 0 {
			text += ", then a wait of " + s.Wait().String()
		}
		for _, g := range s.Gates {
			text += ", then the gate " + g.Name + " (" + g.Spec.Text() + ")"
		}
		if s.NeedsApproval(false) {
			text += ", then an approval"
		}
		out = append(out, text)
	}
	for _, w := range r.Waiting {
		out = append(out, FewOf(w.Clusters)+": "+w.Why)
	}
	return out
}

// addWaiting adds a cluster that waits.
func (r *Rollout) addWaiting(c *plan.OnCluster) {
	at := slices.IndexFunc(r.Waiting, func(w WaitingClusters) bool { return w.Why == c.Waits })
	if at < 0 {
		at = len(r.Waiting)
		r.Waiting = append(r.Waiting, WaitingClusters{Why: c.Waits})
	}
	r.Waiting[at].Clusters = append(r.Waiting[at].Clusters, c.Binding.Cluster)
}

// Summary says how many clusters change and how many at a time, or that they wait.
func (r Rollout) Summary() string {
	clusters, wait := "clusters", "wait"
	if r.Clusters == 1 {
		clusters, wait = "cluster", "waits"
	}
	if r.External && len(r.Stages) > 0 {
		return fmt.Sprintf("%d %s, stage by stage", r.Clusters, clusters)
	}
	if r.External {
		return fmt.Sprintf("%d %s %s: the strategy is External", r.Clusters, clusters, wait)
	}
	return fmt.Sprintf("%d %s, at most %d unavailable and %d added at a time", r.Clusters, clusters, r.MaxUnavailable, r.MaxSurge)
}

// rolloutOf returns the rollout of a placement, with no clusters if none changes.
func rolloutOf(pl *plan.Placement) Rollout {
	r := Rollout{
		Placement: pl.Key.String(), External: pl.Spec.Spec.Strategy.Type == api.External,
		MaxUnavailable: pl.Rollout.Budget.MaxUnavailable, MaxSurge: pl.Rollout.Budget.MaxSurge,
	}
	for _, c := range pl.Clusters {
		if c.Entry == nil || c.Entry.Binding.Assigned.Hash != c.Latest().Hash || c.Binding.Unscheduled {
			r.Clusters++
		}
	}
	for _, c := range pl.Clusters {
		if c.Deferred {
			r.addWaiting(c)
		}
	}
	if run := pl.Rollout.Run; run != nil && run.Active() {
		r.Stages = run.Stages
	}
	for _, a := range pl.Rollout.Assign {
		if a.Changed {
			r.First = append(r.First, a.Cluster)
		}
	}
	r.First = append(r.First, pl.Rollout.Remove...)
	return r
}
