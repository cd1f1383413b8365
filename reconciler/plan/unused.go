package plan

import (
	"fmt"
	"iter"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// warnIdleOverrides warns of overrides of a placement that have no rule for any of its clusters.
func (pl *placementPlanner) warnIdleOverrides(p *Placement) {
	for _, name := range pl.current.prepared.renderer.Idle(pl.planner.heldClusters(p)) {
		p.Warnings = append(p.Warnings, pl.planner.overrideWarning(name, "spec.policy.overrideRules", "has no rule for any cluster the placement holds"))
	}
}

func (pl *planner) heldClusters(p *Placement) iter.Seq[placement.Cluster] {
	return func(yield func(placement.Cluster) bool) {
		for _, b := range p.Schedule.Bindings {
			if c, declared := pl.memo.members.Cluster(b.Cluster); declared && !b.Unscheduled && !yield(c) {
				return
			}
		}
	}
}

// overrideWarning returns a warning about an override of the commit in force.
func (pl *planner) overrideWarning(name api.NamespacedName, field, why string) problem.Problem {
	w := problem.Problem{Field: field, Severity: problem.Warning}
	if name.Namespace == "" {
		for _, o := range pl.InForce.ClusterOverrides {
			if o.Name == name.Name {
				w.Origin = o.Origin
			}
		}
		w.Message = fmt.Sprintf("ClusterResourceOverride %q %s", name.Name, why)
		return w
	}
	for _, o := range pl.InForce.Overrides {
		if o.Namespace == name.Namespace && o.Name == name.Name {
			w.Origin = o.Origin
		}
	}
	w.Message = fmt.Sprintf("ResourceOverride %q %s", name.Namespace+"/"+name.Name, why)
	return w
}

// unusedOverrideWarnings warns of overrides without a placement that select nothing anywhere. While the selectors of a
// placement are invalid, it is not known what it would select, and nothing is reported. The loader warns of overrides
// bound to a placement that does not exist.
func (pl *planner) unusedOverrideWarnings() problem.List {
	at := pl.memo.inForce
	if at.unused == nil {
		warnings := pl.findUnusedOverrides(at)
		at.unused = &warnings
	}
	return *at.unused
}

func (pl *planner) findUnusedOverrides(at *commitCache) (warnings problem.List) {
	if len(at.placements) == 0 {
		return nil
	}
	var renderers []*work.Renderer
	for _, p := range at.placements {
		if p.renderer == nil {
			return nil
		}
		renderers = append(renderers, p.renderer)
	}
	for _, name := range work.Unused(at.cros, at.ros, renderers) {
		warnings = append(warnings, pl.overrideWarning(name, "", "selects nothing that any placement holds"))
	}
	return warnings
}
