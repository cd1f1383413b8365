package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// plugins accepts kustomize's built-in generators and transformers, and finds the files that
// they read. Others would be programs to run.
func (f *mentionFinder) plugins(field string, values []string) {
	for i, v := range values {
		p := f.r.Field(field).At(i)
		switch text := f.fileOrText(p, v, pluginFile); {
		case text == nil:
		case isInflator(p.String(), text):
			f.inflator(p, mention{field: p.String(), line: f.r.LineOf(p), value: v}, f.k.file, text)
		default:
			f.plugin(p, text)
		}
	}
}

// parsePlugins finds the references in a file of generators or transformers, which an entry of the kustomization refers to.
func (k *kustomization) parsePlugins(entry mention, documents []*document.Report) {
	inflators := 0
	for _, doc := range documents {
		r := &document.Report{Origin: doc.Origin, Root: doc.Root, LinesBefore: doc.LinesBefore}
		f := &mentionFinder{r, k}
		if isInflator(entry.field, doc.Root) {
			inflators++
			f.inflator(nil, entry, doc.Origin.Path, doc.Root)
		} else {
			f.plugin(nil, doc.Root)
		}
		k.problems = append(k.problems, r.Problems...)
	}
	if inflators > 0 && inflators < len(documents) {
		k.fail(entry, "%s has charts and other generators; move the charts to a file of their own, or to helmCharts", documents[0].Origin.Path)
	}
}

// pluginFiles are the fields of kustomize's plugins that name files.
var pluginFiles = map[string]map[string]mentionKind{
	"ConfigMapGenerator":             {"files": dataFile, "envs": dataFile, "env": dataFile},
	"SecretGenerator":                {"files": dataFile, "envs": dataFile, "env": dataFile},
	"PatchTransformer":               {"path": textFile},
	"PatchJson6902Transformer":       {"path": textFile},
	"PatchStrategicMergeTransformer": {"paths": textFile},
	"ValueAddTransformer":            {"targetFilePath": textFile},
	"ReplacementTransformer":         {"path": textFile}, // of each of its replacements
}

func (f *mentionFinder) plugin(p *document.FieldPath, node *yaml.Node) {
	var config map[string]any
	if err := node.Decode(&config); err != nil {
		f.r.Errorf(p, "a generator or transformer is a mapping with apiVersion: builtin and a kind")
		return
	}
	kind, _ := config["kind"].(string)
	switch version, _ := config["apiVersion"].(string); {
	case kind == "":
		f.r.Errorf(p, "a generator or transformer has apiVersion: builtin and a kind")
		return
	case version != "builtin" || !slices.Contains(krusty.GetBuiltinPluginNames(), kind):
		f.r.Errorf(p, "%s is no built-in plugin of kustomize, and other plugins are programs, which are never run; use a built-in one, or commit the output of the plugin", kind)
		return
	case strings.HasPrefix(kind, "Helm"):
		f.r.Errorf(p, "charts are rendered only where they are listed under helmCharts or generators of a kustomization; move it there")
		return
	}
	if made, is := strings.CutSuffix(kind, "Generator"); is {
		metadata, _ := config["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		f.k.pluginObjects = append(f.k.pluginObjects, pluginObject{f.r.Origin.Path, sourcePosition{kind: made, name: name, line: f.r.LineOf(p)}})
	}
	f.pluginMentions(p, kind, config)
	replacements, _ := field(config, "replacements").([]any)
	for _, r := range replacements {
		if one, ok := r.(map[string]any); ok {
			f.pluginMentions(p, kind, one)
		}
	}
	if kind == "SecretGenerator" {
		f.k.literals = append(f.k.literals, texts(field(config, "literals"))...)
	}
}

func (f *mentionFinder) pluginMentions(p *document.FieldPath, kind string, config map[string]any) {
	files := pluginFiles[kind]
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, file := range texts(field(config, name)) {
			if files[name] == dataFile {
				file = fileOf(file)
			}
			f.mention(p, file, files[name])
		}
	}
}

// field returns a field in any case, as kustomize does. kustomize accepts two spellings of some
// fields.
func field(m map[string]any, name string) any {
	var found []any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if strings.EqualFold(key, name) {
			if list, ok := m[key].([]any); ok {
				found = append(found, list...)
			} else {
				found = append(found, m[key])
			}
		}
	}
	return found
}

// texts returns the values of a field that is a string or a list of strings.
func texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, one := range list {
		if one != nil {
			out = append(out, fmt.Sprint(one))
		}
	}
	return out
}
