package migration

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const argo = "argoproj.io"

// findArgo finds the ApplicationSets and Applications of Argo CD, and the clusters in their generators and in Secrets.
func (f *finder) findArgo() error {
	known := map[string]string{} // names of clusters by their servers
	var declared []string
	for _, d := range f.documents {
		if d.text("kind") != "Secret" || textAt(d.value, "metadata", "labels", "argocd.argoproj.io/secret-type") != "cluster" {
			continue
		}
		name := d.text("stringData", "name")
		if name == "" {
			name = d.text("metadata", "name")
		}
		c := f.cluster(nameOf(name))
		labels, _ := at(d.value, "metadata", "labels").(map[string]any)
		for key, value := range labels {
			if text, is := value.(string); is && !strings.Contains(key, "argocd.argoproj.io/") {
				c.labels[key] = text
			}
		}
		known[d.text("stringData", "server")] = c.name
		declared = append(declared, c.name)
	}
	for _, d := range f.documents {
		switch {
		case d.is(argo, "ApplicationSet"):
			generators, _ := at(d.value, "spec", "generators").([]any)
			for _, g := range generators {
				f.generate(d, g, known, declared)
			}
		case d.is(argo, "Application"):
			f.application(d, at(d.value, "spec"), d.text("metadata", "name"), nil, known)
		}
	}
	return nil
}

// A parameterSet has the parameters of one Application of an ApplicationSet.
type parameterSet struct {
	values map[string]string
	// app ends the name of what is deployed, if each set deploys something else.
	app string
}

// with returns the set with the parameters of another one in addition, which replace its own.
func (s parameterSet) with(o parameterSet) parameterSet {
	values := maps.Clone(s.values)
	maps.Copy(values, o.values)
	return parameterSet{values, s.app + o.app}
}

// generate adds the Applications of one generator.
func (f *finder) generate(d document, generator any, known map[string]string, declared []string) {
	name, template := d.text("metadata", "name"), at(d.value, "spec", "template", "spec")
	sets, ok := f.parameters(generator, declared)
	if !ok {
		f.leave("ApplicationSet %s (%s): a generator that is none of list, clusters, git directories, merge and matrix; write the MemberClusters and their labels", name, d.file)
	}
	for _, s := range sets {
		f.application(d, template, name+s.app, s.values, known)
	}
}

// parameters returns the sets of a generator, and reports whether it is one that is understood.
func (f *finder) parameters(generator any, declared []string) ([]parameterSet, bool) {
	elements, isList := at(generator, "list", "elements").([]any)
	directories, isGit := at(generator, "git", "directories").([]any)
	switch {
	case isList:
		var all []parameterSet
		for _, e := range elements {
			values := map[string]string{}
			addValues(values, "", e)
			all = append(all, parameterSet{values: values})
		}
		return all, true
	case isGit:
		return f.directories(directories), true
	case at(generator, "clusters") != nil:
		return f.declared(at(generator, "clusters"), declared), true
	case at(generator, "merge") != nil:
		return f.combined(at(generator, "merge"), declared, merged)
	case at(generator, "matrix") != nil:
		return f.combined(at(generator, "matrix"), declared, product)
	}
	return nil, false
}

// addValues adds the fields of a value, by their paths.
func addValues(values map[string]string, key string, value any) {
	fields, isMap := value.(map[string]any)
	if !isMap {
		values[key] = fmt.Sprint(value)
		return
	}
	for name, field := range fields {
		addValues(values, strings.TrimPrefix(key+"."+name, "."), field)
	}
}

// standIn is the cluster in place of those that the repository does not say.
const standIn = "in-cluster"

// declared are the sets of the generator clusters.
func (f *finder) declared(generator any, declared []string) (all []parameterSet) {
	wanted, _ := at(generator, "selector", "matchLabels").(map[string]any)
	if len(declared) == 0 {
		f.leave("the clusters of ApplicationSets are in Secrets that the repository does not have: write a MemberCluster for each, with its labels, in place of %s", standIn)
		declared, wanted = []string{standIn}, nil
	}
	for _, c := range declared {
		values := map[string]string{"name": c, "nameNormalized": c, "server": c}
		addValues(values, "values", at(generator, "values"))
		fits := true
		if known := f.clusters[c]; known != nil {
			for key, value := range known.labels {
				values["metadata.labels."+key] = value
			}
		}
		for key, value := range wanted {
			fits = fits && (values["metadata.labels."+key] == fmt.Sprint(value) || strings.Contains(key, "argocd.argoproj.io/"))
		}
		if fits {
			all = append(all, parameterSet{values: values})
		}
	}
	return all
}

// directories are the sets of the generator of directories.
func (f *finder) directories(entries []any) (all []parameterSet) {
	for _, entry := range entries {
		if exclude, _ := at(entry, "exclude").(bool); exclude {
			continue
		}
		found, _ := fs.Glob(f.files, textAt(entry, "path"))
		for _, dir := range found {
			s := parameterSet{values: map[string]string{"path": dir, "path.path": dir, "path.basename": path.Base(dir)}}
			for i, segment := range strings.Split(dir, "/") {
				s.values[fmt.Sprintf("path[%d]", i)] = segment
			}
			if variableSegment(strings.Split(dir, "/")) < 0 { // each directory is another app
				s.app = "-" + path.Base(dir)
			}
			all = append(all, s)
		}
	}
	return all
}

