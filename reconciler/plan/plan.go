// Package plan thinks one moment of the fleet through.
//
// Resolve combines the three questions of placement: what does each placement
// select, which clusters take it, and which of them may move now. Its answer
// is complete: what to remember, what each cluster shall hold, and when to
// think again. It changes nothing and asks nobody.
package plan

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

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
	Now      time.Time
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
	// Works are all that each cluster shall hold, by placement.
	Works map[string][]work.Work
	// Commits are those, besides the head, whose content clusters wait at.
	Commits map[string]bool
	// Left are clusters of the ledger that have left the fleet.
	Left []string
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
	// Clusters are what it means for each cluster it holds, by name.
	Clusters []*OnCluster
	// Warnings are what a person should look at.
	Warnings hub.Problems
	// Internal says that thinking failed by a fault of the program; the
	// placement keeps what it holds.
	Internal string

	// Record is what the ledger is to know; Noted says that it is new.
	Record ledger.Placement
	Noted  bool
	// Changed are bindings that are new or different, Unbind the clusters whose
	// binding is to be forgotten; Forget, that the whole placement is.
	Changed []placement.Binding
	Unbind  []string
	Forget  bool
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
	// Held is why the cluster does not get Latest yet; empty if it does.
	Held string
}

// UpToDate reports whether the cluster has been told to hold the latest.
func (c *OnCluster) UpToDate() bool { return c.Binding.Assigned.Hash == c.Latest.Hash }

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

// Resolve thinks everything through.
func Resolve(in Input) *Plan {
	p := &Plan{Works: map[string][]work.Work{}, Commits: map[string]bool{}}
	p.Members = in.Head.Clusters
	p.Clusters, p.Wake = clusters(in)
	for _, name := range in.Ledger.Clusters() {
		if !declares(in.Head, name) {
			p.Left = append(p.Left, name)
		}
	}
	t := &thinker{Input: in, plan: p, known: byName(p.Clusters), memo: in.Memo, decided: map[api.PlacementKey][]string{}}
	t.memo.begin(in.Head)
	for _, key := range sequence(in) {
		p.Placements = append(p.Placements, t.placement(key))
	}
	slices.SortFunc(p.Placements, func(a, b *Placement) int { return compareKeys(a.Key, b.Key) })
	t.memo.end(p.Commits, in.Head.Commit.Hash)
	for name := range p.Works {
		slices.SortFunc(p.Works[name], func(a, b work.Work) int { return compareKeys(a.Placement, b.Placement) })
	}
	return p
}

// sequence lists the placements of the head and of the ledger, each once: those
// that others look at before those others.
func sequence(in Input) []api.PlacementKey {
	policies := map[api.PlacementKey]*api.PlacementPolicy{}
	for _, key := range in.Ledger.Placements() {
		policies[key] = nil
	}
	for _, p := range in.Head.Placements {
		policies[p.Key] = p.Spec.Policy
	}
	return placement.Sequence(policies)
}

