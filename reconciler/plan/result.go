package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// A Plan is the result of Resolve. It is immutable.
type Plan struct {
	// Placements are the placements of the commit in force and those being removed, by key.
	Placements sharedlist.List[*Placement]
	// Members are the declared member clusters, by name.
	Members []*hub.Cluster
	// Clusters are the same clusters in the form that the scheduler uses, in the same order.
	Clusters []placement.Cluster
	// Works are the works of each cluster, by placement; nil if nothing has been planned yet.
	Works map[string][]*work.Work
	// Commits are the commits besides the one in force whose content clusters are assigned to.
	Commits map[string]bool
	// Warnings are the warnings that belong to no placement: overrides that select nothing.
	Warnings problem.List
	// Left are the clusters in the ledger that are no longer members.
	Left []string
	// Renames are the renamed placements, by the earlier key.
	Renames []ledger.Rename
	// Wake is the next time at which the plan could change without new input; zero means never.
	Wake time.Time
	// at is when the plan was made.
	at time.Time
}

// Placement returns the plan for a placement; nil if there is none.
func (p *Plan) Placement(key api.PlacementKey) *Placement {
	found, _ := p.Placements.Search(func(pl *Placement) int { return pl.Key.Compare(key) })
	return found
}

// placementNear is like Placement and looks at guess first.
func (p *Plan) placementNear(key api.PlacementKey, guess int) *Placement {
	if guess < p.Placements.Len() && p.Placements.At(guess).Key == key {
		return p.Placements.At(guess)
	}
	return p.Placement(key)
}

// A Placement is the plan for one placement.
type Placement struct {
	Key api.PlacementKey
	// Spec is nil if the placement is no longer in the commit in force and is being removed.
	Spec      *hub.Placement
	Selection placement.Selection
	// Request is the scheduler's input; nil if the scheduler was not called. Schedule is its result. Neither has bindings
	// if those of Clusters are the same for the scheduler; SchedulerInput has them.
	Request  *placement.Request
	Schedule placement.Outcome
	// Rollout is the step of the rollout. Its assignments are only those that change a revision; Assigned is the number of
	// clusters that have one.
	Rollout  rollout.Plan
	Assigned int
	// Unanswered is how many clusters have not answered since the ledger was lost. It is set if fewer clusters than
	// wanted are selected because those may hold the placement.
	Unanswered int
	// Absent are the clusters that would be chosen if they could be used, sorted by name. NoMembers says that the
	// commit declares no member clusters at all.
	Absent    []Absence
	NoMembers bool
	// Clusters are the clusters that the placement holds, by name.
	Clusters []*OnCluster
	// Runs are the declared staged update runs, with the name of the automatic one.
	Runs []*hub.StagedRun
	// RunPending is why one that has appeared is not initialised yet; empty if all are.
	RunPending string
	// RunUnknown is why nothing can be decided about the run in force; empty if it can.
	RunUnknown string
	// FailedContent is set if the content in force has failed in a run, and was rolled back.
	FailedContent *FailedContent
	// Warnings are problems that do not keep the placement from being planned.
	Warnings problem.List
	// Pending says that nothing is decided yet.
	Pending bool
	// Unclear is the reason why it is uncertain whether the placement was renamed; empty if it is certain. Meanwhile
	// the placement keeps its objects.
	Unclear string
	// InternalError says that planning the placement has panicked, and Stack where. The placement keeps what it holds.
	InternalError, Stack string

	// inClusters says that Request and Schedule have no bindings.
	inClusters bool
	// evicting are the clusters that it is being evicted from, by name.
	evicting []string

	// Record is the placement's new record in the ledger; RecordChanged says that it differs.
	Record        ledger.Placement
	RecordChanged bool
	// Changed are the positions of the clusters whose bindings are new or different, Deviating the clusters whose
	// deviation has changed, and Unbind those whose bindings are deleted. Forget is set if the whole record is deleted.
	Changed   []int
	Deviating []*OnCluster
	Unbind    []string
	Forget    bool
}

// An Absence is an absent cluster of a placement, with whether it becomes usable by itself.
type Absence struct {
	placement.Absence
	Usability fulfilment.Usability
}

// A FailedContent is the content of the commit in force, which has failed in a run, and was rolled back.
type FailedContent struct {
	// Run is the run in which it failed, and Commit the newest commit that has brought it. Back is the last run that has finished.
	Run, Back *placement.Run
	Commit    string
}

// On returns the plan for one cluster of the placement; nil if the placement is nil or does not hold it.
func (p *Placement) On(cluster string) *OnCluster { return p.near(cluster, 0) }

