package forecast

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// NewRunning returns the fleet at the last plan of a daemon with the commit in force. It only reads them.
func NewRunning(inForce *hub.Snapshot, p *plan.Plan, now time.Time) *Running {
	r := &Running{inForce: inForce, plan: p, now: now, observed: map[string]placement.Cluster{}, declared: map[string]*hub.Cluster{}}
	for _, c := range p.Clusters {
		r.observed[c.Name] = c
	}
	for _, c := range p.Members {
		r.declared[c.Name] = c
	}
	r.document = (&Forecast{Snapshot: inForce, Plan: p}).Describe()
	r.memo = plan.NewMemo()
	r.ledger, r.lost = r.newLedger(inForce)
	return r
}

// owned returns the objects of the placements that a snapshot no longer has, which are needed to detect renames.
// known is false if the content of any of them is unknown.
func (r *Running) owned(s *hub.Snapshot) (owned map[api.PlacementKey][]api.ID, known bool) {
	stays := map[api.PlacementKey]bool{}
	for _, p := range s.Placements {
		stays[p.Key] = true
	}
	owned, known = map[api.PlacementKey][]api.ID{}, true
	for p := range r.plan.Placements.Values() {
		if stays[p.Key] || p.Spec == nil && p.Unclear == "" {
			continue
		}
		if ids, ok := objectsOf(p); ok {
			owned[p.Key] = ids
		} else {
			known = false
		}
	}
	return owned, known
}

// objectsOf returns the objects of a placement on all of its clusters, possibly with duplicates. ok is false if the content
// of a cluster is unknown.
func objectsOf(p *plan.Placement) (ids []api.ID, ok bool) {
	for i, c := range p.Clusters {
		content := c.Content
		if !rendered(p, c) {
			content = c.PreviousContent
		}
		switch {
		case content == nil && c.Binding.HasRevision():
			return nil, false
		case content == nil || i > 0 && sharesContent(p, p.Clusters[i-1], c):
			continue
		}
		for _, m := range content.Manifests {
			ids = append(ids, m.ID)
		}
	}
	return ids, true
}

// Forecast returns the forecast for the fleet if a commit follows the one in force. An error is a bug in the program.
func (r *Running) Forecast(s *hub.Snapshot) (*Forecast, error) {
	o, err := r.forecast(s)
	if err != nil {
		return nil, err
	}
	o.Unknown = o.unknown()
	o.addMoved()
	return o, nil
}

func (r *Running) forecast(s *hub.Snapshot) (*Forecast, error) {
	owned, known := r.owned(s)
	in := plan.Input{
		InForce: s, Past: map[string]*hub.Snapshot{r.inForce.Commit.Hash: r.inForce}, Lost: r.lost, Ledger: r.ledger, Owned: owned,
		Observed: r.clusters(s), Now: r.now, Memo: r.memo, ShortDecisions: true,
	}
	grows := r.grows(s)
	if grows {
		in.Ledger, in.Lost = r.newLedger(s)
	}
	if grows || !known { // the memo would have the contents of the last forecast
		in.Memo = plan.NewMemo()
	}
	o := &Forecast{Snapshot: s, Warnings: s.Warnings, Plan: plan.Resolve(in), running: r, earlier: r.plan, inForce: r.inForce, facts: facts{}}
	if err := internal(o.Plan); err != nil {
		return nil, err
	}
	if in.Memo == r.memo {
		r.facts = r.facts.onlyOf(o.Plan)
		o.facts = r.facts
	}
	o.Renames, o.Rollouts = o.Plan.Renames, rollouts(o.Plan, o.facts)
	o.before = r.document.renamed(o.Renames)
	if in.Memo == r.memo && len(o.Renames) == 0 && len(unclearGone(o.Plan)) == 0 {
		o.unchanged = map[*plan.Placement]bool{}
		for p := range o.Plan.Placements.Values() {
			if r.unchanged[p] {
				o.unchanged[p] = true
			}
		}
	}
	d := o.describe(o.unchanged)
	o.document, o.compared = &d, o.before.without(o.unchanged)
	changes := compare(o.compared, d)
	switch {
	case o.unchanged != nil:
		r.unchanged = o.withoutChanges(changes)
	case len(o.Renames) > 0: // the memo cannot tell two renames to the same key apart
		r.memo, r.unchanged = plan.NewMemo(), nil
	}
	if !slices.ContainsFunc(changes.Clusters, func(c ClusterChange) bool { return len(c.Lost) > 0 }) {
		return o, nil
	}
	// Blocked deletions appear only after every cluster had its turn.
	in.Ledger, in.Lost = r.newLedger(s)
	o.before.settle(in.Ledger, o.Plan)
	in.Memo, o.facts = plan.NewMemo(), facts{}
	o.Plan, o.unchanged, o.document, o.compared, o.contentChanges = plan.Resolve(in), nil, nil, o.before, nil
	return o, internal(o.Plan)
}

