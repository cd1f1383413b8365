package hub

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

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
	// variables are the names under vars.
	variables []mention
	component bool
	problems  Problems
	// size is the approximate memory of the file.
	size int64
}

var kustomizationType = reflect.TypeFor[types.Kustomization]()

// A mentionFinder reads a kustomization file with kustomize's own types, so that it sees
// exactly what a build sees.
type mentionFinder struct {
	r   *report
	out *kustomizationFile
}

func parseKustomization(name string, data []byte, limits Limits) *kustomizationFile {
	out := &kustomizationFile{}
	syntax := parseBounded(name, data, limits)
	out.problems, out.size = syntax.problems, syntax.size
	if hasErrors(out.problems) {
		return out
	}
	r := &report{origin: api.Origin{Path: name}}
	if len(syntax.documents) != 1 {
		r.errorf(nil, "a kustomization is one document, and this file has %d", len(syntax.documents))
		out.problems = append(out.problems, r.problems...)
		return out
	}
	r.root, r.offset = syntax.documents[0].root, syntax.documents[0].before
	f := &mentionFinder{r, out}
	text, _ := plainText(data)
	if r.root.Kind != yaml.MappingNode {
		r.errorf(nil, "a kustomization is a mapping with fields such as resources")
	} else if err := out.spec.Unmarshal(text); err != nil {
		f.misfit(err)
	} else {
		f.find()
	}
	out.component = out.spec.Kind == types.ComponentKind
	out.problems = append(out.problems, r.problems...)
	return out
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)`)
)

// misfit rewords the errors of kustomize's decoder.
func (f *mentionFinder) misfit(err error) {
	message := strings.TrimPrefix(err.Error(), "invalid Kustomization: ")
	if found := unknownField.FindStringSubmatch(message); found != nil {
		p := (*fieldPath)(nil).child(found[1])
		if n, _ := find(f.r.root, p); n != nil {
			f.r.errorf(p, "unknown field; %s", didYouMean(found[1], kustomizationFields()))
			return
		}
		f.r.errorf(nil, "unknown field %s", found[1])
		return
	}
	if found := wrongType.FindStringSubmatch(message); found != nil {
		p := (*fieldPath)(nil).child(strings.Split(found[2], ".")...)
		f.r.errorf(p, "a %s does not fit here; kustomize wants %s", found[1], found[3])
		return
	}
	f.r.errorf(nil, "%s", strings.TrimPrefix(message, "json: "))
}

func kustomizationFields() []string {
	var names []string
	for _, f := range fieldsOf(kustomizationType) {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

func (f *mentionFinder) mention(p *fieldPath, value string, kind mentionKind) {
	f.out.mentions = append(f.out.mentions, mention{p.String(), f.r.lineOf(p), value, kind})
}

func (f *mentionFinder) list(field string, values []string, kind mentionKind) {
	p := (*fieldPath)(nil).child(field)
	for i, v := range values {
		f.mention(p.at(i), v, kind)
	}
}

func (f *mentionFinder) find() {
	k, top := &f.out.spec, (*fieldPath)(nil)
	for _, msg := range k.EnforceFields() {
		f.r.errorf(top.child("kind"), "%s", msg)
	}
	if err := k.CheckEmpty(); err != nil {
		f.r.errorf(nil, "the kustomization is empty; list something under resources, or remove the file")
	}
	f.list("resources", k.Resources, fileOrDirectory)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	f.list("bases", k.Bases, fileOrDirectory)
	f.list("components", k.Components, componentDirectory)
	f.list("crds", k.Crds, textFile)
	f.list("configurations", k.Configurations, textFile)
	if file, ok := k.OpenAPI["path"]; ok {
		f.mention(top.child("openapi", "path"), file, textFile)
	}
	f.patches("patches", k.Patches)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	f.patches("patchesJson6902", k.PatchesJson6902)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, patch := range k.PatchesStrategicMerge {
		f.fileOrText(top.child("patchesStrategicMerge").at(i), string(patch), textFile, nil)
	}
	for i, r := range k.Replacements {
		if r.Path != "" {
			f.mention(top.child("replacements").at(i).child("path"), r.Path, textFile)
		}
	}
	for i, g := range k.ConfigMapGenerator {
		f.generator(top.child("configMapGenerator").at(i), g.GeneratorArgs)
	}
	for i, g := range k.SecretGenerator {
		f.out.secrets = append(f.out.secrets, g.LiteralSources...)
		f.generator(top.child("secretGenerator").at(i), g.GeneratorArgs)
	}
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, v := range k.Vars {
		p := top.child("vars").at(i)
		f.out.variables = append(f.out.variables, mention{field: p.String(), line: f.r.lineOf(p), value: v.Name})
	}
	f.deprecated()
	f.helm()
	f.plugins("generators", k.Generators)
	f.plugins("transformers", k.Transformers)
	f.plugins("validators", k.Validators)
}

// deprecated warns of deprecated fields; kustomize does so without the file name.
func (f *mentionFinder) deprecated() {
	for _, field := range []struct{ name, instead string }{
		{"bases", "resources"},
		{"commonLabels", "labels with includeSelectors: true"},
		{"imageTags", "images"},
		{"patchesJson6902", "patches"},
		{"patchesStrategicMerge", "patches"},
		{"vars", "replacements"},
	} {
		p := (*fieldPath)(nil).child(field.name)
		if node, _ := find(f.r.root, p); node != nil {
			f.r.warnf(p, "kustomize has deprecated this field; use %s", field.instead)
		}
	}
}

func (f *mentionFinder) patches(field string, patches []types.Patch) {
	for i, patch := range patches {
		if patch.Path != "" {
			f.mention((*fieldPath)(nil).child(field).at(i).child("path"), patch.Path, textFile)
		}
	}
}

func (f *mentionFinder) generator(p *fieldPath, g types.GeneratorArgs) {
	f.out.generators = append(f.out.generators, sourcePosition{name: g.Name, line: f.r.lineOf(p)})
	s := g.KvPairSources
	for i, source := range s.FileSources {
		file := source
		if _, after, ok := strings.Cut(source, "="); ok {
			file = after
		}
		f.mention(p.child("files").at(i), file, dataFile)
	}
	for i, file := range s.EnvSources {
		f.mention(p.child("envs").at(i), file, dataFile)
	}
	if s.EnvSource != "" {
		f.mention(p.child("env"), s.EnvSource, dataFile)
	}
}

func (f *mentionFinder) helm() {
	k, top := &f.out.spec, (*fieldPath)(nil)
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"helmCharts", len(k.HelmCharts) > 0},
		{"helmChartInflationGenerator", len(k.HelmChartInflationGenerator) > 0},
		{"helmGlobals", k.HelmGlobals != nil},
	} {
		if field.set {
			f.r.errorf(top.child(field.name), noHelm)
		}
	}
}

const noHelm = "Helm charts are not rendered here; commit what helm template writes, and list that under resources"

// fileOrText handles entries that are either a file name or YAML.
func (f *mentionFinder) fileOrText(p *fieldPath, value string, kind mentionKind, check func(*fieldPath, *yaml.Node)) {
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