// combined returns the sets that a generator of generators makes of theirs.
func (f *finder) combined(generator any, declared []string, combine func(x, y []parameterSet, keys []any) []parameterSet) ([]parameterSet, bool) {
	generators, _ := at(generator, "generators").([]any)
	keys, _ := at(generator, "mergeKeys").([]any)
	var all []parameterSet
	for i, g := range generators {
		sets, ok := f.parameters(g, declared)
		if !ok {
			return nil, false
		}
		if i == 0 {
			all = sets
		} else {
			all = combine(all, sets, keys)
		}
	}
	return all, true
}

// product are all pairs of sets.
func product(x, y []parameterSet, _ []any) (all []parameterSet) {
	for _, a := range x {
		for _, b := range y {
			all = append(all, a.with(b))
		}
	}
	return all
}

// merged are the sets of x, with the parameters of those of y that have the same keys. Those of y that have the keys of none name
// clusters that the repository does not declare, and have the other parameters of the first of x.
func merged(x, y []parameterSet, keys []any) (all []parameterSet) {
	same := func(a, b parameterSet) bool {
		return !slices.ContainsFunc(keys, func(key any) bool { return a.values[fmt.Sprint(key)] != b.values[fmt.Sprint(key)] })
	}
	for _, a := range x {
		if i := slices.IndexFunc(y, func(b parameterSet) bool { return same(a, b) }); i >= 0 {
			a = a.with(y[i])
		}
		all = append(all, a)
	}
	others := false
	for _, b := range y {
		name := cmp.Or(b.values["name"], b.values["nameNormalized"])
		if len(x) > 0 && name != "" && !slices.ContainsFunc(x, func(a parameterSet) bool { return same(a, b) }) {
			others = true
			all = append(all, x[0].with(b).with(parameterSet{values: map[string]string{"name": name, "server": name}}))
		}
	}
	if others {
		all = slices.DeleteFunc(all, func(s parameterSet) bool { return s.values["name"] == standIn })
	}
	return all
}

var (
	parameter   = regexp.MustCompile(`\{\{-?\s*\.?([^{}]*?)\s*-?\}\}`)
	pathSegment = regexp.MustCompile(`^index \.path\.segments (\d+)$`)
)

// filled returns a template with the values of its parameters, and reports whether all of them have one.
func filled(text string, values map[string]string) (string, bool) {
	known := true
	out := parameter.ReplaceAllStringFunc(text, func(found string) string {
		key := parameter.FindStringSubmatch(found)[1]
		if index := pathSegment.FindStringSubmatch(key); index != nil {
			key = "path[" + index[1] + "]"
		}
		value, is := values[key]
		known = known && is
		return value
	})
	return out, known
}

// application adds what an Application deploys. Its cluster is the destination, or else what its parameters or its directory
// are named after.
func (f *finder) application(d document, spec any, name string, values, known map[string]string) {
	sources, _ := at(spec, "sources").([]any)
	if source := at(spec, "source"); source != nil {
		sources = append(sources, source)
	}
	release := cmp.Or(d.text("spec", "template", "metadata", "name"), d.text("metadata", "name"))
	release, _ = filled(release, values)
	namespace, _ := filled(textAt(spec, "destination", "namespace"), values)
	for _, source := range sources {
		if textAt(source, "ref") != "" && textAt(source, "path") == "" && textAt(source, "chart") == "" {
			continue // it is only referred to, for values
		}
		dir, ok := filled(textAt(source, "path"), values)
		isChart := textAt(source, "chart") != "" || at(source, "helm") != nil
		if !isChart && (dir == "" || !ok) {
			f.leave("%s (%s): its path %q has parameters that are not known here", name, d.file, textAt(source, "path"))
			continue
		}
		dir = f.patched(path.Clean(strings.TrimPrefix(dir, "/")), textAt(source, "path"), values)
		cluster := f.destination(spec, dir, values, known)
		if isChart || f.hasChart(dir) {
			f.addChart(nameOf(name), chartSource{source, values, namespace, nameOf(release), cluster})
			continue
		}
		f.add(nameOf(name), cluster, dir)
		if u := f.units[nameOf(name)]; u != nil && !strings.Contains(textAt(spec, "destination", "namespace"), "{{") {
			u.namespace = namespace
		}
	}
}

// patched returns the only directory that there is with another value of a parameter, if there is none with the values of an
// ApplicationSet: those are often replaced by patches, such as one for each environment.
func (f *finder) patched(dir, template string, values map[string]string) string {
	if f.has(dir) {
		return dir
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(key, "values.") || values[key] == values["name"] {
			continue
		}
		others := maps.Clone(values)
		others[key] = "*"
		pattern, _ := filled(template, others)
		if found, _ := fs.Glob(f.files, path.Clean(strings.TrimPrefix(pattern, "/"))); len(found) == 1 && f.has(found[0]) {
			return found[0]
		}
	}
	return dir
}

// local are the destinations that mean the cluster in which Argo CD runs.
var local = []string{standIn, "https://kubernetes.default.svc", ""}

func (f *finder) destination(spec any, dir string, values, known map[string]string) string {
	for _, key := range []string{"name", "server"} {
		text, ok := filled(textAt(spec, "destination", key), values)
		if c := known[text]; c != "" {
			return c
		}
		if ok && !slices.Contains(local, text) && !strings.Contains(text, "://") {
			return nameOf(text)
		}
	}
	for _, key := range []string{"cluster", "clusterName", "name"} {
		if values[key] != "" {
			return nameOf(values[key])
		}
	}
	if segments := strings.Split(dir, "/"); variableSegment(segments) >= 0 {
		return nameOf(segments[variableSegment(segments)])
	}
	return standIn
}
