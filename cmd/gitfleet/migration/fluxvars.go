package migration

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable/postbuild"
)

func newSubstitutions(f *finder) *substitutions {
	return &substitutions{
		finder: f, values: map[string]map[string]map[string]string{}, secret: map[string]bool{},
		named: map[string]map[string]bool{}, required: map[string]map[string]bool{},
		inline: map[string]map[string]string{}, shared: map[string]map[string]string{},
	}
}

// varsName is the name of the ClusterVars.
const varsName = "flux"

// add adds the values and the variables of a Kustomization for a cluster, whose Kustomizations are in a directory. Flux replaces nothing
// if a Kustomization has no values at all.
func (s *substitutions) add(d document, unit, cluster, root, target string) {
	postBuild := at(d.value, "spec", "postBuild")
	if postBuild == nil {
		return
	}
	values := map[string]string{}
	sources, _ := at(postBuild, "substituteFrom").([]any)
	unknown := false
	for _, source := range sources {
		found := s.valuesOf(d, source, root)
		unknown = unknown || found == nil
		maps.Copy(values, found)
	}
	inline, _ := at(postBuild, "substitute").(map[string]any)
	for name, value := range inline {
		values[name] = valueText(value)
	}
	if len(values) == 0 && !unknown || !s.findUses(unit, target) {
		return
	}
	if s.values[unit] == nil {
		s.values[unit] = map[string]map[string]string{}
	}
	s.values[unit][cluster] = values
	s.secret[unit] = s.secret[unit] || unknown
}

// valueText is the text of a value, without line breaks, which Flux removes.
func valueText(value any) string { return strings.ReplaceAll(fmt.Sprint(value), "\n", "") }

// valuesOf returns the values of a ConfigMap that the Kustomizations of a cluster name: one below their directory, or else any. Nil says
// that they are not known.
func (s *substitutions) valuesOf(d document, source any, root string) map[string]string {
	kind, name := textAt(source, "kind"), textAt(source, "name")
	if kind == "Secret" {
		s.finder.leave("spec.postBuild of Kustomization %s: the values of Secret %s are not written into a ClusterVars, which is shown; place the Secret, and let the objects refer to it", d.text("metadata", "name"), name)
		return nil
	}
	var found *document
	for i, candidate := range s.finder.documents {
		if candidate.text("apiVersion") == "v1" && candidate.text("kind") == kind && candidate.text("metadata", "name") == name && (found == nil || within(root, candidate.file) && !within(root, found.file)) {
			found = &s.finder.documents[i]
		}
	}
	if found == nil {
		s.finder.leave("spec.postBuild of Kustomization %s: the repository has no %s %s; write its values into the ClusterVars", d.text("metadata", "name"), kind, name)
		return nil
	}
	values := map[string]string{}
	data, _ := found.value["data"].(map[string]any)
	for key, value := range data {
		text := valueText(value)
		if api.EncryptedWith(text) != "" {
			s.finder.leave("%s: the value of %s is encrypted, and a ClusterVars is shown; place it as a Secret, and let the objects refer to it", found.file, key)
			continue
		}
		values[key] = text
	}
	return values
}

// findUses finds the variables in what a directory builds for a unit, and reports whether there are any.
func (s *substitutions) findUses(unit, target string) (found bool) {
	for _, name := range s.filesOf(target) {
		text, err := fs.ReadFile(s.finder.files, name)
		if err != nil {
			continue // reported when it is built
		}
		for part := range strings.SplitSeq("\n"+string(text), "\n---") {
			var in any
			if yaml.Unmarshal([]byte(part), &in) != nil {
				in = part // a file of a generator
			}
			if object, is := in.(map[string]any); is && !postbuild.Applies(object) {
				continue
			}
			names := postbuild.Names(in)
			found = found || len(names) > 0
			addTo(s.named, unit, names)
			addTo(s.required, unit, postbuild.Required(in))
		}
	}
	return found
}

