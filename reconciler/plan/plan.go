// Package plan computes the next state of the fleet.
//
// For one commit and one time, Resolve computes which objects each placement selects, which clusters it gets, and which
// of them may be updated now. The resulting Plan has everything that follows from that: the changes of the ledger, the
// works of each cluster, and the time of the next plan. Resolve does no I/O and changes nothing but the Memo.
package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// Input is everything a plan depends on. Resolve changes nothing in it but Memo.
type Input struct {
	// InForce is the commit in force.
	InForce *hub.Snapshot
	// Past has the loaded snapshots of other commits that clusters are assigned to, by hash.
	Past map[string]*hub.Snapshot
	// Lost has the commits that cannot be loaded, with the error.
	Lost   map[string]error
	Ledger *ledger.Ledger
	// Observed overrides what the ledger knows about clusters, by name. Offline plans use it. It may be nil.
	Observed map[string]placement.Cluster
	// Holdings are the IDs of the objects of each placement, for a forecast. For a placement that is not in the map they
	// are determined from the commits and Memo. It may be nil.
	Holdings map[api.PlacementKey][]api.ID
	// MaxUnreachable is how many unreachable clusters, or which share of the wanted clusters, a rollout may skip; nil
	// means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before its update counts as failed; an
	// annotation of a placement overrides it. Zero means no limit.
	AvailableTimeout time.Duration
	// RepairAfter is how long a cluster has to be unavailable by itself before it is updated outside of the budget.
	RepairAfter time.Duration
	Now         time.Time
	// InForceSeenAt is when InForce was first seen, before it was loaded; zero means Now.
	InForceSeenAt time.Time
	// ShortDecisions limits the decisions about clusters that are not selected to the number of missing clusters. In a
	// large fleet they are most of the decisions.
	ShortDecisions bool
	// Rebuilt says that the ledger was lost and rebuilt from the inventories of the members, and that nothing was
	// planned since.
	Rebuilt bool
	// FirstPlan says that the ledger was empty at the start, and that nothing was planned since: runs that Git has may have been recorded in
	// a ledger that was lost.
	FirstPlan bool
	// Memo caches results between calls.
	Memo *Memo
}

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
	// Changed are the positions of the clusters whose bindings are new or different, Deviating the clusters with another
	// deviation, and Unbind the clusters whose bindings are to be deleted. Forget says that the whole record is to be deleted.
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

// OnCluster is the plan for one placement on one cluster.
type OnCluster struct {
	// Binding is that of Entry if nothing in it has changed.
	Binding *placement.Binding
	Entry   *ledger.Entry // nil for a new binding
	// latest is shared with other clusters that have the same one, and nil if there is none: call Latest to read it.
	latest *placement.Revision
	// Content is the content of Latest; empty if there is none.
	Content *work.Rendered
	// Err is the reason why Latest has no content: a *work.OverrideError or *work.EnvelopeError.
	Err error
	// Waits is the reason why the cluster does not get Latest yet; empty if it does.
	Waits string
	// TimedOut says that the Failure is the availability timeout, and DeleteAllowed that a commit allows the deletions on
	// this cluster.
	TimedOut, DeleteAllowed bool
	// notRenderable says that the PreviousContent cannot be rendered.
	notRenderable bool
	// Deferred says that it waits for the end of a freeze or the opening of a window. Overdue says that it has waited for longer than
	// the window allows.
	Deferred, Overdue bool
	// work is the work of the cluster for the placement; nil if there is none yet.
	work *work.Work
	// PreviousContent is the content assigned before this plan, or before the removal began; nil if there is none, if it
	// cannot be rendered, or if it is not known.
	PreviousContent *work.Rendered
	// Circumstances is nil if there are none: call Unusual to read them.
	Circumstances *Circumstances
}

