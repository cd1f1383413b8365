package build

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
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
	{"", "a mapping", "as NAME: VALUE"},
}

// jsonTypes has a value of each type of JSON.
var jsonTypes = map[string]any{"array": []any{}, "bool": false, "number": 0.0, "object": map[string]any{}, "string": ""}

// reportWrongType reports that the value at p has another type than kustomize expects, by what wrongType has matched.
func (f *mentionFinder) reportWrongType(p *document.FieldPath, found []string) {
	got, goType := document.Describe(jsonTypes[found[1]]), strings.TrimPrefix(found[3], "*")
	for _, e := range expectations {
		if strings.HasPrefix(goType, e.goType) {
			f.r.Errorf(p, "must be %s, not %s; write it %s", e.want, got, e.fix)
			return
		}
	}
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
		f.r.Warnf(p.Child("behavior"), "kustomize takes %q for create; %s", g.Behavior, schema.DidYouMean(g.Behavior, []string{"create", "merge", "replace"}))
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
