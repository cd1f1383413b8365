package migration

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const argo = "argoproj.io"

// An argoFinder finds what Argo CD deploys.
type argoFinder struct {
	finder *finder
	// names are those of clusters by their servers, and declared the names of the clusters that Secrets declare.
	names    map[string]string
	declared []string
	deployed []deployed // in the order in which it was found
}

// findArgo finds the ApplicationSets and Applications of Argo CD, and the clusters in their generators and in Secrets.
func (f *finder) findArgo() error {
	a := &argoFinder{finder: f, names: map[string]string{}}
	for _, d := range f.documents {
		if d.text("kind") == "Secret" && textAt(d.value, "metadata", "labels", "argocd.argoproj.io/secret-type") == "cluster" {
			a.declare(d)
		}
	}
	for _, d := range f.documents {
		switch {
		case d.is(argo, "ApplicationSet"):
			generators, _ := at(d.value, "spec", "generators").([]any)
			for _, g := range generators {
				a.generate(d, g)
			}
		case d.is(argo, "Application"):
			a.application(d, at(d.value, "spec"), d.text("metadata", "name"), nil)
		}
	}
	a.addDeployed()
	return nil
}

// declare adds the cluster of a Secret.
func (f *argoFinder) declare(d document) {
	c := f.finder.cluster(nameOf(cmp.Or(d.text("stringData", "name"), d.text("metadata", "name"))))
	labels, _ := at(d.value, "metadata", "labels").(map[string]any)
	for key, value := range labels {
		if text, is := value.(string); is && !strings.Contains(key, "argocd.argoproj.io/") {
			c.labels[key] = text
		}
	}
	f.names[d.text("stringData", "server")] = c.name
	f.declared = append(f.declared, c.name)
}

// A deployed directory is one that Argo CD deploys on a cluster, with the namespace of objects without one, which may be named after
// the cluster.
type deployed struct {
	name, cluster, dir, namespace string
	ofCluster                     bool
}

// addDeployed adds the directories that were found. Those of one name become one overlay, unless they have different namespaces or
// one cluster gets several of them.
func (f *argoFinder) addDeployed() {
	namespaces := map[string]map[string]bool{}
	for _, d := range f.deployed {
		if namespaces[d.name] == nil {
			namespaces[d.name] = map[string]bool{}
		}
		namespaces[d.name][d.namespace] = true
	}
	for _, d := range f.deployed {
		if f.configuresArgo(d.dir) {
			f.finder.leave("%s: %s has what configures Argo CD only; what its Applications deploy is taken", d.name, d.dir)
			continue
		}
		alone := len(namespaces[d.name]) > 1 || d.ofCluster
		if alone {
			d.name = nameOf(d.name + "-" + d.cluster)
		}
		name, ok := f.freeName(d, alone)
		if !ok {
			f.finder.leave("%s: %s on %s, with namespace %q: other overlays have its name; write a ClusterOverlay for it", d.name, d.dir, d.cluster, d.namespace)
			continue
		}
		f.finder.add(name, d.cluster, d.dir)
		if u := f.finder.units[name]; u != nil {
			u.namespace = d.namespace
			if alone { // its namespace is for this cluster only
				u.path = d.dir
			}
		}
	}
}

// freeName returns the name of the overlay that can have a directory: its own, or one that ends with what differs from the overlay
// that has this name. alone says that the overlay is for one cluster.
func (f *argoFinder) freeName(d deployed, alone bool) (name string, ok bool) {
	takes := func(name string) bool {
		u := f.finder.units[name]
		switch {
		case u == nil:
			return true
		case u.namespace != d.namespace || alone != (u.path != ""):
			return false
		}
		return u.dirs[d.cluster] == d.dir || u.dirs[d.cluster] == "" && !alone
	}
	ends := []string{path.Base(d.dir), d.dir, d.namespace}
	if u := f.finder.units[d.name]; u != nil && u.dirs[d.cluster] == d.dir {
		ends = []string{d.namespace, path.Base(d.dir), d.dir}
	}
	name = d.name
	for _, end := range ends {
		if takes(name) {
			return name, true
		}
		name = nameOf(name + "-" + end)
	}
	return name, takes(name)
}

// configuresArgo reports whether all objects below a directory are Applications and the like.
func (f *argoFinder) configuresArgo(dir string) bool {
	found := false
	for _, d := range f.finder.documents {
		if !within(dir, d.file) {
			continue
		}
		if !d.is(argo, "Application") && !d.is(argo, "ApplicationSet") && !d.is(argo, "AppProject") {
			return false
		}
		found = true
	}
	return found
}

