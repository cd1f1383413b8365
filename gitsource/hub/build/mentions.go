package build

import (
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A kustomizationFile is the content of one kustomization file.
type kustomizationFile struct {
	spec     types.Kustomization
	mentions []mention
	// generators are the positions of its generators.
	generators []sourcePosition
	// secrets are literals to mask.
	secrets []string
	// variables are the names in the field vars.
	variables []mention
	component bool
	problems  problem.List
	// Size is the approximate memory of the file.
	size int64
}

var kustomizationType = reflect.TypeFor[types.Kustomization]()

// A mentionFinder finds the references in a kustomization file. It decodes the file into
// kustomize's own types, so that it finds exactly the references that a build uses.
type mentionFinder struct {
	r   *document.Report
	out *kustomizationFile
}

func parseKustomization(name string, data []byte, limits limit.Limits) *kustomizationFile {
	out := &kustomizationFile{}
	syntax := parseBounded(name, data, limits)
	out.problems, out.size = syntax.Problems, syntax.Size
	if out.problems.HasErrors() {
		return out
	}
	r := &document.Report{Origin: api.Origin{Path: name}}
	if len(syntax.Documents) != 1 {
		r.Errorf(nil, "a kustomization is one document, and this file has %d", len(syntax.Documents))
		out.problems = append(out.problems, r.Problems...)
		return out
	}
	r.Root, r.LinesBefore = syntax.Documents[0].Root, syntax.Documents[0].LinesBefore
	f := &mentionFinder{r, out}
	text, _ := document.PlainText(data)
	if r.Root.Kind != yaml.MappingNode {
		r.Errorf(nil, "a kustomization is a mapping with fields such as resources")
	} else if err := out.spec.Unmarshal(text); err != nil {
		f.reportDecodeError(err)
	} else {
		f.find()
	}
	out.component = out.spec.Kind == types.ComponentKind
	out.problems = append(out.problems, r.Problems...)
	return out
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)`)
)

// reportDecodeError rewords the errors of kustomize's decoder.
func (f *mentionFinder) reportDecodeError(err error) {
	message := strings.TrimPrefix(err.Error(), "invalid Kustomization: ")
	if found := unknownField.FindStringSubmatch(message); found != nil {
		p := (*document.FieldPath)(nil).Child(found[1])
		if n, _ := document.Find(f.r.Root, p); n != nil {
			f.r.Errorf(p, "unknown field; %s", schema.DidYouMean(found[1], schema.FieldNames(kustomizationType)))
			return
		}
		f.r.Errorf(nil, "unknown field %s", found[1])
		return
	}
	if found := wrongType.FindStringSubmatch(message); found != nil {
		p := (*document.FieldPath)(nil).Child(strings.Split(found[2], ".")...)
		f.r.Errorf(p, "kustomize expects %s here, not %s", found[3], found[1])
		return
	}
	f.r.Errorf(nil, "%s", strings.TrimPrefix(message, "json: "))
}

func (f *mentionFinder) mention(p *document.FieldPath, value string, kind mentionKind) {
	f.out.mentions = append(f.out.mentions, mention{p.String(), f.r.LineOf(p), value, kind})
}

func (f *mentionFinder) list(field string, values []string, kind mentionKind) {
	p := (*document.FieldPath)(nil).Child(field)
	for i, v := range values {
		f.mention(p.At(i), v, kind)
	}
}

func (f *mentionFinder) find() {
	k, top := &f.out.spec, (*document.FieldPath)(nil)
	for _, msg := range k.EnforceFields() {
		f.r.Errorf(top.Child("kind"), "%s", msg)
	}
	if err := k.CheckEmpty(); err != nil {
		f.r.Errorf(nil, "the kustomization is empty; list something under resources, or remove the file")
	}
	f.list("resources", k.Resources, fileOrDirectory)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	f.list("bases", k.Bases, fileOrDirectory)
	f.list("components", k.Components, componentDirectory)
	f.list("crds", k.Crds, textFile)
	f.list("configurations", k.Configurations, textFile)
	if file, ok := k.OpenAPI["path"]; ok {
		f.mention(top.Child("openapi", "path"), file, textFile)
	}
	f.patches("patches", k.Patches)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	f.patches("patchesJson6902", k.PatchesJson6902)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, patch := range k.PatchesStrategicMerge {
		f.fileOrText(top.Child("patchesStrategicMerge").At(i), string(patch), textFile, nil)
	}
	for i, r := range k.Replacements {
		if r.Path != "" {
			f.mention(top.Child("replacements").At(i).Child("path"), r.Path, textFile)
		}
	}
	for i, g := range k.ConfigMapGenerator {
		f.generator(top.Child("configMapGenerator").At(i), g.GeneratorArgs)
	}
	for i, g := range k.SecretGenerator {
		f.out.secrets = append(f.out.secrets, g.LiteralSources...)
		f.generator(top.Child("secretGenerator").At(i), g.GeneratorArgs)
	}
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, v := range k.Vars {
		p := top.Child("vars").At(i)
		f.out.variables = append(f.out.variables, mention{field: p.String(), line: f.r.LineOf(p), value: v.Name})
	}
	f.deprecated()
	f.helm()
	f.plugins("generators", k.Generators)
	f.plugins("transformers", k.Transformers)
	f.plugins("validators", k.Validators)
}

// deprecated warns of deprecated fields. kustomize also does, but without the file name.
func (f *mentionFinder) deprecated() {
	for _, field := range []struct{ name, instead string }{
		{"bases", "resources"},
		{"commonLabels", "labels with includeSelectors: true"},
		{"imageTags", "images"},
		{"patchesJson6902", "patches"},
		{"patchesStrategicMerge", "patches"},
		{"vars", "replacements"},
	} {
		p := (*document.FieldPath)(nil).Child(field.name)
		if node, _ := document.Find(f.r.Root, p); node != nil {
			f.r.Warnf(p, "kustomize has deprecated this field; use %s", field.instead)
		}
	}
}

func (f *mentionFinder) patches(field string, patches []types.Patch) {
	for i, patch := range patches {
		if patch.Path != "" {
			f.mention((*document.FieldPath)(nil).Child(field).At(i).Child("path"), patch.Path, textFile)
		}
	}
}

func (f *mentionFinder) generator(p *document.FieldPath, g types.GeneratorArgs) {
	f.out.generators = append(f.out.generators, sourcePosition{name: g.Name, line: f.r.LineOf(p)})
	s := g.KvPairSources
	for i, source := range s.FileSources {
		file := source
		if _, after, ok := strings.Cut(source, "="); ok {
			file = after
		}
		f.mention(p.Child("files").At(i), file, dataFile)
	}
	for i, file := range s.EnvSources {
		f.mention(p.Child("envs").At(i), file, dataFile)
	}
	if s.EnvSource != "" {
		f.mention(p.Child("env"), s.EnvSource, dataFile)
	}
}

func (f *mentionFinder) helm() {
	k, top := &f.out.spec, (*document.FieldPath)(nil)
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"helmCharts", len(k.HelmCharts) > 0},
		{"helmChartInflationGenerator", len(k.HelmChartInflationGenerator) > 0},
		{"helmGlobals", k.HelmGlobals != nil},
	} {
		if field.set {
			f.r.Errorf(top.Child(field.name), noHelm)
		}
	}
}

const noHelm = "Helm charts are not rendered; commit the output of helm template, and list it under resources"

// fileOrText handles entries that are either a file name or YAML.
func (f *mentionFinder) fileOrText(p *document.FieldPath, value string, kind mentionKind, check func(*document.FieldPath, *yaml.Node)) {
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(value), &doc)
	inline := err == nil && len(doc.Content) == 1 && doc.Content[0].Kind != yaml.ScalarNode
	if !inline || isRemote(value) && !strings.Contains(value, "\n") {
		f.mention(p, value, kind)
		return
	}
	if check != nil {
		check(p, doc.Content[0])
	}
}