// Circumstances are kept apart from OnCluster because they are empty for nearly all clusters, and a fleet has many of them. They are
// immutable.
type Circumstances struct {
	// Failure is the reason why the assigned content will not become available by itself; empty if it is available,
	// progressing or not judged.
	Failure string
	// Suspended is the reason why the placement writes nothing to the cluster; empty if it does.
	Suspended string
	// Refusal is the reason why nothing at all is written to the cluster: it is set if another fleet or another
	// member holds the cluster.
	Refusal string
	// Deviation has the differences between the assigned content and the objects that the cluster is sent, because other
	// placements select the same objects.
	Deviation ledger.Deviation
	// Yielded are the objects left to other placements, by ID.
	Yielded []Yielded
	// provenContent is the assigned content if it is the proven one, or that of a staged update run: neither Latest nor
	// PreviousContent.
	provenContent *work.Rendered
	// deferredUntil is the end of a freeze or the opening of a window that the cluster waits for, if that is known.
	deferredUntil time.Time
	// suspendedSince is since when the placement writes nothing to the cluster; zero if it does.
	suspendedSince time.Time
	// suspendedObjects are the objects on the cluster that no placement writes.
	suspendedObjects []work.SuspendedObject
	// driftRule is the api.DriftAnnotation of the cluster.
	driftRule string
	// leftover is the content of the leftover revision before this plan; nil as PreviousContent.
	leftover *work.Rendered
	// loading is a commit after whose loading more of PreviousContent and leftover will be known; empty if there is none.
	loading string
}

// empty reports whether a cluster is in no circumstances.
func (s *Circumstances) empty() bool {
	return s.Failure == "" && s.Suspended == "" && s.Refusal == "" && s.Deviation.Empty() && len(s.Yielded) == 0 &&
		s.provenContent == nil && s.deferredUntil.IsZero() && s.suspendedSince.IsZero() && len(s.suspendedObjects) == 0 && s.driftRule == "" && s.leftover == nil && s.loading == ""
}

// equals reports whether circumstances are the same in memory.
func (s *Circumstances) equals(o *Circumstances) bool {
	return s == o || s.Failure == o.Failure && s.Suspended == o.Suspended && s.Refusal == o.Refusal && s.Deviation.Identical(o.Deviation) &&
		ledger.Identical(s.Yielded, o.Yielded) && s.provenContent == o.provenContent && s.deferredUntil == o.deferredUntil && s.suspendedSince == o.suspendedSince &&
		ledger.Identical(s.suspendedObjects, o.suspendedObjects) && s.driftRule == o.driftRule && s.leftover == o.leftover && s.loading == o.loading
}

var noCircumstances Circumstances

// Unusual returns the circumstances of the cluster, which may be empty.
func (c *OnCluster) Unusual() *Circumstances {
	if c.Circumstances == nil {
		return &noCircumstances
	}
	return c.Circumstances
}

// change replaces the circumstances of the cluster by a changed copy.
func (c *OnCluster) change(change func(*Circumstances)) {
	next := *c.Unusual()
	change(&next)
	c.setCircumstances(&next)
}

// setCircumstances replaces the circumstances of the cluster by a copy of these, which may be empty.
func (c *OnCluster) setCircumstances(next *Circumstances) {
	if c.Circumstances = nil; !next.empty() {
		own := *next
		c.Circumstances = &own
	}
}

// DeferredUntil returns the end of a freeze or the opening of a window that the cluster waits for; zero if that is not known.
func (c *OnCluster) DeferredUntil() time.Time { return c.Unusual().deferredUntil }

// Yielded is an object that two placements select on a cluster and that the other one owns.
type Yielded struct {
	*work.Manifest
	// To is the owner, and Origin its position in Git; zero if the owner is no longer in the commit in force.
	To     api.PlacementKey
	Origin api.Origin
	// Passing says that the owner gives the object up once its rollout reaches the cluster.
	Passing bool
}

// Latest returns the newest revision for the cluster, assigned once the rollout allows it. Its Hash is empty if there is none.
func (c *OnCluster) Latest() placement.Revision {
	if c.latest == nil {
		return placement.Revision{}
	}
	return *c.latest
}

// SetLatest replaces the newest revision for the cluster.
func (c *OnCluster) SetLatest(r placement.Revision) { c.latest = &r }

