package build

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
)

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)`)
)

// expectations say what a Go type of kustomize stands for, by the beginning of its name, and how to write that. The last one is for
// its structs.
var expectations = []struct{ goType, want, fix string }{
	{"int", "a whole number", "without quotes"},
	{"bool", "true or false", "without quotes"},
	{"string", "a string", "in quotes"},
	{"[]", "a list", "with - before each item"},
	{"types.Patch", "a mapping", "as path: FILE"},
	{"", "a mapping", "as NAME: VALUE"},
}

// jsonTypes has a value of each type of JSON.
var jsonTypes = map[string]any{"array": []any{}, "bool": false, "number": 0.0, "object": map[string]any{}, "string": ""}

// reportWrongType reports that the value at p has another type than kustomize expects, by what wrongType has matched.
func (f *mentionFinder) reportWrongType(p *document.FieldPath, found []string) {
	got, goType := document.Describe(jsonTypes[found[1]]), strings.TrimPrefix(found[3], "*")
	if at := firstOfType(f.r.Root, f.r.Object, strings.Split(found[2], "."), found[1]); at != nil {
		p = at
	}
	for _, e := range expectations {
		if strings.HasPrefix(goType, e.goType) {
			f.r.Errorf(p, "must be %s, not %s; write it %s", e.want, got, e.fix)
			return
		}
	}
}

// firstOfType returns the first value of a JSON type at some keys below a node, in any item of the lists on the way, or else in the list or
// the mapping that is there; nil if there is none.
func firstOfType(n *yaml.Node, p *document.FieldPath, keys []string, jsonType string) *document.FieldPath {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if len(keys) == 0 && jsonTypeOf(n) == jsonType {
		return p
	}
	for i, item := range n.Content {
		below, rest := p, keys
		switch {
		case n.Kind == yaml.SequenceNode:
			below = p.At(i)
		case n.Kind == yaml.MappingNode && i%2 == 0 || len(keys) > 0 && !strings.EqualFold(n.Content[i-1].Value, keys[0]):
			continue
		default:
			below, rest = p.Child(n.Content[i-1].Value), keys[min(1, len(keys)):]
		}
		if at := firstOfType(item, below, rest, jsonType); at != nil {
			return at
		}
	}
	return nil
}

// jsonTypeOf returns the name of a key of jsonTypes.
func jsonTypeOf(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!map":
		return "object"
	case "!!seq":
		return "array"
	case "!!bool":
		return "bool"
	case "!!int", "!!float":
		return "number"
	}
	return "string"
}

// A mentionFinder finds the references in a document of a kustomization.
type mentionFinder struct {
	r *document.Report
	k *kustomization
}

func (f *mentionFinder) mention(p *document.FieldPath, value string, kind mentionKind) {
	f.k.mentions = append(f.k.mentions, mention{p.String(), f.r.LineOf(p), value, kind})
}

func (f *mentionFinder) list(field string, values []string, kind mentionKind) {
	for i, v := range values {
		f.mention(f.r.Field(field).At(i), v, kind)
	}
}

func (f *mentionFinder) patches(field string, patches []types.Patch) {
	for i, patch := range patches {
		if patch.Path != "" {
			f.mention(f.r.Field(field).At(i).Child("path"), patch.Path, textFile)
		}
		if patch.Target != nil {
			f.target(f.r.Field(field).At(i).Child("target"), *patch.Target)
		}
		if field == "patches" {
			p := f.r.Field(field).At(i)
			if hasText := strings.TrimSpace(patch.Patch) != ""; hasText && patch.Path != "" {
				f.r.Errorf(p, "has both patch and path; keep one of them")
			} else if !hasText && patch.Path == "" {
				f.r.Errorf(p, "has neither patch nor path; write one of them")
			}
			target := p.Child("target")
			f.k.targets = append(f.k.targets, mention{field: target.String(), line: f.r.LineOf(target)})
		}
	}
}

// target checks the regular expressions of a target, and records which selector is none: kustomize does not say where they are, and reads
// a selector only once an object matches the rest of the target.
func (f *mentionFinder) target(p *document.FieldPath, s types.Selector) {
	for _, expr := range []struct{ field, value string }{
		{"group", s.Group}, {"version", s.Version}, {"kind", s.Kind}, {"name", s.Name}, {"namespace", s.Namespace},
	} {
		if _, err := regexp.Compile("^(?:" + expr.value + ")$"); err != nil {
			f.r.Errorf(p.Child(expr.field), "%q is no regular expression, as which kustomize reads it; correct it", expr.value)
		}
	}
	if field, fault := selectorFault(s); fault != "" {
		at := p.Child(field)
		f.k.selectorFaults = append(f.k.selectorFaults, mention{field: at.String(), line: f.r.LineOf(at), value: fault})
	}
}

// selectorFault returns the first field of a target that is no selector, and what is wrong with it; empty if there is none.
func selectorFault(s types.Selector) (field, fault string) {
	for _, selector := range []struct{ field, value string }{{"labelSelector", s.LabelSelector}, {"annotationSelector", s.AnnotationSelector}} {
		if _, err := labels.Parse(selector.value); err != nil {
			return selector.field, fmt.Sprintf("%q is no selector; write one such as app=web or tier in (a, b)", selector.value)
		}
	}
	return "", ""
}

// fileOf returns the file of a source that is written as FILE or KEY=FILE.
func fileOf(source string) string {
	if _, file, ok := strings.Cut(source, "="); ok {
		return file
	}
	return source
}

func (f *mentionFinder) generator(p *document.FieldPath, kind string, g types.GeneratorArgs) {
	f.k.generators = append(f.k.generators, sourcePosition{kind: kind, name: g.Name, line: f.r.LineOf(p)})
	if g.Name == "" {
		f.r.Errorf(p.Child("name"), "missing; write the name of the %s", kind)
	}
	if g.Behavior != "" && types.NewGenerationBehavior(g.Behavior) == types.BehaviorUnspecified {
		f.r.Warnf(p.Child("behavior"), "kustomize takes %q for create; %s", g.Behavior, schema.SuggestKnown(g.Behavior, []string{"create", "merge", "replace"}))
	}
	s := g.KvPairSources
	for i, source := range s.FileSources {
		f.mention(p.Child("files").At(i), fileOf(source), dataFile)
	}
	for i, file := range s.EnvSources {
		f.mention(p.Child("envs").At(i), file, dataFile)
	}
	if s.EnvSource != "" {
		f.mention(p.Child("env"), s.EnvSource, dataFile)
	}
}

// fileOrText handles entries that are either a file name or YAML. It returns the YAML; nil for a
// file.
func (f *mentionFinder) fileOrText(p *document.FieldPath, value string, kind mentionKind) *yaml.Node {
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(value), &doc)
	inline := err == nil && len(doc.Content) == 1 && doc.Content[0].Kind != yaml.ScalarNode
	if !inline || isRemote(value) && !strings.Contains(value, "\n") {
		f.mention(p, value, kind)
		return nil
	}
	return doc.Content[0]
}
