package hub

import (
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
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

// mostGrowth limits the values of the variables in all objects of a commit together, for one cluster. A value of shortValue is one
// that every cluster may have, such as its name; objects do not become much larger by those.
const (
	mostGrowth = 64 << 20
	shortValue = 256
)

// growsTooMuch reports whether the objects with their variables take much more memory than limits.commitSize counts.
func (s *Snapshot) growsTooMuch() bool {
	longest := map[string]int{}
	long := func(values map[string]string, prefix string) {
		for key, value := range values {
			if len(value) > shortValue {
				longest[prefix+key] = max(longest[prefix+key], len(value))
			}
		}
	}
	for _, properties := range s.Variables.Properties {
		long(properties, variable.Properties+".")
	}
	for _, vars := range s.Variables.Vars {
		long(vars.Spec.Vars, variable.Vars+".")
		for _, rule := range vars.Spec.Clusters {
			long(rule.Vars, variable.Vars+".")
		}
	}
	if len(longest) == 0 {
		return false
	}
	sum := 0
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, field := range v {
				add(key)
				add(field)
			}
		case []any:
			for _, item := range v {
				add(item)
			}
		case string:
			if variable.In(v) {
				_, found, _ := variable.Split(v)
				for _, one := range found {
					sum += longest[one.Of+"."+one.Key]
				}
			}
		}
	}
	for _, o := range s.Objects {
		add(o.Content.Object)
		if o.Overlay != nil {
			for _, built := range o.Overlay.Builds {
				for _, object := range built.Objects {
					add(object.Content.Object)
				}
			}
		}
	}
	return sum > mostGrowth
}
