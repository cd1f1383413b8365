// Package plan thinks one moment of the fleet through.
//
// Resolve combines the three questions of placement: what does each placement
// select, which clusters take it, and which of them may move now. Its answer
// is complete: what to remember, what each cluster shall hold, and when to
// think again. It changes nothing and asks nobody.
package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Input is all that a plan depends on. Nothing in it is changed but Memo.
type Input struct {
	Head *hub.Snapshot
	// Past are the snapshots of other commits that clusters are assigned to, by
	// hash, as far as they are loaded.
	Past map[string]*hub.Snapshot
	// Lost are commits that cannot be loaded, and why.
	Lost   map[string]error
	Ledger *ledger.Ledger
	// Observed stands, by name, for all that the ledger knows of a cluster; a
	// plan that asks nobody has it. It may be nil.
	Observed map[string]placement.Cluster
	// Holdings are, by placement, the objects that it holds; a plan that has only
	// their names, and not the commits that brought them, has it. It may be nil.
	Holdings map[api.PlacementKey][]api.ID
	// MaxUnreachable is how many clusters that do not answer, or which share of
	// the wanted, no rollout waits for; nil means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before
	// its update counts as failed, where the placement does not say otherwise; zero
	// means any time.
	AvailableTimeout time.Duration
	Now              time.Time
	// HeadSeen is when the head was first seen, before it was loaded; zero means Now.
	HeadSeen time.Time
	// Brief leaves decisions out that nobody has to be told of: those on
	// clusters that are not selected, but for as many as are missing. Of a large
	// fleet they are the most.
	Brief bool
	// Rebuilt says that nothing was decided since the ledger was lost: what it
	// knows are what members were found to hold.
	Rebuilt bool
	// Memo keeps from one turn to the next what need not be thought again.
	Memo *Memo
}

// A Plan is the answer. It is not changed once made.
type Plan struct {
	// Placements are those of the head and those being removed, by key.
	Placements []*Placement
	// Members are the declared clusters, by name.
	Members []*hub.Cluster
	// Clusters are what scheduling knows of them, in the same order.
	Clusters []placement.Cluster
	// Works are all that each cluster shall hold, by placement; nil if nothing
	// is decided yet.
	Works map[string][]work.Work
	// Commits are those, besides the head, whose content clusters wait at.
	Commits map[string]bool
	// Warnings are what a person should look at and no placement has to do with:
	// overrides that select nothing anywhere.
	Warnings hub.Problems
	// Left are clusters of the ledger that have left the fleet.
	Left []string
	// Renames are the renames of placements, by the earlier key.
	Renames []ledger.Rename
	// Wake is when the plan could change by itself; zero if it cannot.
	Wake time.Time
}

// A Placement is what was thought about one placement.
type Placement struct {
	Key api.PlacementKey
	// Spec is nil if the placement is gone from the head and being removed.
	Spec      *hub.Placement
	Selection placement.Selection
	// Request is what Schedule answers; nil if the scheduler was not asked.
	Request  *placement.Request
	Schedule placement.Outcome
	Rollout  rollout.Plan
	// Unseen is how many clusters have not answered since the ledger was lost, if
	// room is left because they may hold the placement.
	Unseen int
	// Clusters are what it means for each cluster it holds, by name.
	Clusters []*OnCluster
	// Warnings are what a person should look at.
	Warnings hub.Problems
	// Pending says that it is too early to decide.
	Pending bool
	// Unclear is why it is not certain whether the placement was renamed; empty if it
	// is. Meanwhile the placement keeps its objects.
	Unclear string
	// Internal says that thinking failed by a fault of the program, and Stack
	// where; the placement keeps what it holds.
	Internal, Stack string

	// Record is what the ledger is to know; Noted says that it is new.
	Record ledger.Placement
	Noted  bool
	// Changed are bindings that are new or different, Claimed the clusters whose
	// Claims are, Unbind those whose binding is to be forgotten; Forget, that
	// the whole placement is.
	Changed []placement.Binding
	Claimed []*OnCluster
	Unbind  []string
	Forget  bool
}

// On returns what the placement means for one cluster; nil if it does not hold
// it.
func (p *Placement) On(cluster string) *OnCluster {
	i, found := slices.BinarySearchFunc(p.Clusters, cluster, func(c *OnCluster, name string) int {
		return strings.Compare(c.Binding.Cluster, name)
	})
	if !found {
		return nil
	}
	return p.Clusters[i]
}

