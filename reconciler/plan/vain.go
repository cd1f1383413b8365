package plan

import (
	"fmt"
	"iter"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// inVain warns of the overrides of a placement that are for none of its
// clusters.
func (t *thinker) inVain(p *Placement) {
	for _, name := range t.now.now.renderer.Idle(t.held(p)) {
		p.Warnings = append(p.Warnings, t.vain(name, "spec.policy.overrideRules", "has no rule for any cluster the placement holds"))
	}
}

// held are the clusters of a placement that are to stay.
func (t *thinker) held(p *Placement) iter.Seq[placement.Cluster] {
	return func(yield func(placement.Cluster) bool) {
		for _, b := range p.Schedule.Bindings {
			if c, declared := t.memo.fleet.cluster(b.Cluster); declared && !b.Unscheduled && !yield(c) {
				return
			}
		}
	}
}

// vain is a warning that an override of the head does nothing.
func (t *thinker) vain(name api.NamespacedName, field, why string) hub.Problem {
	w := hub.Problem{Field: field, Severity: hub.Warning}
	if name.Namespace == "" {
		for _, o := range t.Head.ClusterOverrides {
			if o.Name == name.Name {
				w.Origin = o.Origin
			}
		}
		w.Message = fmt.Sprintf("ClusterResourceOverride %q %s", name.Name, why)
		return w
	}
	for _, o := range t.Head.Overrides {
		if o.Namespace == name.Namespace && o.Name == name.Name {
			w.Origin = o.Origin
		}
	}
	w.Message = fmt.Sprintf("ResourceOverride %q %s", name.Namespace+"/"+name.Name, why)
	return w
}

// A neglect is which overrides of a commit no placement has to do with.
type neglect struct {
	head     *hub.Snapshot
	warnings hub.Problems
}

// neglected warns of the overrides bound to no placement that select nothing
// anywhere. As long as the selectors of a placement are invalid, nobody knows
// what it would hold. Of those bound to a placement that does not exist the
// loader warns.
func (t *thinker) neglected() hub.Problems {
	m := t.memo
	if m.neglect.head == t.Head {
		return m.neglect.warnings
	}
	m.neglect = neglect{head: t.Head}
	at := m.commits[t.Head.Commit.Hash]
	if at == nil || len(at.cros)+len(at.ros) == 0 {
		return nil
	}
	for _, p := range at.placements {
		if p.renderer == nil {
			return nil
		}
	}
	renderers := func(yield func(*work.Renderer) bool) {
		for _, p := range at.placements {
			if !yield(p.renderer) {
				return
			}
		}
	}
	for _, name := range work.Unused(at.cros, at.ros, renderers) {
		m.neglect.warnings = append(m.neglect.warnings, t.vain(name, "", "selects nothing that any placement holds"))
	}
	return m.neglect.warnings
}
