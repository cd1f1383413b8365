package forecast

import (
	"errors"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/reference"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// facts are what was found about placements of plans. Plans of one memo have most placements in common.
type facts map[*plan.Placement]*placementFacts

// placementFacts are what was found about a placement that has a spec, from its plan alone. Each is nil until it is asked for.
type placementFacts struct {
	placement *plan.Placement
	contents  []reference.OnClusters
	faults    *problem.List
	rollout   *Rollout
}

// of returns what was found about a placement. More is added to it.
func (f facts) of(p *plan.Placement) *placementFacts {
	if f[p] == nil {
		f[p] = &placementFacts{placement: p}
	}
	return f[p]
}

// onlyOf returns what was found about the placements of a plan.
func (f facts) onlyOf(p *plan.Plan) facts {
	out := make(facts, p.Placements.Len())
	for pl := range p.Placements.Values() {
		if known := f[pl]; known != nil {
			out[pl] = known
		}
	}
	return out
}

// faultList returns the problems of Faults.
func (f *placementFacts) faultList(s *hub.Snapshot) problem.List {
	if f.faults == nil {
		found := Faults(s, f.placement)
		f.faults = &found
	}
	return *f.faults
}

// contentList returns the contents of contentsOf.
func (f *placementFacts) contentList() []reference.OnClusters {
	if f.contents == nil {
		f.contents = contentsOf(f.placement)
	}
	return f.contents
}

// rolloutOf returns the rollout of a placement, with no clusters if none changes.
func (f *placementFacts) rolloutOf() Rollout {
	if f.rollout == nil {
		found := rolloutOf(f.placement)
		f.rollout = &found
	}
	return *f.rollout
}

func rollouts(p *plan.Plan, known facts) []Rollout {
	var out []Rollout
	for pl := range p.Placements.Values() {
		if pl.Spec == nil {
			continue
		}
		if r := known.of(pl).rolloutOf(); r.Clusters > 0 {
			out = append(out, r)
		}
	}
	return out
}

// Faults returns the problems that prevent a placement from doing what its spec says: invalid selectors, content that
// cannot be rendered, and objects that cannot be applied. The placement is planned for the snapshot.
func Faults(s *hub.Snapshot, p *plan.Placement) problem.List {
	var out problem.List
	fault := func(origin api.Origin, field, message string) {
		problem := problem.Problem{Origin: origin, Field: field, Severity: problem.Error, Message: message}
		if !slices.Contains(out, problem) {
			out = append(out, problem)
		}
	}
	if p.Selection.Invalid != "" {
		fault(p.Spec.Lines.At(p.Spec.Origin, p.Selection.InvalidField), p.Selection.InvalidField, p.Selection.Invalid)
	}
	on := map[string][]string{}
	var errs []error
	for _, c := range p.Clusters {
		if c.Err != nil {
			text := c.Err.Error()
			if on[text] == nil {
				errs = append(errs, c.Err)
			}
			on[text] = append(on[text], c.Binding.Cluster)
		}
		for _, r := range c.Content.Refused {
			fault(r.Origin, "", r.ID.String()+": "+r.Message())
		}
		for _, m := range c.Content.Manifests {
			if m.Encrypted != nil && m.Overridden { // else the commit has the problem
				fault(m.Origin, "", m.ID.String()+", as overrides change it: "+m.Encrypted.Message())
			}
		}
	}
	for _, err := range errs {
		at, field, ok := FailingOverride(s, err)
		if !ok {
			at = p.Spec.Origin
		}
		fault(at, field, err.Error()+" (on "+FewOf(on[err.Error()])+")")
	}
	return out
}

// FailingOverride returns the position and the field of the override of a snapshot because of which a cluster gets no content; ok is
// false if that is for another reason.
func FailingOverride(s *hub.Snapshot, err error) (at api.Origin, field string, ok bool) {
	failed, ok := errors.AsType[*work.OverrideError](err)
	if !ok {
		return api.Origin{}, "", false
	}
	field = failed.Field()
	return s.OverrideField(failed.ID(), field), field, true
}