// UpToDate reports whether the latest content is assigned to the cluster.
func (c *OnCluster) UpToDate() bool { return c.Binding.Assigned.Hash == c.Latest().Hash }

// Unbuilt reports whether the newest content cannot be rendered because of what overlays have for this cluster. The cluster
// keeps its revision, and the rollout goes on without it.
func (c *OnCluster) Unbuilt() bool {
	if c.Err == nil {
		return false
	}
	var failed *work.EnvelopeError
	return errors.As(c.Err, &failed) && failed.Overlays && !c.UpToDate()
}

// Leaves reports whether an object of the content is left to another placement.
func (c *OnCluster) Leaves(id api.ID) bool {
	return slices.ContainsFunc(c.Unusual().Yielded, func(y Yielded) bool { return y.ID == id })
}

// HeldDeletions are the deletions that the member holds back, by ID; pending says that a commit has allowed them since.
func (c *OnCluster) HeldDeletions() (held []protocol.Braked, pending bool) {
	seen := c.Seen()
	return seen.Unusual().Braked, seen != nil && c.DeleteAllowed
}

// Seen returns the member's report about the assigned revision; nil if there is none yet. A report from before the
// assignment does not count, even if the content is the same.
func (c *OnCluster) Seen() *protocol.WorkState {
	if c.Entry == nil || c.Entry.Seen == nil {
		return nil
	}
	w := c.Entry.Seen
	if w.Revision.Hash != c.Binding.Assigned.Hash || c.Entry.SeenAt().Before(c.Binding.AssignedAt) {
		return nil
	}
	return w
}

// Resolve plans all placements. Placements whose inputs have not changed since the Memo was last used share their
// results with the previous plan.
func Resolve(in Input) *Plan {
	pl := newPlanner(in)
	pl.rename()
	keys := pl.order().planned
	for _, key := range keys {
		pl.planPlacement(key)
	}
	pl.pauseClusters(keys)
	return pl.finish()
}

// Pending returns a plan that decides nothing yet: its Works are nil.
func Pending(inForce *hub.Snapshot) *Plan {
	var all []*Placement
	for _, spec := range inForce.Placements {
		all = append(all, &Placement{Key: spec.Key, Spec: spec, Pending: true, Record: ledger.Placement{Index: -1, Created: inForce.Commit.Time}})
	}
	return &Plan{Members: inForce.Clusters, Placements: sharedlist.Of(all...)}
}

// An order has the keys of all placements, as they are planned and sorted. It is the same until a placement is added or
// removed.
type order struct {
	inForce           *hub.Snapshot
	ledger            *ledger.Ledger
	placementsVersion uint64 // of the list of placements in the ledger
	planned, sorted   []api.PlacementKey
}

func (pl *planner) order() order {
	o := &pl.memo.order
	if version := pl.Ledger.PlacementsVersion(); o.inForce != pl.InForce || o.ledger != pl.Ledger || o.placementsVersion != version {
		*o = order{inForce: pl.InForce, ledger: pl.Ledger, placementsVersion: version, planned: sequence(pl.Input)}
		o.sorted = slices.SortedFunc(slices.Values(o.planned), api.PlacementKey.Compare)
	}
	return *o
}

// sequence lists the placements of the commit in force and of the ledger, each once: a placement that the affinity of
// another names comes before it, and the earlier keys of renamed placements come last.
func sequence(in Input) []api.PlacementKey {
	policies := map[api.PlacementKey]*api.PlacementPolicy{}
	for _, key := range in.Ledger.Placements() {
		policies[key] = nil
	}
	for _, p := range in.InForce.Placements {
		policies[p.Key] = p.Spec.Policy
	}
	keys := placement.Sequence(policies)
	slices.SortStableFunc(keys, func(a, b api.PlacementKey) int { return cmp.Compare(renamed(in, a), renamed(in, b)) })
	return keys
}

// renamed returns 1 for an earlier key of a renamed placement, and 0 for any other.
func renamed(in Input, key api.PlacementKey) int {
	if record := in.Ledger.Placement(key); record != nil && record.Into != (api.PlacementKey{}) {
		return 1
	}
	return 0
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
