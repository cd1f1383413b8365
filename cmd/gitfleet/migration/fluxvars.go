package migration

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// substitutions are what Flux replaces in what Kustomizations build.
type substitutions struct {
	*finder
	// values are those of the variables by cluster, and setBy the Kustomizations that set them.
	values, setBy map[string]map[string]string
	// units have variables in what they build.
	units map[string]bool
	// uses are the variables as they are written, by file.
	uses map[string]map[string]bool
}

// fluxVariable matches a variable as Flux reads it: $${NAME}, which it does not replace, ${NAME}, ${NAME:-DEFAULT} and others.
var fluxVariable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)([^}]*)\}`)

// fluxDisabled is the label or annotation of objects in which Flux replaces nothing.
const fluxDisabled = "kustomize.toolkit.fluxcd.io/substitute"

// add adds the values and the variables of a Kustomization for a cluster, whose Kustomizations are in a directory.
func (s *substitutions) add(d document, unit, cluster, root, target string) {
	postBuild := at(d.value, "spec", "postBuild")
	if postBuild == nil || !s.findUses(target) {
		return
	}
	s.units[unit] = true
	values := map[string]string{}
	sources, _ := at(postBuild, "substituteFrom").([]any)
	for _, source := range sources {
		maps.Copy(values, s.valuesOf(d, source, root))
	}
	inline, _ := at(postBuild, "substitute").(map[string]any)
	for name, value := range inline {
		values[name] = fmt.Sprint(value)
	}
	if s.values[cluster] == nil {
		s.values[cluster], s.setBy[cluster] = map[string]string{}, map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		by := d.text("metadata", "name")
		if other, set := s.values[cluster][name]; set && other != values[name] {
			s.leave("variable %s: Kustomizations %s and %s have different values for cluster %s, and a ClusterVars has one; use two names", name, s.setBy[cluster][name], by, cluster)
			continue
		}
		s.values[cluster][name], s.setBy[cluster][name] = values[name], by
	}
}

// valuesOf returns the values of a ConfigMap that the Kustomizations of a cluster name: one below their directory, or else any.
func (s *substitutions) valuesOf(d document, source any, root string) map[string]string {
	kind, name := textAt(source, "kind"), textAt(source, "name")
	if kind == "Secret" {
		s.leave("spec.postBuild of Kustomization %s: the values of Secret %s are not written into a ClusterVars, which is shown; place the Secret, and let the objects refer to it", d.text("metadata", "name"), name)
		return nil
	}
	var found *document
	for i, candidate := range s.documents {
		if candidate.text("apiVersion") == "v1" && candidate.text("kind") == kind && candidate.text("metadata", "name") == name && (found == nil || within(root, candidate.file) && !within(root, found.file)) {
			found = &s.documents[i]
		}
	}
	if found == nil {
		s.leave("spec.postBuild of Kustomization %s: the repository has no %s %s; write its values into the ClusterVars", d.text("metadata", "name"), kind, name)
		return nil
	}
	values := map[string]string{}
	data, _ := found.value["data"].(map[string]any)
	for key, value := range data {
		text := fmt.Sprint(value)
		if api.EncryptedWith(text) != "" {
			s.leave("%s: the value of %s is encrypted, and a ClusterVars is shown; place it as a Secret, and let the objects refer to it", found.file, key)
			continue
		}
		values[key] = text
	}
	return values
}

// findUses finds the variables in what a directory builds, and reports whether there are any.
func (s *substitutions) findUses(target string) (any bool) {
	for _, name := range s.filesOf(target) {
		text, err := fs.ReadFile(s.files, name)
		if err != nil {
			continue // reported when it is built
		}
		for part := range strings.SplitSeq("\n"+string(text), "\n---") {
			if strings.Contains(part, fluxDisabled) && strings.Contains(part, "disabled") {
				continue
			}
			for _, found := range fluxVariable.FindAllString(part, -1) {
				if s.uses[name] == nil {
					s.uses[name] = map[string]bool{}
				}
				s.uses[name][found], any = true, true
			}
		}
	}
	return any
}

// filesOf are the files in and below a directory, and those of the bases that kustomizations there refer to, sorted.
func (s *substitutions) filesOf(dir string) []string {
	files, seen := map[string]bool{}, map[string]bool{}
	var read func(dir string)
	read = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		_ = fs.WalkDir(s.files, dir, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				files[name] = true
			}
			return err
		}) // what cannot be read is reported when it is built
		for k, bases := range s.bases {
			if k == dir || within(dir, k) {
				for _, base := range bases {
					read(base)
				}
			}
		}
	}
	read(dir)
	return slices.Sorted(maps.Keys(files))
}

// text returns the ClusterVars with the values: those that all clusters have alike, and those of each other one. It also says how
// to write the variables.
func (s *substitutions) text() string {
	for _, file := range slices.Sorted(maps.Keys(s.uses)) {
		var write []string
		for _, use := range slices.Sorted(maps.Keys(s.uses[file])) {
			write = append(write, rewritten(use))
		}
		s.leave("%s: %s", file, strings.Join(write, ", "))
	}
	spec := api.ClusterVarsSpec{Vars: map[string]string{}}
	names := slices.Sorted(maps.Keys(s.clusters))
	own := map[string]map[string]string{}
	for _, c := range names {
		for name, value := range s.values[c] {
			if slices.ContainsFunc(names, func(other string) bool { v, set := s.values[other][name]; return !set || v != value }) {
				if own[c] == nil {
					own[c] = map[string]string{}
				}
				own[c][name] = value
				continue
			}
			spec.Vars[name] = value
		}
	}
	for _, c := range slices.Sorted(maps.Keys(own)) {
		spec.Clusters = append(spec.Clusters, api.ClusterVarsRule{Names: []string{c}, Vars: own[c]})
	}
	if len(spec.Vars)+len(spec.Clusters) == 0 {
		return ""
	}
	text, _ := yaml.Marshal(map[string]any{"apiVersion": "gitfleet.dev/v1alpha1", "kind": "ClusterVars", "metadata": map[string]string{"name": "flux"}, "spec": spec})
	return string(text)
}

// rewritten says how a variable of Flux is written here.
func rewritten(use string) string {
	m := fluxVariable.FindStringSubmatch(use)
	name, rest := m[1], m[2]
	fallback, isDefault := strings.CutPrefix(rest, ":-")
	if !isDefault {
		fallback, isDefault = strings.CutPrefix(rest, ":=")
	}
	switch {
	case strings.HasPrefix(use, "$$"):
		return fmt.Sprintf("write %s for %s", use[1:], use)
	case rest == "":
		return fmt.Sprintf("write ${vars.%s} for %s", name, use)
	case isDefault && !strings.Contains(fallback, "${"):
		return fmt.Sprintf("write ${vars.%s:-%s} for %s", name, fallback, use)
	}
	return fmt.Sprintf("%s has no counterpart; write the result as a variable of its own", use)
}
