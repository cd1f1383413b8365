package plan

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A thought is what came of thinking about one placement by itself, with all
// that it depended on. As long as that is the same, so is the thought.
type thought struct {
	inputs
	p *Placement
	// works are what its clusters shall hold, as far as this placement is
	// concerned.
	works []assigned
	// uses are what it gives clusters, or gave them until now.
	uses []*prepared
	// commits are those whose content clusters wait at and nobody knows; awaited
	// of them may still be loaded.
	commits, awaited []string
	// lost are those of commits that could not be read.
	lost []string
	// claimed are the objects that were left to others until now, or that it got
	// early, in order; partners those to which they were left, and itself.
	claimed  []api.ID
	partners []api.PlacementKey
	last     ledger.Claims
	// wake is when it could change by itself; zero if it cannot.
	wake time.Time

	// holds are what keeps deletions of the placement from being carried out.
	holds deletionHolds

	// compared is what was last found out about two contents.
	compared comparison

	// final is the placement as it was last concluded.
	final *Placement
}

// assigned is the work of one cluster.
type assigned struct {
	cluster string
	work    work.Work
}

// inputs are what a thought depends on. Of one that failed they are not known.
type inputs struct {
	known   bool
	spec    *hub.Placement
	now     *prepared
	version uint64 // of the record
	shape   uint64 // of the fleet
	values  uint64 // of the fleet's properties, if they matter
	rest    uint64 // of what is suspended
	allowed bool   // to delete
	unclear string // why it cannot be told whether it was renamed
	// successor is what came of the placement under its new key, if it was renamed.
	successor *thought
	others    map[string][]string
}

func (a *inputs) same(b *inputs) bool {
	return a.known && b.known && a.spec == b.spec && a.now == b.now && a.version == b.version &&
		a.shape == b.shape && a.values == b.values && a.rest == b.rest && a.allowed == b.allowed && a.unclear == b.unclear && a.successor == b.successor && maps.EqualFunc(a.others, b.others, slices.Equal)
}

// thinker carries what the thinking about all placements shares.
type thinker struct {
	Input
	memo *Memo
	// thoughts are those of this turn; now is the one at work.
	thoughts map[api.PlacementKey]*thought
	now      *thought
	wake     time.Time
	// renamed are the renames found for this plan.
	renamed []ledger.Rename
	// paused are the clusters on which nothing moves, with the commit that they
	// wait for, and flipped those of which that changed this turn.
	paused  map[string]string
	flipped []string
}

func begin(in Input) *thinker {
	t := &thinker{Input: in, memo: in.Memo, thoughts: in.Memo.spare, paused: in.Memo.paused}
	if t.thoughts == nil {
		t.thoughts = map[api.PlacementKey]*thought{}
	}
	t.wake = earliest(t.memo.fleet.update(in), t.memo.rest.update(in))
	t.memo.begin(in.Head)
	return t
}

// finish puts together what was thought about each placement.
func (t *thinker) finish() *Plan {
	m := t.memo
	p := &Plan{
		Members: t.Head.Clusters, Clusters: m.fleet.list, Left: m.rest.stay(m.fleet.left(t.Ledger)),
		Commits: map[string]bool{}, Wake: t.wake, Warnings: t.neglected(),
		Renames: t.renamed,
	}
	for _, th := range t.thoughts {
		p.Wake = earliest(p.Wake, th.wake)
		for _, commit := range th.commits {
			p.Commits[commit] = true
		}
	}
	changed := m.board.pin(m.thoughts, t.thoughts)
	m.thoughts, m.spare = t.thoughts, m.thoughts
	clear(m.spare)
	if p.Placements, p.Works = t.settle(changed); p.Works == nil {
		p.Works = map[string][]work.Work{} // decided, and nothing
	}
	m.end(p.Commits)
	return p
}

// placement thinks about one placement, unless it is known what would come of
// it. A panic is a fault of the program, not of the fleet: the placement keeps
// what it holds, and the others go on.
func (t *thinker) placement(key api.PlacementKey) {
	record := t.Ledger.Placement(key)
	defer func() {
		if fault := recover(); fault != nil {
			t.thoughts[key] = faulty(key, t.memo.spec(key), record, fmt.Sprint(fault))
		}
	}()
	in := t.inputs(key, record)
	if old := t.memo.thoughts[key]; old != nil && old.same(&in) && t.holds(old) {
		t.thoughts[key] = old
		return
	}
	t.now = &thought{inputs: in, p: &Placement{Key: key, Spec: in.spec}}
	t.think(t.now.p, record)
	t.thoughts[key] = t.now
}

