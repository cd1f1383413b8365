package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// think thinks about one placement by itself.
func (t *thinker) think(p *Placement, record *ledger.Placement) {
	if t.now.unclear != "" {
		t.stay(p, record, t.now.unclear)
		return
	}
	if p.Spec == nil {
		t.remove(p, record)
		return
	}
	t.note(p, record)
	t.decide(p, record)
}

// note brings the record of a placement up to date.
func (t *thinker) note(p *Placement, record *ledger.Placement) {
	if record == nil || record.Deleted || record.Created.IsZero() {
		p.Record = ledger.Placement{Index: -1, Created: t.Head.Commit.Time, Found: t.Rebuilt || record != nil && !record.Deleted && record.Found}
		if record != nil {
			p.Record.Formerly = record.Formerly // clusters may still hold what it gave under those
		}
		p.Noted = true
	} else {
		p.Record = *record
	}
	if p.Record.SpecHash != p.Spec.SpecHash {
		p.Record.Generation++
		p.Record.SpecHash, p.Record.Commit = p.Spec.SpecHash, t.Head.Commit.Hash
		p.Noted = true
	}
	if p.Record.Spec == nil || p.Noted {
		p.Record.Spec, p.Noted = &p.Spec.Spec, true
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
	now := t.now.now
	p.Selection = now.selection
	for _, w := range now.selection.Warnings {
		p.warn(w.Field, w.Message)
	}
	before := t.bindings(p, record)
	if p.Selection.Invalid != "" {
		t.keep(p, before, record)
		return
	}
	t.use(now)
	p.warn("", now.renderer.Warnings()...)
	if hash := now.hash; hash != p.Record.Content {
		p.Record.Content = hash
		t.revise(p)
	}
	t.permit(p)
	bound := adopted(p.Spec.Spec.Policy, staying(before))
	p.Request = &placement.Request{
		Key: p.Key, Policy: t.wary(p, bound), Clusters: t.memo.fleet.list, Bindings: bound, Others: t.now.others,
	}
	if outcome, known := t.scheduled(p); known {
		p.Schedule = outcome
	} else {
		p.Schedule = t.schedule(p)
	}
	p.warn("spec.policy", p.Schedule.Notes...)
	t.inVain(p)
	t.clusters(p, before, record)
	t.rollOut(p)
	t.finishRollout(p)
	t.prove(p)
	t.changes(p, before, record)
	t.works(p)
}

// scheduled is the scheduler's last answer, if it is asked the same again: what
// members say of content moves nobody elsewhere.
func (t *thinker) scheduled(p *Placement) (placement.Outcome, bool) {
	old := t.memo.thoughts[p.Key]
	if old == nil || old.p.Request == nil || old.spec != p.Spec || old.shape != t.now.shape || old.values != t.now.values {
		return placement.Outcome{}, false
	}
	was := old.p.Request
	if was.Policy != p.Request.Policy || !slices.EqualFunc(was.Bindings, p.Request.Bindings, same) || !maps.EqualFunc(was.Others, p.Request.Others, slices.Equal) {
		return placement.Outcome{}, false
	}
	return old.p.Schedule, true
}

// brief returns the decisions on selected clusters, which come first, and as
// many more as clusters are missing.
func brief(o placement.Outcome) []placement.Decision {
	selected := 0
	for selected < len(o.Decisions) && o.Decisions[selected].Selected {
		selected++
	}
	n := min(len(o.Decisions), selected+max(0, o.Wanted-o.Found))
	return append(make([]placement.Decision, 0, n), o.Decisions[:n]...)
}

// warn notes what a person should look at.
func (p *Placement) warn(field string, messages ...string) {
	for _, m := range messages {
		p.Warnings = append(p.Warnings, hub.Problem{Origin: p.Spec.Origin, Field: field, Severity: hub.Warning, Message: m})
	}
}

// bindings are those of a placement on clusters of the fleet. Clusters that are
// declared no more are let go of at once: their agents give up all they hold.
func (t *thinker) bindings(p *Placement, record *ledger.Placement) []placement.Binding {
	if record == nil {
		return nil
	}
	return slices.DeleteFunc(record.Bindings(), func(b placement.Binding) bool {
		_, declared := t.memo.fleet.cluster(b.Cluster)
		if !declared {
			p.Unbind = append(p.Unbind, b.Cluster)
		}
		return !declared || removed(record.Entry(b.Cluster))
	})
}

// staying leaves out the bindings whose content is being removed.
func staying(bs []placement.Binding) []placement.Binding {
	return slices.DeleteFunc(slices.Clone(bs), func(b placement.Binding) bool { return b.Removing })
}

// adopted gives bindings that were found again after the ledger was lost to the
// policy of today: nobody has asked for them to go, so they are not judged anew.
// Of more than are wanted the first to be found stay.
func adopted(policy *api.PlacementPolicy, bs []placement.Binding) []placement.Binding {
	room := len(bs)
	switch {
	case policy == nil:
	case policy.PlacementType == api.PickFixed:
		return bs // it names them
	case policy.NumberOfClusters != nil:
		room = int(*policy.NumberOfClusters)
	}
	found := func(b placement.Binding) bool { return b.Policy == "" && !b.Unscheduled }
	for _, b := range bs {
		if !b.Unscheduled && !found(b) {
			room--
		}
	}
	hash := ""
	for i := range slices.Backward(bs) {
		if found(bs[i]) && room > 0 {
			if hash == "" {
				hash = placement.PolicyHash(policy)
			}
			bs[i].Policy = hash
			room--
		}
	}
	return bs
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
		if th := t.thoughts[key]; th != nil && th.p.Request != nil {
			out[name] = taken(th.p.Schedule.Bindings)
		} else if record := t.Ledger.Placement(key); record != nil {
			out[name] = taken(record.Bindings())
		} else {
			out[name] = []string{}
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
func (t *thinker) clusters(p *Placement, before []placement.Binding, record *ledger.Placement) {
	chosen := make(map[string]bool, len(p.Schedule.Bindings))
	for _, b := range p.Schedule.Bindings {
		chosen[b.Cluster] = true
		p.Clusters = append(p.Clusters, t.onCluster(b, record))
	}
	for _, b := range before {
		if b.Removing && !chosen[b.Cluster] {
			p.Clusters = append(p.Clusters, t.on(b, record))
		}
	}
	slices.SortFunc(p.Clusters, func(a, b *OnCluster) int { return strings.Compare(a.Binding.Cluster, b.Binding.Cluster) })
}

// on is a placement on a cluster, as the last turn left it.
func (t *thinker) on(b placement.Binding, record *ledger.Placement) *OnCluster {
	c := &OnCluster{Binding: b, Foreign: t.Ledger.Refusal(b.Cluster), Suspended: t.memo.rest.why(t.now.p.Key, b.Cluster), spared: t.memo.rest.on(b.Cluster)}
	if record != nil {
		c.Entry = record.Entry(b.Cluster)
	}
	if c.Entry != nil {
		c.Claims = c.Entry.Claims
		t.now.partner(c.Claims)
	}
	t.look(c)
	return c
}

func (t *thinker) onCluster(b placement.Binding, record *ledger.Placement) *OnCluster {
	c := t.on(b, record)
	if b.Unscheduled {
		return c
	}
	if c.Entry == nil || c.Entry.Binding.Removing && c.Binding.BoundAt.IsZero() {
		c.Binding.BoundAt = t.Now
	}
	t.revive(c)
	cluster, _ := t.memo.fleet.cluster(b.Cluster)
	c.Content, c.Err = t.now.now.renderer.For(cluster)
	c.Latest = placement.Revision{Commit: t.Head.Commit.Hash, Hash: c.Content.Hash, Labels: t.now.now.renderer.Labels(cluster)}
	if b.Assigned.Hash == c.Latest.Hash {
		c.Latest = b.Assigned // the commit that brought the content, not the newest
	}
	if c.had != nil && c.had.Hash == c.Content.Hash {
		c.had = &c.Content // one of the two is enough to keep
	}
	return c
}

// revive gives a cluster that is chosen anew, while what it held is being
// removed, what it held: the removal ends, nothing is left behind, and what is
// there counts until the rollout gets to the cluster.
func (t *thinker) revive(c *OnCluster) {
	if c.Binding.Released() || c.Entry == nil || !c.Entry.Binding.Removing || removed(c.Entry) {
		return
	}
	if t.paused[c.Binding.Cluster] != "" {
		c.Binding = c.Entry.Binding
		return
	}
	c.Binding.Assigned, c.Binding.AssignedAt = c.Entry.Binding.Assigned, t.Now
}

// changes lists what the ledger does not know yet.
func (t *thinker) changes(p *Placement, before []placement.Binding, record *ledger.Placement) {
	old := make(map[string]placement.Binding, len(before))
	for _, b := range before {
		old[b.Cluster] = b
	}
	for _, c := range p.Clusters {
		if was, ok := old[c.Binding.Cluster]; !ok || !same(was, c.Binding) {
			p.Changed = append(p.Changed, c.Binding)
		}
	}
	if record == nil {
		return
	}
	for _, e := range record.Entries() {
		if removed(e) && p.On(e.Binding.Cluster) == nil && !slices.Contains(p.Unbind, e.Binding.Cluster) {
			p.Unbind = append(p.Unbind, e.Binding.Cluster)
		}
	}
}

func same(a, b placement.Binding) bool {
	score := (a.Score == nil) == (b.Score == nil) && (a.Score == nil || *a.Score == *b.Score)
	a.Score, b.Score = nil, nil
	return score && a == b
}

// removed reports whether the member says that nothing of the placement is left
// on a cluster.
func removed(e *ledger.Entry) bool {
	return e != nil && e.Binding.Removing && e.Seen != nil && e.Seen.Removed
}

// remove takes a placement that is gone from Git off all clusters at once.
func (t *thinker) remove(p *Placement, record *ledger.Placement) {
	p.Record = *record
	if !record.Deleted {
		p.Record.Deleted, p.Record.DeletedAt, p.Noted = true, t.Now, true
	}
	before := t.bindings(p, record)
	for _, b := range before {
		c := t.on(b, record)
		c.Binding.Unscheduled = true
		c.Binding.Removing = b.Removing || t.paused[b.Cluster] == "" && c.Suspended == ""
		c.Binding.AllowDelete = b.AllowDelete && record.Deleted || t.now.allowed
		if !record.Deleted || b.RemovedBy == "" {
			c.Binding.RemovedBy = t.Head.Commit.Hash
		}
		p.Clusters = append(p.Clusters, c)
	}
	t.changes(p, before, record)
	p.Forget = len(p.Clusters) == 0
	t.works(p)
}

// keep lets a placement about which nothing new can be decided hold what it
// holds.
func (t *thinker) keep(p *Placement, before []placement.Binding, record *ledger.Placement) {
	for _, b := range before {
		c := t.on(b, record)
		c.Latest = b.Assigned
		p.Clusters = append(p.Clusters, c)
	}
	t.changes(p, before, record)
	t.works(p)
}