// addTo adds names to those of a unit.
func addTo(all map[string]map[string]bool, unit string, names []string) {
	if all[unit] == nil {
		all[unit] = map[string]bool{}
	}
	for _, name := range names {
		all[unit][name] = true
	}
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
		_ = fs.WalkDir(s.finder.files, dir, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				files[name] = true
			}
			return err
		}) // what cannot be read is reported when it is built
		for k, bases := range s.finder.bases {
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

// resolve decides where the values are written: in one ClusterVars those that all units agree about, and the others in the overlays.
func (s *substitutions) resolve() {
	s.addEmpty()
	for _, name := range s.names() {
		if s.agreed(name) {
			for _, byCluster := range s.values {
				for c, values := range byCluster {
					if value, set := values[name]; set {
						s.share(c, name, value)
					}
				}
			}
			continue
		}
		for unit, byCluster := range s.values {
			s.setInline(unit, name, byCluster)
		}
	}
}

// addEmpty adds empty values for the variables that nothing sets, since Flux replaces them by nothing.
func (s *substitutions) addEmpty() {
	for _, unit := range slices.Sorted(maps.Keys(s.values)) {
		empty := map[string]bool{}
		for _, values := range s.values[unit] {
			for name := range s.required[unit] {
				if _, set := values[name]; !set && !s.secret[unit] {
					values[name], empty[name] = "", true
				}
			}
		}
		if len(empty) > 0 {
			s.finder.leave("spec.postBuild of Kustomization %s: nothing sets %s, so that it is empty, as with Flux; write $${NAME} in the files if they mean the text", unit, few(slices.Sorted(maps.Keys(empty))))
		}
	}
}

// names are those of all variables, sorted.
func (s *substitutions) names() []string {
	all := map[string]bool{}
	for _, byCluster := range s.values {
		for _, values := range byCluster {
			for name := range values {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// agreed reports whether all units for the same cluster have the same value of a variable. A unit that names the variable and sets no
// value has its default, so that it does not agree with one that sets a value.
func (s *substitutions) agreed(name string) bool {
	type choice struct {
		set   bool
		value string
	}
	first := map[string]choice{}
	for unit, byCluster := range s.values {
		for c, values := range byCluster {
			value, set := values[name]
			if !set && !s.named[unit][name] {
				continue
			}
			own := choice{set, value}
			if other, known := first[c]; known && other != own {
				return false
			}
			first[c] = own
		}
	}
	return true
}

func (s *substitutions) share(cluster, name, value string) {
	if s.shared[cluster] == nil {
		s.shared[cluster] = map[string]string{}
	}
	s.shared[cluster][name] = value
}

// setInline writes the value of a variable into the overlay of a unit. If it differs between clusters, it refers to one of the
// ClusterVars.
func (s *substitutions) setInline(unit, name string, byCluster map[string]map[string]string) {
	differs := map[string]bool{}
	text := ""
	for _, values := range byCluster {
		value, set := values[name]
		text = escapes.Replace(value)
		differs[fmt.Sprint(set, value)] = true
	}
	switch {
	case differs["false"] && len(differs) == 1:
		return
	case len(differs) > 1:
		of := strings.ReplaceAll(unit, "-", "_") + "_" + name
		text = "${vars." + of + "}"
		for c, values := range byCluster {
			s.share(c, of, values[name])
		}
	}
	if s.inline[unit] == nil {
		s.inline[unit] = map[string]string{}
	}
	s.inline[unit][name] = text
}

// escapes escapes what spec.postBuild.substitute would read as a variable.
var escapes = strings.NewReplacer("${cluster.", "$${cluster.", "${vars.", "$${vars.")

// postBuild returns the field of the overlay of a unit; empty if nothing is replaced there.
func (s *substitutions) postBuild(unit string) string {
	if s.values[unit] == nil {
		return ""
	}
	spec := api.PostBuild{Substitute: s.inline[unit]}
	if len(s.shared) > 0 {
		spec.SubstituteFrom = []api.PostBuildSource{{Kind: "ClusterVars", Name: varsName}}
	}
	text, _ := yaml.Marshal(map[string]any{"postBuild": spec}) // texts can always be encoded
	return "  " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ") + "\n"
}

// text returns the ClusterVars with the values: those that all clusters have alike, and those of each other one; empty if there are
// none.
func (s *substitutions) text() string {
	spec := api.ClusterVarsSpec{Vars: map[string]string{}}
	names := slices.Sorted(maps.Keys(s.finder.clusters))
	own := map[string]map[string]string{}
	for _, c := range names {
		for name, value := range s.shared[c] {
			if slices.ContainsFunc(names, func(other string) bool { v, set := s.shared[other][name]; return !set || v != value }) {
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
	text, _ := yaml.Marshal(map[string]any{"apiVersion": "gitfleet.dev/v1alpha1", "kind": "ClusterVars", "metadata": map[string]string{"name": varsName}, "spec": spec})
	return string(text)
}
