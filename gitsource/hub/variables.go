package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
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
	out.Hash, _ = hashOf([]any{out.Properties, specs}) // decoded values can always be encoded
	return out
}

// variableIn returns the path of the first field of an object that contains a variable, in reverse order; nil if there is none. Objects
// with the substitute annotation, also those in an envelope, are skipped.
func variableIn(v any) (path []string) {
	switch v := v.(type) {
	case map[string]any:
		if meta, _ := v["metadata"].(map[string]any); meta != nil {
			if notes, _ := meta["annotations"].(map[string]any); notes[api.SubstituteAnnotation] != nil {
				return nil
			}
		}
		first := ""
		for key, field := range v {
			if path != nil && key > first {
				continue
			}
			below := variableIn(field)
			if hasVariable(key) {
				below = []string{}
			}
			if below != nil {
				path, first = append(below, key), key
			}
		}
	case []any:
		for i, item := range v {
			if below := variableIn(item); below != nil {
				return append(below, strconv.Itoa(i))
			}
		}
	case string:
		if hasVariable(v) && !strings.Contains(v, api.SubstituteAnnotation) {
			return []string{}
		}
	}
	return path
}

// hasVariable reports whether a text has variables that are not escaped.
func hasVariable(text string) bool {
	if !variable.In(text) {
		return false
	}
	_, found, err := variable.Split(text)
	return len(found) > 0 || err != nil
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

// A template is an object of a build in which variables are replaced for each cluster.
type template struct {
	origin  api.Origin
	release string
	object  map[string]any
	// texts are the keys of the fields that stay texts.
	texts map[string]bool
	// encrypted reports whether the object has values that are encrypted in the repository.
	encrypted bool
}

// addTemplatesIn adds the objects of a build that have variables as templates, and the others as items.
func (p *parsed) addTemplatesIn(namespace string) func(*document.Report, any) {
	add := p.addItemsIn(namespace)
	return func(r *document.Report, value any) {
		if object, is := value.(map[string]any); is && postbuild.Applies(object) {
			t := template{origin: r.Origin, release: r.Release, object: object, texts: map[string]bool{}}
			for _, path := range schema.TextFields(object) {
				t.texts[postbuild.Key(path)] = true
			}
			p.templates = append(p.templates, t)
			return
		}
		add(r, value)
	}
}

// variables returns the names of the variables in the templates, sorted.
func (p *parsed) variables() []string {
	if p.names == nil {
		p.names = []string{}
		for _, t := range p.templates {
			p.names = append(p.names, postbuild.Names(t.object)...)
		}
		slices.Sort(p.names)
		p.names = slices.Compact(p.names)
	}
	return p.names
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
				a.problem(problem.Error, it.at(field), field, "the commit has no ClusterVars %s; %s", from.Name, suggest(from.Name, maps.Keys(byName), "add it, or correct the name"))
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

// buildPerCluster replaces the variables in a build of an overlay, once for all clusters that have the same values, and adds the results to
// builds. It reports whether there are any variables.
func (l *Loader) buildPerCluster(a *assembly, u *overlayUse, b *overlayBuild, key buildKey, clusters []overlay.Cluster, builds map[buildKey]*overlayBuild) bool {
	if len(b.parsed.templates) == 0 {
		return false
	}
	keys := map[string]string{}
	u.perCluster[key.dir] = keys
	for _, c := range clusters {
		if _, chosen := slices.BinarySearch(u.chosen[key.dir], c.Name); !chosen {
			continue
		}
		values, sum := u.post.of(c).only(b.parsed.variables())
		keys[c.Name], key.values = sum, sum
		if known := builds[key]; known != nil {
			known.clusters = append(known.clusters, c.Name)
			continue
		}
		p := l.replaceVariables(a, u, b, key, values)
		if !a.addBuilt(p) {
			return true
		}
		builds[key] = &overlayBuild{
			OverlayBuild: &api.OverlayBuild{File: b.File}, parsed: p, sources: b.sources, fingerprint: b.fingerprint + sum, clusters: []string{c.Name}, by: u.it,
		}
	}
	return true
}

// replaceVariables returns what was built with the values of variables, unless it is cached.
func (l *Loader) replaceVariables(a *assembly, u *overlayUse, b *overlayBuild, key buildKey, values clusterValues) *parsed {
	at := cacheKey{b.File, b.fingerprint, true, "/" + key.namespace + "$" + u.it.id.String() + "$" + key.values}
	if p := l.cache[at]; p != nil {
		l.keep(at, p)
		return p
	}
	p := &parsed{forClusters: true}
	p.End, p.steps, p.charts = b.parsed.End, b.parsed.steps, b.parsed.charts
	add := p.addItemsIn(key.namespace)
	for _, t := range b.parsed.templates {
		r := &document.Report{Origin: t.origin, Release: t.release, Limits: a.limits}
		if t.encrypted { // neither a value nor the path to one may get into a message or past a mask
			r.Errorf(nil, "variables are not replaced in an object with encrypted values; annotate it with %s: disabled, or move what has variables to an object without such values", postbuild.Annotation)
		} else if object, errs := postbuild.Replace(t.object, values.values, t.texts); errs == nil {
			p.Size += document.SizeOf(object)
			add(r, object)
		} else {
			for _, e := range errs {
				r.Errorf(fieldOf(t.object, e.Field), "%s", values.message(e.Err, u.it.id))
			}
		}
		p.Problems = append(p.Problems, r.Problems...)
	}
	l.plain.markSecrets(p, b.File, b.sources...)
	for _, it := range p.items {
		if it.object != nil {
			it.object.Substituted = true
		}
	}
	l.keep(at, p) // before the items without variables are added: the schemas of those are shared already, and in use by snapshots
	p.items = append(p.items, b.parsed.items...)
	p.Problems = append(p.Problems, b.parsed.Problems...)
	return p
}

// fieldOf returns the path of a field of an object by its keys, those of lists as digits.
func fieldOf(object any, keys []string) (p *document.FieldPath) {
	for _, key := range keys {
		switch v := object.(type) {
		case map[string]any:
			p, object = p.Child(key), v[key]
		case []any:
			i, _ := strconv.Atoi(key) // as postbuild.Replace has written it
			p, object = p.At(i), v[i]
		}
	}
	return p
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

// keyFor returns the key of the build of a directory for a cluster.
func (u *overlayUse) keyFor(dir, cluster string) buildKey {
	key := u.key(dir)
	key.values = u.perCluster[dir][cluster]
	return key
}

// keys returns the keys of all builds of a directory.
func (u *overlayUse) keys(dir string) []buildKey {
	values, varies := u.perCluster[dir]
	if !varies {
		return []buildKey{u.key(dir)}
	}
	var all []buildKey
	for _, sum := range slices.Compact(slices.Sorted(maps.Values(values))) {
		key := u.key(dir)
		key.values = sum
		all = append(all, key)
	}
	return all
}

// setPerCluster sets the builds of a directory with variables, and returns the contents.
func setPerCluster(built *api.BuiltOverlay, u *overlayUse, dir string, values map[string]string, builds map[buildKey]*overlayBuild, fingerprint io.Writer) (contents []any) {
	if built.PerCluster == nil {
		built.PerCluster = map[string]map[string]string{}
	}
	built.PerCluster[dir] = map[string]string{}
	for _, c := range slices.Sorted(maps.Keys(values)) {
		key := u.keyFor(dir, c).text()
		built.PerCluster[dir][c] = key
		fmt.Fprintf(fingerprint, "%q %q\n", c, key)
	}
	for _, key := range u.keys(dir) {
		b := builds[key]
		built.Builds[key.text()] = b.OverlayBuild
		contents = append(contents, []any{key.text(), b.Hash})
		fmt.Fprintf(fingerprint, "%q %q %q\n", key.text(), b.fingerprint, b.Hash)
	}
	return contents
}