func compareKeys(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func byName(cs []placement.Cluster) map[string]placement.Cluster {
	out := make(map[string]placement.Cluster, len(cs))
	for _, c := range cs {
		out[c.Name] = c
	}
	return out
}

func declares(s *hub.Snapshot, cluster string) bool {
	_, found := slices.BinarySearchFunc(s.Clusters, cluster, func(c *hub.Cluster, name string) int { return strings.Compare(c.Name, name) })
	return found
}

// thinker carries what the thinking about all placements shares.
type thinker struct {
	Input
	plan  *Plan
	known map[string]placement.Cluster
	memo  *Memo
	// decided are the clusters that placements took this turn.
	decided map[api.PlacementKey][]string
}

// placement thinks about one placement. A panic is a fault of the program, not
// of the fleet: the placement keeps what it holds, and the others go on.
func (t *thinker) placement(key api.PlacementKey) (p *Placement) {
	spec := t.memo.spec(key)
	record := t.Ledger.Placement(key)
	defer func() {
		if fault := recover(); fault != nil {
			p = &Placement{Key: key, Spec: spec, Internal: fmt.Sprintf("internal error: %v\n%s", fault, debug.Stack())}
			if record != nil {
				p.Record = *record
				t.keep(p, record)
			}
		}
	}()
	p = &Placement{Key: key, Spec: spec}
	if spec == nil {
		t.remove(p, record)
		return p
	}
	t.note(p, record)
	t.decide(p, record)
	return p
}

// note brings the record of a placement up to date.
func (t *thinker) note(p *Placement, record *ledger.Placement) {
	if record == nil || record.Deleted || record.Created.IsZero() {
		p.Record = ledger.Placement{Index: -1, Created: t.Head.Commit.Time}
		p.Noted = true
	} else {
		p.Record = *record
	}
	if p.Record.SpecHash != p.Spec.SpecHash {
		p.Record.Generation++
		p.Record.SpecHash = p.Spec.SpecHash
		p.Noted = true
	}
	if abandon := abandons(p.Spec.Spec); p.Record.Abandon != abandon {
		p.Record.Abandon, p.Noted = abandon, true
	}
}

// abandons reports whether what the placement holds stays when it goes. One
// that only reports deletes nothing, also not what it applied in another mode.
func abandons(s api.PlacementSpec) bool {
	if a := s.Strategy.ApplyStrategy; a != nil && a.Type == api.ReportDiff {
		return true
	}
	d := s.Strategy.DeleteStrategy
	return d != nil && d.PropagationPolicy == api.DeletePropagationAbandon
}

// decide selects, schedules and rolls out.
func (t *thinker) decide(p *Placement, record *ledger.Placement) {
	now := t.memo.prepare(t.Head, p.Spec)
	p.Selection = now.selection
	for _, w := range now.selection.Warnings {
		p.warn(w.Field, w.Message)
	}
	if p.Selection.Invalid != "" {
		if record != nil {
			t.keep(p, record)
		}
		return
	}
	p.warn("", now.renderer.Warnings()...)
	if hash := now.hash; hash != p.Record.Content {
		p.Record.Index++
		p.Record.Content = hash
		p.Noted = true
	}
	before := bindings(record)
	p.Request = &placement.Request{
		Key: p.Key, Policy: p.Spec.Spec.Policy, Clusters: t.plan.Clusters, Bindings: staying(before), Others: t.others(p.Spec),
	}
	p.Schedule = placement.Schedule(*p.Request)
	t.decided[p.Key] = taken(p.Schedule.Bindings)
	p.warn("spec.policy", p.Schedule.Notes...)
	t.clusters(p, record, now)
	t.rollOut(p, record)
	t.changes(p, before)
	t.works(p)
}

// warn notes what a person should look at.
func (p *Placement) warn(field string, messages ...string) {
	for _, m := range messages {
		p.Warnings = append(p.Warnings, hub.Problem{Origin: p.Spec.Origin, Field: field, Severity: hub.Warning, Message: m})
	}
}

// staying leaves out the bindings whose content is being removed.
func staying(bs []placement.Binding) []placement.Binding {
	return slices.DeleteFunc(slices.Clone(bs), func(b placement.Binding) bool { return b.Removing })
}

func bindings(record *ledger.Placement) []placement.Binding {
	if record == nil {
		return nil
	}
	return record.Bindings()
}

// others are the clusters that placements named by an affinity hold: as decided
// this turn, or, where two look at each other, as the last turn left it.
func (t *thinker) others(spec *hub.Placement) map[string][]string {
	names := placement.LooksAt(spec.Spec.Policy)
	if len(names) == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, name := range names {
		key := api.PlacementKey{Namespace: spec.Key.Namespace, Name: name}
		if t.memo.spec(key) == nil {
			continue
		}
		if clusters, ok := t.decided[key]; ok {
			out[name] = clusters
		} else {
			out[name] = taken(bindings(t.Ledger.Placement(key)))
		}
	}
	return out
}

// taken lists the clusters of bindings that are to stay.
func taken(bs []placement.Binding) []string {
	out := []string{}
	for _, b := range bs {
		if !b.Unscheduled && !b.Removing {
			out = append(out, b.Cluster)
		}
	}
	return out
}

// clusters says what the placement means for each cluster it holds.
func (t *thinker) clusters(p *Placement, record *ledger.Placement, now *prepared) {
	chosen := map[string]bool{}
	for _, b := range p.Schedule.Bindings {
		chosen[b.Cluster] = true
		p.Clusters = append(p.Clusters, t.onCluster(b, record, now))
	}
	for _, b := range bindings(record) {
		if b.Removing && !chosen[b.Cluster] {
			p.Clusters = append(p.Clusters, &OnCluster{Binding: b, Entry: record.Entry(b.Cluster)})
		}
	}
	slices.SortFunc(p.Clusters, func(a, b *OnCluster) int { return strings.Compare(a.Binding.Cluster, b.Binding.Cluster) })
}

func (t *thinker) onCluster(b placement.Binding, record *ledger.Placement, now *prepared) *OnCluster {
	c := &OnCluster{Binding: b}
	if record != nil {
		c.Entry = record.Entry(b.Cluster)
	}
	if b.Unscheduled {
		return c
	}
	c.Content, c.Err = now.renderer.For(t.known[b.Cluster])
	c.Latest = placement.Revision{Commit: t.Head.Commit.Hash, Hash: c.Content.Hash}
	if b.Assigned.Hash == c.Latest.Hash {
		c.Latest = b.Assigned // the commit that brought the content, not the newest
	}
	return c
}

// changes lists what the ledger does not know yet.
func (t *thinker) changes(p *Placement, before []placement.Binding) {
	old := map[string]placement.Binding{}
	for _, b := range before {
		old[b.Cluster] = b
	}
	kept := p.Clusters[:0]
	for _, c := range p.Clusters {
		b := c.Binding
		if b.Removing && t.removed(c) {
			p.Unbind = append(p.Unbind, b.Cluster)
			continue
		}
		kept = append(kept, c)
		if was, ok := old[b.Cluster]; !ok || !same(was, b) {
			p.Changed = append(p.Changed, b)
		}
	}
	p.Clusters = kept
}

func same(a, b placement.Binding) bool {
	score := (a.Score == nil) == (b.Score == nil) && (a.Score == nil || *a.Score == *b.Score)
	a.Score, b.Score = nil, nil
	return score && a == b
}

// removed reports whether nothing of the placement is left on a cluster: the
// member says so, or has left.
func (t *thinker) removed(c *OnCluster) bool {
	if _, declared := t.known[c.Binding.Cluster]; !declared {
		return true
	}
	return c.Entry != nil && c.Entry.Binding.Removing && c.Entry.Seen != nil && c.Entry.Seen.Removed
}

// remove takes a placement that is gone from Git off all clusters at once.
func (t *thinker) remove(p *Placement, record *ledger.Placement) {
	p.Record = *record
	if !record.Deleted {
		p.Record.Deleted, p.Noted = true, true
	}
	before := record.Bindings()
	for _, b := range before {
		b.Unscheduled, b.Removing = true, true
		b.AllowDelete = b.AllowDelete && record.Deleted || allows(t.Head.Commit.Message, p.Key)
		p.Clusters = append(p.Clusters, &OnCluster{Binding: b, Entry: record.Entry(b.Cluster)})
	}
	t.changes(p, before)
	p.Forget = len(p.Clusters) == 0
	t.works(p)
}

// keep lets a placement about which nothing new can be decided hold what it
// holds.
func (t *thinker) keep(p *Placement, record *ledger.Placement) {
	for _, e := range record.Entries() {
		p.Clusters = append(p.Clusters, &OnCluster{Binding: e.Binding, Entry: e, Latest: e.Binding.Assigned})
	}
	t.changes(p, record.Bindings())
	t.works(p)
}
