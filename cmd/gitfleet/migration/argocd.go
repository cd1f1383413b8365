package migration

import (
	"fmt"
	"io/fs"
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

// generate adds the Applications of one generator.
func (f *finder) generate(d document, generator any, known map[string]string, declared []string) {
	name, template := d.text("metadata", "name"), at(d.value, "spec", "template", "spec")
	switch {
	case at(generator, "list", "elements") != nil:
		elements, _ := at(generator, "list", "elements").([]any)
		for _, e := range elements {
			values := map[string]string{}
			fields, _ := e.(map[string]any)
			for key, value := range fields {
				values[key] = fmt.Sprint(value)
			}
			f.application(d, template, name, values, known)
		}
	case at(generator, "clusters") != nil:
		wanted, _ := at(generator, "clusters", "selector", "matchLabels").(map[string]any)
		for _, c := range declared {
			labels := f.clusters[c].labels
			values := map[string]string{"name": c, "server": c}
			fits := true
			for key, value := range wanted {
				fits = fits && (labels[key] == fmt.Sprint(value) || strings.Contains(key, "argocd.argoproj.io/"))
			}
			for key, value := range labels {
				values["metadata.labels."+key] = value
			}
			if fits {
				f.application(d, template, name, values, known)
			}
		}
		if len(declared) == 0 {
			f.leave("ApplicationSet %s (%s): its clusters are in Secrets that the repository does not have; write a MemberCluster for each", name, d.file)
		}
	case at(generator, "git", "directories") != nil:
		directories, _ := at(generator, "git", "directories").([]any)
		for _, entry := range directories {
			if exclude, _ := at(entry, "exclude").(bool); exclude {
				continue
			}
			found, _ := fs.Glob(f.files, textAt(entry, "path"))
			for _, dir := range found {
				values := map[string]string{"path": dir, "path.path": dir, "path.basename": path.Base(dir)}
				for i, segment := range strings.Split(dir, "/") {
					values[fmt.Sprintf("path[%d]", i)] = segment
				}
				application := name
				if variableSegment(strings.Split(dir, "/")) < 0 { // each directory is another app
					application += "-" + path.Base(dir)
				}
				f.application(d, template, application, values, known)
			}
		}
	default:
		f.leave("ApplicationSet %s (%s): a generator that is neither list, clusters nor git directories; write the MemberClusters and their labels", name, d.file)
	}
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
	for _, source := range sources {
		if textAt(source, "chart") != "" || at(source, "helm") != nil {
			f.leave("Helm chart of %s (%s)", name, d.file)
			continue
		}
		dir, ok := filled(textAt(source, "path"), values)
		if dir == "" || !ok {
			f.leave("%s (%s): its path %q has parameters that are not known here", name, d.file, textAt(source, "path"))
			continue
		}
		dir = path.Clean(strings.TrimPrefix(dir, "/"))
		cluster := f.destination(spec, dir, values, known)
		f.add(nameOf(name), cluster, dir)
		namespace := textAt(spec, "destination", "namespace")
		if u := f.units[nameOf(name)]; u != nil && !strings.Contains(namespace, "{{") {
			u.namespace = namespace
		}
	}
}

// local are the destinations that mean the cluster in which Argo CD runs.
var local = []string{"in-cluster", "https://kubernetes.default.svc", ""}

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
	return "in-cluster"
}