// near is like On and looks at guess first.
func (p *Placement) near(cluster string, guess int) *OnCluster {
	if p == nil {
		return nil
	}
	if i := p.Position(cluster, guess); i >= 0 {
		return p.Clusters[i]
	}
	return nil
}

// Position returns the index of a cluster in Clusters, which is looked for at guess first; -1 if the placement does not
// hold it.
func (p *Placement) Position(cluster string, guess int) int {
	if guess < len(p.Clusters) && p.Clusters[guess].Binding.Cluster == cluster {
		return guess
	}
	i, found := slices.BinarySearchFunc(p.Clusters, cluster, func(c *OnCluster, name string) int {
		return strings.Compare(c.Binding.Cluster, name)
	})
	if !found {
		return -1
	}
	return i
}

// hasCluster reports whether the placement has a cluster on which it stays.
func (p *Placement) hasCluster() bool {
	return slices.ContainsFunc(p.Clusters, selected)
}

// registered reports whether a cluster is a member of the fleet. If the placement was not scheduled, it is true for all
// clusters.
func (p *Placement) registered(cluster string) bool {
	return p.Request == nil || slices.ContainsFunc(p.Request.Clusters, func(c placement.Cluster) bool { return c.Name == cluster })
}

func (p *Placement) warn(field string, messages ...string) {
	for _, m := range messages {
		p.Warnings = append(p.Warnings, problem.Problem{Origin: p.Spec.Lines.At(p.Spec.Origin, field), Field: field, Severity: problem.Warning, Message: m})
	}
}

// SchedulerInput returns Request with its bindings, which it may lack; nil if the scheduler was not called.
func (p *Placement) SchedulerInput() *placement.Request {
	if !p.inClusters {
		return p.Request
	}
	in := *p.Request
	in.Bindings = p.bindings()
	return &in
}

// dropBindings drops the bindings of the scheduler's input and result if those of the planned clusters are the same for the
// scheduler, as they are for nearly all placements, and copies them out of the memory of the planner otherwise. It is called
// when the placement is planned.
func (p *Placement) dropBindings() {
	if slices.EqualFunc(p.Request.Bindings, p.Schedule.Bindings, sameChoice) && p.hasInClusters(p.Schedule.Bindings) {
		p.inClusters, p.Request.Bindings, p.Schedule.Bindings = true, nil, nil
		return
	}
	p.Request.Bindings, p.Schedule.Bindings = slices.Clone(p.Request.Bindings), slices.Clone(p.Schedule.Bindings)
}

// bindings returns the bindings that the scheduler has returned.
func (p *Placement) bindings() []placement.Binding {
	if !p.inClusters {
		return p.Schedule.Bindings
	}
	out := make([]placement.Binding, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		if !c.Binding.Removing {
			out = append(out, *c.Binding)
		}
	}
	return out
}

// hasChosen reports whether the scheduler has returned certain bindings, as far as they matter to it.
func (p *Placement) hasChosen(bs []placement.Binding) bool {
	if p.inClusters {
		return p.hasInClusters(bs)
	}
	return slices.EqualFunc(p.Schedule.Bindings, bs, sameChoice)
}

// hasInClusters reports whether certain bindings are those of Clusters, without those that are being removed, as far as they
// matter to the scheduler.
func (p *Placement) hasInClusters(bs []placement.Binding) bool {
	n := 0
	for _, c := range p.Clusters {
		if c.Binding.Removing {
			continue
		}
		if n == len(bs) || bs[n].Removing || !sameChoice(*c.Binding, bs[n]) {
			return false
		}
		n++
	}
	return n == len(bs)
}

// sameChoice reports whether two bindings are equal in the fields that the scheduler reads.
func sameChoice(a, b placement.Binding) bool {
	return a.Cluster == b.Cluster && a.Policy == b.Policy && a.Reason == b.Reason && a.Order == b.Order && a.Unscheduled == b.Unscheduled && a.Score.Equal(b.Score)
}

// UpdateLedger records the plan in the ledger. The ledger must be saved before works are sent to members.
func (p *Plan) UpdateLedger(l *ledger.Ledger) {
	for _, r := range p.Renames {
		l.Rename(r)
	}
	for pl := range p.Placements.Values() {
		if pl.Forget {
			l.Forget(pl.Key)
			continue
		}
		if pl.RecordChanged {
			l.SetPlacement(pl.Key, pl.Record)
		}
		for _, i := range pl.Changed {
			l.Bind(pl.Key, *pl.Clusters[i].Binding)
		}
		for _, cluster := range pl.Unbind {
			l.Unbind(pl.Key, cluster)
		}
		for _, c := range pl.Deviating {
			l.SetDeviation(pl.Key, c.Binding.Cluster, c.Unusual().Deviation, p.at)
		}
	}
}
