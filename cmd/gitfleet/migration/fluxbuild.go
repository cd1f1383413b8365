package migration

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// annotationsTransformer sets annotations of objects, and not of their pods, as Flux does.
const annotationsTransformer = "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: common}\nfieldSpecs: [{path: metadata/annotations, create: true}]\nannotations: "

// changesOf are the fields of a Kustomization that change what its path builds, as fields of a kustomization. Directories are relative
// to the repository. There are none if it changes nothing.
func changesOf(d document, target string) map[string]any {
	fields := map[string]any{}
	for _, key := range []string{"patches", "images", "namePrefix", "nameSuffix"} {
		if value := at(d.value, "spec", key); value != nil {
			fields[key] = value
		}
	}
	var components []string
	listed, _ := at(d.value, "spec", "components").([]any)
	for _, c := range listed {
		components = append(components, path.Join(target, fmt.Sprint(c)))
	}
	if components != nil {
		fields["components"] = components
	}
	if labels := at(d.value, "spec", "commonMetadata", "labels"); labels != nil {
		fields["labels"] = []any{map[string]any{"pairs": labels}}
	}
	if annotations := at(d.value, "spec", "commonMetadata", "annotations"); annotations != nil {
		text, _ := json.Marshal(annotations) // decoded from YAML
		fields["transformers"] = []string{annotationsTransformer + string(text) + "\n"}
	}
	if namespace := d.text("spec", "targetNamespace"); namespace != "" && len(fields) > 0 {
		fields["namespace"] = namespace
	}
	return fields
}

// addChanges adds what a Kustomization changes for a cluster. If its path has no kustomization, nothing can refer to it.
func (f *finder) addChanges(d document, unit, cluster, target string) {
	fields := changesOf(d, target)
	if len(fields) == 0 {
		return
	}
	if _, is := f.kustomizations[target]; !is {
		f.note("patches", d.text("metadata", "name"))
		return
	}
	if f.changes[unit] == nil {
		f.changes[unit] = map[string]map[string]any{}
	}
	f.changes[unit][cluster] = fields
}

// writeChanges writes kustomizations with what Kustomizations change: one for all clusters of a unit, or one for each of them if
// they differ.
func (f *finder) writeChanges() {
	root := path.Join(f.directory(), "overlays")
	for _, name := range slices.Sorted(maps.Keys(f.changes)) {
		u := f.units[name]
		different := map[string]bool{}
		for c, base := range u.dirs {
			text, _ := json.Marshal(f.changes[name][c]) // decoded from YAML
			different[base+"\x00"+string(text)] = true
		}
		for _, c := range slices.Sorted(maps.Keys(u.dirs)) {
			dir := path.Join(root, name)
			if len(different) > 1 {
				dir = path.Join(dir, c)
			}
			f.added[dir+"/kustomization.yaml"] = kustomizationText(dir, u.dirs[c], f.changes[name][c])
			u.dirs[c] = dir
		}
	}
}

func kustomizationText(dir, base string, changes map[string]any) string {
	up := strings.Repeat("../", strings.Count(dir, "/")+1)
	fields := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{up + base}}
	maps.Copy(fields, changes)
	if components, is := changes["components"].([]string); is {
		components = slices.Clone(components)
		for i := range components {
			components[i] = up + components[i]
		}
		fields["components"] = components
	}
	text, _ := yaml.Marshal(fields) // decoded from YAML
	return string(text)
}
