package forecast

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// literalVariables warns of placements whose objects have variables that nothing asks to replace, at the first of them.
func literalVariables(p *plan.Plan) (out problem.List) {
	for pl := range p.Placements.Values() {
		if pl.Spec == nil || pl.Spec.Annotations[api.SubstituteAnnotation] != "" {
			continue
		}
		first, names := literalsOf(pl)
		if first == nil {
			continue
		}
		at := first.Origin
		at.Line = first.Variable.Line
		out = append(out, problem.Problem{Origin: at, Field: first.Variable.Field, Severity: problem.Warning, Message: fmt.Sprintf(
			"variables are not replaced in %s, so that clusters get them as they are written; annotate each object, or %s for all of its objects, with %s: %s, or with %s if this is text",
			FewOf(names), pl.Key, api.SubstituteAnnotation, api.SubstituteEnabled, api.SubstituteDisabled)})
	}
	return out
}

// literalsOf returns the objects of a placement that have variables and no annotation about them. Those with encrypted values may
// only look like it.
func literalsOf(p *plan.Placement) (first *api.Object, names []string) {
	known := map[api.ID]bool{}
	add := func(o *api.Object) {
		if o.Variable == nil || o.Substituted || o.HashKey != nil || known[o.ID] {
			return
		}
		known[o.ID] = true
		names = append(names, o.ID.String())
		if first == nil {
			first = o
		}
	}
	for _, o := range p.Selection.Objects {
		add(o)
		if o.Overlay != nil {
			for _, key := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
				for _, built := range o.Overlay.Builds[key].Objects {
					add(built)
				}
			}
		}
	}
	return first, names
}
