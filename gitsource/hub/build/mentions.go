package build

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/placement/api"
)

// parse finds the references in the kustomization file. It decodes the file into kustomize's own
// types, so that it finds exactly the references that a build uses.
func (k *kustomization) parse(data []byte, documents []*document.Report) {
	if len(documents) != 1 {
		k.fail(mention{}, "a kustomization is one document, and this file has %d", len(documents))
		return
	}
	r := &document.Report{Origin: api.Origin{Path: k.file}, Root: documents[0].Root, LinesBefore: documents[0].LinesBefore}
	f := &mentionFinder{r, k}
	text, _ := document.PlainText(data)
	if r.Root.Kind != yaml.MappingNode {
		r.Errorf(nil, "a kustomization is a mapping with fields such as resources")
	} else if version, _ := document.Find(r.Root, r.Field("apiVersion")); version != nil && isOtherGroup(version.Value) {
		r.Errorf(r.Field("apiVersion"), "a file of this name is read as a kustomization of kustomize, and this is an object of %s; rename the file", version.Value)
	} else if err := k.spec.Unmarshal(text); err != nil {
		f.reportDecodeError(err)
	} else {
		f.find()
	}
	k.problems = append(k.problems, r.Problems...)
}

// isOtherGroup reports whether an apiVersion is that of an API group which is not kustomize's, such as that of the Kustomizations of Flux.
func isOtherGroup(version string) bool {
	group, _, _ := strings.Cut(version, "/")
	return strings.Contains(group, ".") && group != "kustomize.config.k8s.io"
}

// reportUnknown reports the fields that a type does not have, and whether there are any.
func (f *mentionFinder) reportUnknown(n *yaml.Node, t reflect.Type, p *document.FieldPath) (any bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			any = f.reportUnknown(item, t.Elem(), p.At(i)) || any
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if name == "<<" { // merges another mapping
				continue
			}
			if of := typeOfField(t, name); of != nil {
				any = f.reportUnknown(n.Content[i+1], of, p.Child(name)) || any
			} else {
				f.r.Errorf(p.Child(name), "unknown field; %s", schema.SuggestKnown(name, schema.FieldNames(t)))
				any = true
			}
		}
	}
	return any
}

// typeOfField returns the type of the field of a struct with a name in JSON, without regard to case; nil if there is none.
func typeOfField(t reflect.Type, name string) reflect.Type {
	for field := range t.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			if of := typeOfField(field.Type, name); of != nil {
				return of
			}
		}
		if strings.EqualFold(tag, name) && tag != "" {
			return field.Type
		}
	}
	return nil
}

func (f *mentionFinder) find() {
	k, top := &f.k.spec, f.r.Object
	for _, msg := range k.EnforceFields() {
		field, _, _ := strings.Cut(msg, " ") // kind or apiVersion
		f.r.Errorf(top.Child(field), "%s", msg)
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
		f.mention(top.Child("openapi", "path"), file, schemaFile)
	}
	f.patches("patches", k.Patches)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	f.patches("patchesJson6902", k.PatchesJson6902)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, patch := range k.PatchesStrategicMerge {
		f.fileOrText(top.Child("patchesStrategicMerge").At(i), string(patch), textFile)
	}
	for i, r := range k.Replacements {
		p := top.Child("replacements").At(i)
		if r.Path != "" {
			f.mention(p.Child("path"), r.Path, textFile)
		}
		for j, target := range r.Targets {
			if target.Select == nil {
				f.r.Errorf(p.Child("targets").At(j), "has no select; write the kind and the name of the objects")
			}
		}
	}
	if sort := k.SortOptions; sort != nil {
		if orders := []string{string(types.FIFOSortOrder), string(types.LegacySortOrder)}; !slices.Contains(orders, string(sort.Order)) {
			p := top.Child("sortOptions", "order")
			f.k.unknownOrder = &mention{field: p.String(), line: f.r.LineOf(p), value: fmt.Sprintf("%q is no order of kustomize; %s", sort.Order, schema.SuggestKnown(string(sort.Order), orders))}
		}
	}
	for i, image := range k.Images {
		p := top.Child("images").At(i).Child("name")
		f.k.images = append(f.k.images, mention{field: p.String(), line: f.r.LineOf(p), value: image.Name})
	}
	for i, g := range k.ConfigMapGenerator {
		f.generator(top.Child("configMapGenerator").At(i), "ConfigMap", g.GeneratorArgs)
	}
	for i, g := range k.SecretGenerator {
		f.k.literals = append(f.k.literals, g.LiteralSources...)
		f.generator(top.Child("secretGenerator").At(i), "Secret", g.GeneratorArgs)
	}
	//lint:ignore SA1019 kustomize still reads it, and so must we
	for i, v := range k.Vars {
		p := top.Child("vars").At(i)
		f.k.variables = append(f.k.variables, mention{field: p.String(), line: f.r.LineOf(p), value: v.Name})
	}
	f.warnDeprecated()
	f.charts()
	f.plugins(generators, k.Generators)
	f.plugins("transformers", k.Transformers)
	f.plugins("validators", k.Validators)
}

// warnDeprecated warns of deprecated fields. kustomize also does, but without the file name.
func (f *mentionFinder) warnDeprecated() {
	for _, field := range []struct{ name, instead string }{
		{"bases", "resources"},
		{"commonLabels", "labels with includeSelectors: true"},
		{"imageTags", "images"},
		{"patchesJson6902", "patches"},
		{"patchesStrategicMerge", "patches"},
		{"vars", "replacements"},
	} {
		p := f.r.Field(field.name)
		if node, _ := document.Find(f.r.Root, p); node != nil {
			f.r.Warnf(p, "kustomize has deprecated this field; use %s", field.instead)
		}
	}
}

// reportDecodeError rewords the errors of kustomize's decoder.
func (f *mentionFinder) reportDecodeError(err error) {
	message := strings.TrimPrefix(err.Error(), "invalid Kustomization: ")
	if found := unknownField.FindStringSubmatch(message); found != nil {
		if !f.reportUnknown(f.r.Root, reflect.TypeFor[types.Kustomization](), f.r.Object) {
			f.r.Errorf(nil, "unknown field %s", found[1])
		}
	} else if found := wrongType.FindStringSubmatch(message); found != nil {
		f.reportWrongType(f.r.Field(strings.Split(found[2], ".")...), found)
	} else {
		f.r.Errorf(nil, "%s", strings.TrimPrefix(message, "json: "))
	}
}