// A parameterSet has the parameters of one Application of an ApplicationSet.
type parameterSet struct {
	values map[string]string
	// app ends the name of what is deployed, if each set deploys something else.
	app string
}

// with returns the set with the parameters of another one in addition, which replace its own.
func (s parameterSet) with(o parameterSet) parameterSet {
	values := map[string]string{}
	maps.Copy(values, s.values)
	maps.Copy(values, o.values)
	return parameterSet{values, s.app + o.app}
}

// generate adds the Applications of one generator.
func (f *argoFinder) generate(d document, generator any) {
	name, template := d.text("metadata", "name"), at(d.value, "spec", "template", "spec")
	sets, ok := f.parameters(generator, nil)
	if !ok {
		f.finder.leave("ApplicationSet %s (%s): a generator that is none of list, clusters, git directories, merge and matrix; write the MemberClusters and their labels", name, d.file)
	}
	for _, s := range sets {
		f.application(d, template, name+s.app, s.values)
	}
}

// parameters returns the sets of a generator, and reports whether it is one that is understood. outer are the parameters of the
// generators before it in a matrix.
func (f *argoFinder) parameters(generator any, outer map[string]string) ([]parameterSet, bool) {
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
		return f.directories(directories, outer), true
	case at(generator, "clusters") != nil:
		return f.clusterSets(at(generator, "clusters"), outer), true
	case at(generator, "merge") != nil:
		return f.merge(at(generator, "merge"))
	case at(generator, "matrix") != nil:
		return f.matrix(at(generator, "matrix"))
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

// clusterSets are the sets of the generator clusters.
func (f *argoFinder) clusterSets(generator any, outer map[string]string) (all []parameterSet) {
	declared := f.declared
	wanted, _ := at(generator, "selector", "matchLabels").(map[string]any)
	if len(declared) == 0 {
		f.finder.leave("the clusters of ApplicationSets are in Secrets that the repository does not have: write a MemberCluster for each, with its labels, in place of %s", standIn)
		declared, wanted = []string{standIn}, nil
	}
	for _, c := range declared {
		values := map[string]string{"name": c, "nameNormalized": c, "server": c}
		addValues(values, "values", at(generator, "values"))
		fits := true
		if known := f.finder.clusters[c]; known != nil {
			for key, value := range known.labels {
				values["metadata.labels."+key] = value
			}
		}
		for key, value := range wanted {
			text, known := filled(fmt.Sprint(value), outer)
			if !known {
				f.finder.leave("the clusters of an ApplicationSet with the label %s: %q has parameters that are not known here; write an overlay for these clusters", key, value)
			}
			fits = known && fits && (values["metadata.labels."+key] == text || strings.Contains(key, "argocd.argoproj.io/"))
		}
		if fits {
			all = append(all, parameterSet{values: values})
		}
	}
	return all
}

// directories are the sets of the generator of directories.
func (f *argoFinder) directories(entries []any, outer map[string]string) (all []parameterSet) {
	excluded := map[string]bool{}
	for _, entry := range entries {
		if exclude, _ := at(entry, "exclude").(bool); exclude {
			_, found, known := f.matching(entry, outer)
			if !known { // nothing is known of what is left of the others
				return nil
			}
			for _, dir := range found {
				excluded[dir] = true
			}
		}
	}
	for _, entry := range entries {
		if exclude, _ := at(entry, "exclude").(bool); exclude {
			continue
		}
		pattern, found, _ := f.matching(entry, outer)
		for _, dir := range found {
			if excluded[dir] {
				continue
			}
			s := parameterSet{values: map[string]string{"path": dir, "path.path": dir, "path.basename": path.Base(dir), "path.basenameNormalized": nameOf(path.Base(dir))}}
			for i, segment := range strings.Split(dir, "/") {
				s.values[fmt.Sprintf("path[%d]", i)] = segment
			}
			s.app = appOf(pattern, dir)
			all = append(all, s)
		}
	}
	return all
}

// matching returns the pattern of an entry of the generator of directories, the directories that match it, and whether its parameters
// are known; if not, there are none.
func (f *argoFinder) matching(entry any, outer map[string]string) (pattern string, found []string, known bool) {
	template := textAt(entry, "path")
	pattern, known = filled(template, outer)
	if !known {
		f.finder.leave("the directories %q of an ApplicationSet, which have parameters that are not known here; write a ClusterOverlay for them", template)
		return pattern, nil, false
	}
	found, _ = fs.Glob(f.finder.files, pattern)
	return pattern, found, true
}

// appOf ends the name of what a directory deploys if the pattern that it matches is for several apps: the names in place of its
// wildcards, without that of a cluster or an environment.
func appOf(pattern, dir string) string {
	segments, app := strings.Split(dir, "/"), ""
	variable := variableSegment(segments)
	for i, part := range strings.Split(pattern, "/") {
		if strings.ContainsAny(part, "*?[") && i != variable {
			app += "-" + segments[i]
		}
	}
	if app == "" && variable < 0 {
		app = "-" + path.Base(dir)
	}
	return app
}

// matrix returns all pairs of the sets of two generators, of which the second may have parameters of the first.
func (f *argoFinder) matrix(generator any) ([]parameterSet, bool) {
	generators, _ := at(generator, "generators").([]any)
	if len(generators) == 0 {
		return nil, false
	}
	all := []parameterSet{{}}
	for _, g := range generators {
		var pairs []parameterSet
		for _, s := range all {
			sets, ok := f.parameters(g, s.values)
			if !ok {
				return nil, false
			}
			for _, o := range sets {
				pairs = append(pairs, s.with(o))
			}
		}
		all = pairs
	}
	return all, true
}

// merge returns the sets of the first generator with the parameters of the others.
func (f *argoFinder) merge(generator any) ([]parameterSet, bool) {
	generators, _ := at(generator, "generators").([]any)
	keys, _ := at(generator, "mergeKeys").([]any)
	var all []parameterSet
	for i, g := range generators {
		sets, ok := f.parameters(g, nil)
		if !ok {
			return nil, false
		}
		if i == 0 {
			all = sets
		} else {
			all = merged(all, sets, keys)
		}
	}
	return all, true
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

// application adds what an Application deploys. Its cluster is the destination, or else what its parameters or its directory
// are named after.
func (f *argoFinder) application(d document, spec any, name string, values map[string]string) {
	sources, _ := at(spec, "sources").([]any)
	if source := at(spec, "source"); source != nil {
		sources = append(sources, source)
	}
	release := cmp.Or(d.text("spec", "template", "metadata", "name"), d.text("metadata", "name"))
	release, _ = filled(release, values)
	template := textAt(spec, "destination", "namespace")
	namespace, ok := filled(template, values)
	if !ok {
		f.finder.leave("the namespace %q of %s (%s), which has parameters that are not known here; it is proposed without spec.namespace", template, name, d.file)
		namespace = ""
	}
	for _, source := range sources {
		if textAt(source, "ref") != "" && textAt(source, "path") == "" && textAt(source, "chart") == "" {
			continue // it is only referred to, for values
		}
		dir, ok := filled(textAt(source, "path"), values)
		isChart := textAt(source, "chart") != "" || at(source, "helm") != nil
		if !isChart && (dir == "" || !ok) {
			f.finder.leave("%s (%s): its path %q has parameters that are not known here", name, d.file, textAt(source, "path"))
			continue
		}
		dir = f.patched(path.Clean(strings.TrimPrefix(dir, "/")), textAt(source, "path"), values)
		cluster := f.destination(spec, dir, values)
		if isChart || f.finder.hasChart(dir) {
			f.finder.addChart(nameOf(name), chartSource{source, values, namespace, nameOf(release), cluster})
			continue
		}
		f.deployed = append(f.deployed, deployed{nameOf(name), cluster, dir, namespace, namedAfter(template, cluster, values)})
	}
}

// namedAfter reports whether a template has a parameter whose value is the name of a cluster.
func namedAfter(template, cluster string, values map[string]string) bool {
	text, _ := filled(template, values)
	for key, value := range values {
		others := maps.Clone(values)
		others[key] = ""
		if other, _ := filled(template, others); nameOf(value) == cluster && other != text {
			return true
		}
	}
	return false
}

// patched returns the only directory that there is with another value of a parameter, if there is none with the values of an
// ApplicationSet: those are often replaced by patches, such as one for each environment.
func (f *argoFinder) patched(dir, template string, values map[string]string) string {
	if f.finder.has(dir) {
		return dir
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(key, "values.") || values[key] == values["name"] {
			continue
		}
		others := maps.Clone(values)
		others[key] = "*"
		pattern, _ := filled(template, others)
		if found, _ := fs.Glob(f.finder.files, path.Clean(strings.TrimPrefix(pattern, "/"))); len(found) == 1 && f.finder.has(found[0]) {
			return found[0]
		}
	}
	return dir
}

// local are the destinations that mean the cluster in which Argo CD runs.
var local = []string{standIn, "https://kubernetes.default.svc", ""}

func (f *argoFinder) destination(spec any, dir string, values map[string]string) string {
	for _, key := range []string{"name", "server"} {
		text, ok := filled(textAt(spec, "destination", key), values)
		if c := f.names[text]; c != "" {
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
