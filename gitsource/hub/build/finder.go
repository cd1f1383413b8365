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
			p := f.r.Field(field).At(i).Child("target")
			f.k.targets = append(f.k.targets, mention{field: p.String(), line: f.r.LineOf(p)})
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
