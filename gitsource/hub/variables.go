package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/placement/variable"
	"github.com/gitfleet/gitfleet/placement/variable/postbuild"
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
	out.Hash, _ = api.HashOf([]any{out.Properties, specs}, nil) // decoded values can always be encoded
	return out
}

func declaredProperties(c *Cluster) map[string]string {
	all := map[string]string{}
	for name, value := range c.Annotations {
		if property, is := strings.CutPrefix(name, api.PropertyAnnotationPrefix); is {
			all[property] = value
		}
	}
	return all
}

// maxGrowth limits the values of the variables in all objects of a commit together, for one cluster. A value of shortValue is one
// that every cluster may have, such as its name; objects do not become much larger by those.
const (
	maxGrowth  = 64 << 20
	shortValue = 256
)

// growsTooMuch reports whether replacing the variables makes the objects much larger than limits.commitSize allows for.
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
					if !object.Substituted { // what it still has are texts
						add(object.Content.Object)
					}
				}
			}
		}
	}
	return sum > maxGrowth
}

// A postBuild has the values of the variables that an overlay replaces.
type postBuild struct {
	spec *api.PostBuild
	// all are the values of all ClusterVars of the commit, for ${vars.NAME}, and named those that the overlay names.
	all, named *variable.Values
	// files are those of the ClusterVars with the values, which may decide names and namespaces.
	files []string
	known map[string]clusterValues
}

// clusterValues are the values for a cluster. Faults say what is wrong with those that are not among them.
type clusterValues struct {
	values map[string]string
	faults map[string]error
}

// newPostBuild finds the values for an overlay, and reports ClusterVars that the commit does not have.
func newPostBuild(a *assembly, it *item) *postBuild {
	p := &postBuild{spec: it.overlay.PostBuild, known: map[string]clusterValues{}}
	byName, setBy := map[string]*item{}, map[string]*item{}
	var all, named []*api.ClusterVars
	for _, other := range a.items {
		if other.vars != nil {
			byName[other.id.Name] = other
			all = append(all, other.vars)
			for _, name := range other.vars.Spec.Names() {
				setBy[name] = other
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.spec.Substitute)) {
		_, used, _ := variable.Split(p.spec.Substitute[name])
		for _, one := range used {
			if vars := setBy[one.Key]; one.Of == variable.Vars && vars != nil {
				_, files := a.readFor(vars)
				p.files = append(p.files, files...)
			}
		}
	}
	slices.SortFunc(all, func(x, y *api.ClusterVars) int { return strings.Compare(x.Name, y.Name) })
	for i, from := range p.spec.SubstituteFrom {
		vars := byName[from.Name]
		if vars == nil {
			field := fmt.Sprintf("spec.postBuild.substituteFrom[%d]", i)
			if !a.invalid[api.ID{Group: api.OverlayGroup, Kind: "ClusterVars", Name: from.Name}] {
				a.problem(problem.Error, it.at(field), field, "the commit has no ClusterVars %s; %s", from.Name, api.Suggest(from.Name, slices.Sorted(maps.Keys(byName)), "add it, or correct the name"))
			}
			continue
		}
		named = append(named, vars.vars)
		_, files := a.readFor(vars)
		p.files = append(p.files, files...)
	}
	p.all, p.named = variable.NewValues(all), variable.NewValues(named)
	return p
}

// of returns the values for a cluster.
func (p *postBuild) of(c overlay.Cluster) clusterValues {
	known, is := p.known[c.Name]
	if is {
		return known
	}
	known = clusterValues{p.named.For(c.Name, c.Labels), map[string]error{}}
	c.Vars = p.all.For(c.Name, c.Labels)
	for name, text := range p.spec.Substitute {
		value, err := variable.Replace(text, c)
		if err != nil {
			delete(known.values, name)
			known.faults[name] = variable.WithoutCluster(err) // so that all such clusters have the same build
			continue
		}
		known.values[name] = value
	}
	p.known[c.Name] = known
	return known
}

// only returns the values of some variables, and a hash of them.
func (v clusterValues) only(names []string) (out clusterValues, key string) {
	out = clusterValues{map[string]string{}, map[string]error{}}
	h := sha256.New()
	for _, name := range names {
		value, known := v.values[name]
		switch {
		case known:
			out.values[name] = value
		case v.faults[name] != nil:
			out.faults[name] = v.faults[name]
		}
		fmt.Fprintf(h, "%q %t %q %v\n", name, known, value, v.faults[name])
	}
	return out, hex.EncodeToString(h.Sum(nil))[:16]
}

// message returns what is wrong with a variable, and how to correct it.
func (v clusterValues) message(err error, of api.ID) string {
	undefined, is := errors.AsType[*postbuild.Undefined](err)
	switch {
	case !is:
		return err.Error()
	case v.faults[undefined.Name] != nil:
		return fmt.Sprintf("spec.postBuild.substitute.%s of %s: %v", undefined.Name, of, v.faults[undefined.Name])
	}
	name, literal := undefined.Name, ""
	if undefined.Secret {
		name, literal = "NAME", ", or $${ for the text ${"
	}
	return fmt.Sprintf("%v; set it in spec.postBuild of %s or in a ClusterVars that it names, or write a default such as ${%s:=TEXT}%s", err, of, name, literal)
}
