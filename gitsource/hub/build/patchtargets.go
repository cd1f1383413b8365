package build

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// kustomize ignores a patch whose target matches no object, and which objects match is known only while it builds. A patch whose target
// is not evidently among the resources is therefore preceded by a probe: a patch with the same target that adds a top-level field, which
// collect removes from the result.

// targetField is the prefix of the names of these fields; the index of the target follows.
const targetField = "gitfleet.dev/target-"

// withTargets adds a probe before each patch whose target may match nothing. Components are left out, because a component may patch
// objects that only some of its users have, and so are remote bases, which this repository cannot correct.
func withTargets(b *builder, k *kustomization, patches []types.Patch) []types.Patch {
	if k.isComponent() || b.graph.tree.MountOf(k.dir) != "" {
		return patches
	}
	var out []types.Patch
	parts := b.graph.withBases(k.dir)
	for i, patch := range patches {
		if s := patch.Target; s != nil && !hasObject(b, parts, *s) {
			field := targetField + fmt.Sprint(len(b.targets))
			b.targets = append(b.targets, &patchTarget{mention: k.targets[i], file: k.file, selector: *s, parts: parts})
			out = append(out, types.Patch{Target: s, Patch: fmt.Sprintf(`[{"op": "add", "path": "/%s", "value": true}]`, api.EscapeKey(field))})
		}
		out = append(out, patch)
	}
	return out
}

// noTargets match files that rule out probes in their build: those that hash objects, record transformations, drop objects from the
// output, or replace or merge objects after a patch, so that the added field is seen or lost.
var noTargets = []*regexp.Regexp{
	regexp.MustCompile(`\$patch`), regexp.MustCompile(`needs-hash`), regexp.MustCompile(`local-config`), regexp.MustCompile(`transformerAnnotations`),
	regexp.MustCompile(`ehavior\W+(?:merge|replace)`), regexp.MustCompile(`path[\\"']*\s*:\s*\\*(?:""|''|"\\+")`),
}

// canHaveTargets reports whether a build may have probes.
func canHaveTargets(b *builder) bool {
	for _, text := range b.texts {
		if slices.ContainsFunc(noTargets, func(r *regexp.Regexp) bool { return r.Match(text) }) {
			return false
		}
	}
	return true
}

// hasObject reports whether a target is just a kind and a name that a document or a generator has.
func hasObject(b *builder, parts []*kustomization, s types.Selector) bool {
	if s != (types.Selector{ResId: s.ResId}) || s.Namespace != "" || s.Group != "" || s.Version != "" {
		return false
	}
	return slices.ContainsFunc(objectsOf(b, parts), func(p sourcePosition) bool { return p.kind == s.Kind && (s.Name == "" || p.name == s.Name) })
}

// objectsOf returns the kinds and names of the objects that kustomizations read and generate.
func objectsOf(b *builder, parts []*kustomization) (all []sourcePosition) {
	for _, k := range parts {
		for _, f := range k.files {
			if f.resource {
				all = append(all, b.positions[f.path]...)
			}
		}
		all = append(all, k.generators...)
	}
	return all
}

// take removes the fields from an object, and records for which targets they are.
func (all patchTargets) take(value any) {
	object, isMap := value.(map[string]any)
	for i, t := range all {
		field := targetField + fmt.Sprint(i)
		if _, there := object[field]; isMap && there {
			t.found = true
			delete(object, field)
		}
	}
}

// warnUnmatchedTargets warns of patches that change nothing.
func warnUnmatchedTargets(b *builder) {
	for _, t := range b.targets {
		if t.found {
			continue
		}
		b.problems = append(b.problems, problem.Problem{
			Origin: api.Origin{Path: t.file, Line: t.line, Kustomization: b.File}, Field: t.field, Severity: problem.Warning,
			Message: fmt.Sprintf("matches no object, so that the patch changes nothing (%s); %s", selectorText(t.selector), nearTarget(b, t)),
		})
	}
}

// nearTarget returns how to correct a target.
func nearTarget(b *builder, t *patchTarget) string {
	if _, fault := selectorFault(t.selector); fault != "" {
		return fault
	}
	var kinds, names []string
	for _, p := range objectsOf(b, t.parts) {
		kinds = append(kinds, p.kind)
		if p.kind == t.selector.Kind {
			names = append(names, p.name)
		}
	}
	if near := api.Closest(t.selector.Name, names); near != "" && near != t.selector.Name {
		return api.DidYouMean("the name " + near)
	}
	if near := api.Closest(t.selector.Kind, kinds); near != "" && near != t.selector.Kind {
		return api.DidYouMean("the kind " + near)
	}
	return "correct it, or remove the patch"
}

// selectorText describes a target.
func selectorText(s types.Selector) string {
	var parts []string
	for _, f := range []struct{ name, value string }{
		{"group", s.Group}, {"version", s.Version}, {"kind", s.Kind}, {"name", s.Name}, {"namespace", s.Namespace},
		{"labelSelector", s.LabelSelector}, {"annotationSelector", s.AnnotationSelector},
	} {
		if f.value != "" {
			parts = append(parts, f.name+": "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// warnUnmatchedImages warns of images that nothing in the build has, which kustomize ignores. Components, remote bases and names that are
// regular expressions are left out, and so are builds with charts.
func warnUnmatchedImages(b *builder) {
	for _, k := range b.parts {
		if k.isComponent() || b.graph.tree.MountOf(k.dir) != "" || len(b.chartFiles) > 0 {
			continue
		}
		for _, image := range k.images {
			if regexp.QuoteMeta(image.value) != strings.ReplaceAll(image.value, ".", `\.`) || mentionsImage(b, k, image.value) {
				continue
			}
			b.problems = append(b.problems, problem.Problem{
				Origin: api.Origin{Path: k.file, Line: image.line, Kustomization: b.File}, Field: image.field, Severity: problem.Warning,
				Message: fmt.Sprintf("no resource has the image %s, so that this changes nothing; %s", image.value, api.Suggest(image.value, imagesOf(b), "correct it, or remove it")),
			})
		}
	}
}

// mentionsImage reports whether the name of an image is anywhere in a build but in its own entry.
func mentionsImage(b *builder, k *kustomization, name string) bool {
	for file, text := range b.texts {
		if file != k.file && bytes.Contains(text, []byte(name)) {
			return true
		}
	}
	found := slices.ContainsFunc(k.spec.Images, func(i types.Image) bool { return strings.Contains(i.NewName, name) })
	var doc yaml.Node
	if yaml.Unmarshal(b.texts[k.file], &doc) != nil || len(doc.Content) == 0 {
		return true
	}
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		if doc.Content[0].Content[i].Value != "images" {
			visitScalars(doc.Content[0].Content[i+1], func(n *yaml.Node) { found = found || strings.Contains(n.Value, name) })
		}
	}
	return found
}

var imageField = regexp.MustCompile(`\bimage"?:\s*["']?([^\s"':@]+)`)

// imagesOf returns the names of images in the files of a build, sorted.
func imagesOf(b *builder) []string {
	var names []string
	for _, text := range b.texts {
		for _, found := range imageField.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	slices.Sort(names)
	return names
}