// inputs gathers what a thought depends on.
func (t *thinker) inputs(key api.PlacementKey, record *ledger.Placement) inputs {
	in := inputs{known: true, spec: t.memo.spec(key), shape: t.memo.fleet.shape, rest: t.memo.rest.version, allowed: Allows(t.Head.Commit.Message, key)}
	in.unclear = t.memo.renames.unclear[key]
	if record != nil {
		in.version = record.Version()
		if in.successor = t.thoughts[record.Into]; in.successor != nil {
			in.allowed = in.allowed || Allows(t.Head.Commit.Message, record.Into)
		}
		in.allowed = in.allowed || slices.ContainsFunc(record.Formerly, t.allowsFormer)
	}
	if in.spec == nil {
		return in
	}
	if looksAtProperties(in.spec.Spec.Policy) {
		in.values = t.memo.fleet.values
	}
	in.now = t.memo.prepare(t.Head, in.spec)
	in.others = t.others(in.spec)
	return in
}

// allowsFormer reports whether the commit allows deletions under an earlier key of a
// placement, which no other placement has taken.
func (t *thinker) allowsFormer(key api.PlacementKey) bool {
	return t.memo.spec(key) == nil && Allows(t.Head.Commit.Message, key)
}

// holds reports whether nothing else has come up that a thought depends on: its
// time, a commit it waited for, a cluster of its that answers or does not.
func (t *thinker) holds(th *thought) bool {
	if !th.wake.IsZero() && !t.Now.Before(th.wake) {
		return false
	}
	arrived := func(commit string) bool { return t.Past[commit] != nil || t.Lost[commit] != nil }
	readAgain := func(commit string) bool { return t.Past[commit] != nil }
	return !slices.ContainsFunc(th.awaited, arrived) && !slices.ContainsFunc(th.lost, readAgain) && !th.concerns(t.memo.fleet.flipped) && !th.concerns(t.flipped)
}

// concerns reports whether the placement holds one of some clusters.
func (th *thought) concerns(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(cluster string) bool { return th.p.On(cluster) != nil })
}

// faulty is the thought about a placement that cannot be thought about: all
// that it holds is left alone.
func faulty(key api.PlacementKey, spec *hub.Placement, record *ledger.Placement, fault string) *thought {
	th := &thought{p: &Placement{
		Key: key, Spec: spec, Internal: "internal error: " + fault, Stack: string(debug.Stack()),
		Record: ledger.Placement{Index: -1},
	}}
	if record == nil {
		return th
	}
	th.p.Record = *record
	for _, e := range record.Entries() {
		b := e.Binding
		th.partner(e.Claims)
		th.p.Clusters = append(th.p.Clusters, &OnCluster{Binding: b, Entry: e, Latest: b.Assigned, Claims: e.Claims})
		if b.Released() || b.Removing {
			w := work.Work{Placement: key, Revision: b.Assigned, Keep: true, Abandon: record.Abandon}
			if spec != nil {
				w.Strategy = strategy(spec.Spec)
			}
			th.works = append(th.works, assigned{b.Cluster, w})
		}
	}
	return th
}

// partner notes that a cluster was told other than what is assigned to it.
func (th *thought) partner(c ledger.Claims) {
	if c.Empty() {
		return
	}
	if c.Identical(th.last) {
		return // as on most clusters
	}
	th.last = c
	add := func(key api.PlacementKey) {
		if !slices.Contains(th.partners, key) {
			th.partners = append(th.partners, key)
		}
	}
	claim := func(id api.ID) {
		if i, found := slices.BinarySearchFunc(th.claimed, id, api.ID.Compare); !found {
			th.claimed = slices.Insert(th.claimed, i, id)
		}
	}
	add(th.p.Key)
	for _, y := range c.Yields {
		add(y.To)
		claim(y.ID)
	}
	for _, id := range c.Early {
		claim(id)
	}
}