// withoutChanges returns the placements that have the same clusters, objects and contents as in the earlier plan.
func (o *Forecast) withoutChanges(changes Changes) map[*plan.Placement]bool {
	changed := map[string]bool{}
	for _, p := range changes.Placements {
		changed[p.Placement] = true
	}
	for _, c := range changes.Clusters {
		for _, objects := range [][]Object{c.Gained, c.Lost, c.Released} {
			for _, object := range objects {
				changed[object.Placement] = true
			}
		}
		for _, p := range c.Passed {
			changed[p.Placement], changed[p.From] = true, true
		}
	}
	for _, c := range o.ContentChanges() {
		changed[c.Placement.String()] = true
	}
	out := map[*plan.Placement]bool{}
	for p := range o.Plan.Placements.Values() {
		if p.Spec != nil && !changed[p.Key.String()] {
			out[p] = true
		}
	}
	return out
}

// Member returns a cluster of the fleet as the commit in force declares it; nil if it is not declared.
func (r *Running) Member(name string) *hub.Cluster { return r.declared[name] }

// NewProblems returns the problems of a forecast that the fleet does not have yet, errors first: warnings of the
// commit, and problems that prevent placements from doing what their specs say.
func (r *Running) NewProblems(o *Forecast) problem.List {
	if r.problems == nil {
		r.problems = map[problem.Problem]bool{}
		known := facts{}
		for _, p := range problemsOf(r.inForce, slices.Concat(r.inForce.Warnings, contentWarnings(r.inForce, r.plan, known)), r.plan, known) {
			r.problems[withoutLine(p)] = true
		}
	}
	out := slices.Clone(o.Unknown)
	for _, p := range problemsOf(o.Snapshot, o.Warnings, o.Plan, o.facts) {
		if !r.problems[withoutLine(p)] {
			out = append(out, p)
		}
	}
	return out.ErrorsFirst()
}

func problemsOf(s *hub.Snapshot, warnings problem.List, p *plan.Plan, known facts) problem.List {
	all := append(slices.Clone(warnings), p.Warnings...)
	for pl := range p.Placements.Values() {
		if pl.Spec == nil {
			continue
		}
		all = append(all, pl.Warnings...)
		for _, f := range known.of(pl).faultList(s) {
			f.Severity = problem.Failure // such a commit is accepted
			all = append(all, f)
		}
	}
	return all
}

// withoutLine returns a problem without its line, which is different in each version of the file.
func withoutLine(p problem.Problem) problem.Problem {
	p.Line, p.Document = 0, 0
	return p
}

// grows reports whether a snapshot declares clusters that the fleet does not have.
func (r *Running) grows(s *hub.Snapshot) bool {
	return slices.ContainsFunc(s.Clusters, func(c *hub.Cluster) bool { return r.declared[c.Name] == nil })
}

// newLedger returns the ledger of the fleet with the clusters of a snapshot, in which every cluster answers and has
// what it is bound to. lost are the commits of bindings that are not read again for a forecast.
func (r *Running) newLedger(s *hub.Snapshot) (l *ledger.Ledger, lost map[string]error) {
	past := r.now.Add(-settled)
	l = healthy(s, past).Ledger
	lost = map[string]error{}
	for p := range r.plan.Placements.Values() {
		if p.Forget || p.Spec == nil && p.Unclear == "" {
			continue // the binding is being removed
		}
		record := p.Record
		record.Stops = nil
		l.SetPlacement(p.Key, record)
		for _, c := range p.Clusters {
			b := *c.Binding
			if b.Unscheduled || b.Removing {
				continue // the cluster is leaving
			}
			if c.Err == nil && c.Latest().Hash != "" {
				b.Assigned = c.Latest()
			}
			b.AssignedAt, b.Risked = past, false
			if b.Assigned.Commit != r.inForce.Commit.Hash {
				lost[b.Assigned.Commit] = errNotRead
			}
			l.Bind(p.Key, b)
			l.SetDeviation(p.Key, b.Cluster, lasting(c.Unusual().Deviation), past)
			if b.HasRevision() {
				l.Fold(protocol.WorkSeen{Cluster: b.Cluster, Placement: p.Key, At: past, WorkState: protocol.WorkState{Revision: b.Assigned, Done: true, Total: len(c.Content.Manifests)}})
			}
		}
	}
	return l, lost
}

var errNotRead = errors.New("not read for a forecast")

// settled is the time since when the fleet is taken to be available. It is longer than a rollout waits for anything.
const settled = 30 * 24 * time.Hour

// lasting returns the claims that do not end with a rollout.
func lasting(c ledger.Deviation) ledger.Deviation {
	var out ledger.Deviation
	for _, y := range c.Yields {
		if !y.Passing {
			out.Yields = append(out.Yields, y)
		}
	}
	return out
}

// clusters returns the clusters of a snapshot. Declared fields are those of the snapshot, the rest is as observed.
func (r *Running) clusters(s *hub.Snapshot) map[string]placement.Cluster {
	out := make(map[string]placement.Cluster, len(s.Clusters))
	for _, c := range s.Clusters {
		seen, known := r.observed[c.Name]
		if !known {
			continue
		}
		now, before := fleet.Cluster(c, nil), map[string]resource.Quantity{}
		if declared := r.declared[c.Name]; declared != nil {
			before = fleet.Cluster(declared, nil).Properties
		}
		for name, value := range seen.Properties {
			_, declared := before[name]
			if _, set := now.Properties[name]; !set && !declared {
				now.Properties[name] = value
			}
		}
		now.Namespaces, now.Ineligible, now.IneligibleKind = seen.Namespaces, seen.Ineligible, seen.IneligibleKind
		out[c.Name] = now
	}
	return out
}