// OnCluster is one placement on one cluster.
type OnCluster struct {
	Binding placement.Binding
	Entry   *ledger.Entry // nil for a new binding
	// Latest is what the cluster gets once it may; its Hash is empty if there
	// is nothing to get.
	Latest placement.Revision
	// Content is what Latest stands for.
	Content work.Rendered
	// Err is an *work.OverrideError or *work.EnvelopeError: why Latest has no
	// content.
	Err error
	// given is what it gets now, if that is neither Latest nor what it had.
	given *work.Rendered
	// Held is why the cluster does not get Latest yet; empty if it does.
	Held string
	// Failure is why what the cluster holds will not become available by itself;
	// empty if it is available, makes progress, or is not judged.
	Failure string
	// TimedOut says that the failure is that it took too long.
	TimedOut bool
	// Suspended is why nothing is written for the placement there; empty if it
	// is.
	Suspended string
	// Foreign is why nothing at all is written to the cluster: another fleet holds
	// it; empty if none does.
	Foreign string
	// DeleteAllowed says that a commit allows what is deleted there.
	DeleteAllowed bool
	// spared are objects there that are not written, whoever's they are.
	spared []work.Spared
	// Claims are where the cluster holds other than what it is assigned, because
	// other placements are there too.
	Claims ledger.Claims
	// Yielded are the objects that are left to other placements, by ID.
	Yielded []Yielded

	// had is what it was told to hold before this turn, or before it was told to
	// remove it; nil if that is nothing, cannot be made, or is not known. Then
	// unread says that it will be known when its commit is read, and unmade that
	// it cannot be made.
	had            *work.Rendered
	unread, unmade bool
}

// Yielded is an object that two placements want on a cluster, and this one does
// not get.
type Yielded struct {
	*work.Manifest
	// To is the placement that has it, and Origin where that stands; zero if it
	// is gone from the head.
	To     api.PlacementKey
	Origin api.Origin
	// Passing says that the other gives it up as soon as its rollout gets to the
	// cluster.
	Passing bool
}

// UpToDate reports whether the cluster has been told to hold the latest.
func (c *OnCluster) UpToDate() bool { return c.Binding.Assigned.Hash == c.Latest.Hash }

// Holds is what the cluster was told to hold before this turn; nil if that is
// nothing, cannot be made, or is not known.
func (c *OnCluster) Holds() *work.Rendered { return c.had }

// Leaves reports whether an object of the content is left to another placement.
func (c *OnCluster) Leaves(id api.ID) bool {
	return slices.ContainsFunc(c.Yielded, func(y Yielded) bool { return y.ID == id })
}

// HeldDeletions are the objects that the member should delete and holds, sorted by
// ID; pending says that a commit has allowed it meanwhile.
func (c *OnCluster) HeldDeletions() (held []ledger.Braked, pending bool) {
	seen := c.Seen()
	if seen == nil {
		return nil, false
	}
	return seen.Braked, c.DeleteAllowed
}

// Seen is what the member said of what it is assigned now; nil if nothing yet.
// A word on the same content from before it was last assigned does not count.
func (c *OnCluster) Seen() *ledger.WorkSeen {
	if c.Entry == nil || c.Entry.Seen == nil {
		return nil
	}
	w := c.Entry.Seen
	if w.Revision.Hash != c.Binding.Assigned.Hash || w.At.Before(c.Binding.AssignedAt) {
		return nil
	}
	return w
}

// Resolve thinks everything through. What did not change since the Memo was
// last used is not thought through again: parts of two plans are then the same.
func Resolve(in Input) *Plan {
	t := begin(in)
	t.rename()
	keys := t.memo.sequence(t.Input)
	for _, key := range keys {
		t.placement(key)
	}
	t.pause(keys)
	return t.finish()
}

// Pending is a plan that decides nothing yet: its Works are nil.
func Pending(head *hub.Snapshot) *Plan {
	p := &Plan{Members: head.Clusters}
	for _, spec := range head.Placements {
		p.Placements = append(p.Placements, &Placement{Key: spec.Key, Spec: spec, Pending: true, Record: ledger.Placement{Index: -1, Created: head.Commit.Time}})
	}
	return p
}

// sequence is that of the last turn as long as no placement comes, goes or
// looks at others.
func (m *Memo) sequence(in Input) []api.PlacementKey {
	now := turn{in.Head, in.Ledger, in.Ledger.Comings()}
	if m.order == nil || m.ordered != now {
		m.order, m.ordered = sequence(in), now
	}
	return m.order
}

// A turn is what the sequence of placements depends on.
type turn struct {
	head    *hub.Snapshot
	ledger  *ledger.Ledger
	comings uint64
}

// sequence lists the placements of the head and of the ledger, each once: those
// that others look at before those others, and the earlier keys of renamed placements
// last.
func sequence(in Input) []api.PlacementKey {
	policies := map[api.PlacementKey]*api.PlacementPolicy{}
	for _, key := range in.Ledger.Placements() {
		policies[key] = nil
	}
	for _, p := range in.Head.Placements {
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

func compareKeys(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// WriteDown puts what was decided into the ledger. What is told to members has
// to be saved before.
func (p *Plan) WriteDown(l *ledger.Ledger) {
	for _, r := range p.Renames {
		l.Rename(r)
	}
	for _, pl := range p.Placements {
		if pl.Forget {
			l.Forget(pl.Key)
			continue
		}
		if pl.Noted {
			l.Note(pl.Key, pl.Record)
		}
		for _, b := range pl.Changed {
			l.Bind(pl.Key, b)
		}
		for _, cluster := range pl.Unbind {
			l.Unbind(pl.Key, cluster)
		}
		for _, c := range pl.Claimed {
			l.Claim(pl.Key, c.Binding.Cluster, c.Claims)
		}
	}
}
