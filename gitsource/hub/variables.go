package hub

import (
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// variables returns what variables stand for, and reports variables that two ClusterVars set. The items are sorted by ID.
func (a *assembly) variables() *api.Variables {
	out := &api.Variables{Properties: map[string]map[string]string{}}
	var specs []any
	setBy := map[string]*item{}
	for _, it := range a.items {
		switch {
		case it.cluster != nil:
			if properties := declaredProperties(it.cluster); len(properties) > 0 {
				out.Properties[it.cluster.Name] = properties
			}
		case it.vars != nil:
			out.Vars, specs = append(out.Vars, it.vars), append(specs, it.vars.Spec)
			for _, name := range it.vars.Spec.Names() {
				if other := setBy[name]; other != nil && other != it {
					a.problem(problem.Error, it.origin, "spec", "the variable %s is set by %s as well (%s); set it in one of them", name, other.id, positionText(other.origin))
				}
				setBy[name] = it
			}
		}
	}
	out.Hash, _ = hashOf([]any{out.Properties, specs}) // decoded values can always be encoded
	return out
}
