package validation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/placement/variable"
	"github.com/gitfleet/gitfleet/placement/variable/postbuild"
)

// DefaultOverlay sets the defaults of an overlay.
func DefaultOverlay(id api.ID, spec *api.OverlaySpec) {
	spec.WhenMissing = cmp.Or(spec.WhenMissing, api.WhenMissingFail)
	if id.Namespace != "" {
		spec.Namespace = cmp.Or(spec.Namespace, id.Namespace)
	}
}

// OverlayPath is the field whose line is recorded for an overlay.
func OverlayPath(spec *api.OverlaySpec) string {
	switch {
	case spec.Path != "":
		return "spec.path"
	case spec.Paths != nil:
		return "spec.paths"
	}
	return "spec.parts"
}

// CheckOverlay validates an overlay whose defaults are set.
func CheckOverlay(r *document.Report, id api.ID, spec *api.OverlaySpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	wildcards := checkParts(r, spec)
	checkExcept(r, spec.Except, wildcards)
	namespace := r.Field("spec", "namespace")
	if id.Namespace != "" && spec.Namespace != id.Namespace {
		r.Rulef(namespace, "is that of the Overlay, %s, and cannot be another one; remove it, or use a ClusterOverlay", id.Namespace)
	} else if spec.Namespace != "" {
		checkDefaultNamespace(r, id, spec.Namespace, spec.ReservedNamespaces)
	}
	checkReservedNamespaces(r, id, spec.ReservedNamespaces)
	if spec.PostBuild != nil {
		checkPostBuild(r, spec.PostBuild)
	}
}

// MostPaths is the maximum number of paths of all parts of an overlay together, and MostAlternatives that of the paths of which one
// part builds the first that exists.
const (
	MostPaths        = 256
	MostAlternatives = 16
)

// checkParts validates the paths, and returns the largest number of names with * in one.
func checkParts(r *document.Report, spec *api.OverlaySpec) (wildcards int) {
	at := r.Field("spec")
	switch {
	case spec.Parts == nil:
		wildcards = checkPart(r, at, &api.OverlayPart{Path: spec.Path, Paths: spec.Paths})
	case spec.Path != "" || spec.Paths != nil:
		r.Rulef(at.Child("parts"), "parts are used instead of path and paths; write these as a part")
	}
	if spec.Parts != nil {
		CheckLength(r, at.Child("parts"), len(spec.Parts), 1, MostPaths)
		if n := len(spec.All()); n > MostPaths && len(spec.Parts) <= MostPaths {
			r.Rulef(at.Child("parts"), "must have at most %d paths, and has %d; write another overlay for some", MostPaths, n)
		}
	}
	for i := range spec.Parts {
		wildcards = max(wildcards, checkPart(r, at.Child("parts").At(i), &spec.Parts[i]))
	}
	r.RecordLine(at.Child(strings.TrimPrefix(OverlayPath(spec), "spec.")))
	return wildcards
}

// checkPart validates the paths of an overlay or of one part, and returns the number of names with * in each.
func checkPart(r *document.Report, at *document.FieldPath, part *api.OverlayPart) (wildcards int) {
	one, many := at.Child("path"), at.Child("paths")
	switch {
	case part.Path != "" && part.Paths != nil:
		r.Rulef(many, "path and paths are mutually exclusive; remove one of them")
	case part.Path == "" && part.Paths == nil:
		r.Rulef(one, "missing; write the directory of a kustomization, such as clusters/${cluster.name}")
	case part.Path != "":
		p, _ := checkPath(r, one, part.Path)
		return p.Wildcards()
	default:
		CheckLength(r, many, len(part.Paths), 1, MostAlternatives)
		for i, text := range part.Paths {
			p, ok := checkPath(r, many.At(i), text)
			if n := p.Wildcards(); ok && i > 0 && n != wildcards {
				r.Rulef(many.At(i), "has * in %d names, and the path before in %d, so that it is not known which of them stand for the same; write a * for each in all paths, or move this path to another entry of spec.parts", n, wildcards)
			} else if ok {
				wildcards = n
			}
		}
	}
	return wildcards
}

// checkPostBuild validates the values of variables.
func checkPostBuild(r *document.Report, spec *api.PostBuild) {
	p := r.Field("spec", "postBuild")
	for _, name := range slices.Sorted(maps.Keys(spec.Substitute)) {
		at := p.Child("substitute", name)
		if !postbuild.IsName(name) {
			r.Rulef(at, "%q cannot be the name of a variable, which has letters, digits and _ and does not begin with a digit; rename it", name)
		}
		if _, _, err := variable.Split(spec.Substitute[name]); err != nil {
			r.Rulef(at, "%v", err)
		}
		if len(spec.Substitute[name]) > api.LargestVariable {
			r.Rulef(at, "a value may have at most %d KiB; put more into a ConfigMap", api.LargestVariable>>10)
		}
	}
	for i, from := range spec.SubstituteFrom {
		at := p.Child("substituteFrom").At(i)
		r.RecordLine(at)
		if from.Kind != "" && from.Kind != "ClusterVars" {
			r.Rulef(at.Child("kind"), "must be ClusterVars, since the values of %s are known on its cluster only; write them into a ClusterVars", api.WithArticle(from.Kind))
		}
		if from.Name == "" {
			r.Rulef(at.Child("name"), "missing; write the name of a ClusterVars")
		}
	}
}

// checkExcept validates the directories that wildcards do not mean.
func checkExcept(r *document.Report, except []string, wildcards int) {
	p := r.Field("spec", "except")
	if len(except) > 0 && wildcards == 0 {
		r.Rulef(p, "has no effect, since no path has *; remove it")
	}
	CheckLength(r, p, len(except), 0, 500)
	for i, text := range except {
		if one, ok := checkPath(r, p.At(i), text); ok && one.HasVariables() {
			r.Rulef(p.At(i), "%q has variables, and what is left out is the same for all clusters; write * in their place", text)
		}
	}
}

// checkDefaultNamespace validates the namespace of objects that have none, of which reserved ones have to be listed.
func checkDefaultNamespace(r *document.Report, id api.ID, name string, listed []string) {
	p := r.Field("spec", "namespace")
	switch {
	case id.Namespace == "" && name == api.Namespace:
		r.Rulef(p, "namespace %s is gitfleet's own, in which nothing can be placed; write another one", name)
	case id.Namespace == "" && api.ReservedNamespace(name) && !slices.Contains(listed, name):
		r.Rulef(p, "namespace %s is reserved; write another one, or reservedNamespaces: [%s] if objects are to be placed in it", name, name)
	default:
		rules(r, p, validation.IsDNS1123Label(name), "%q is not a valid namespace", name)
	}
}

// checkReservedNamespaces validates the reserved namespaces that an overlay or a chart may have objects in.
func checkReservedNamespaces(r *document.Report, id api.ID, names []string) {
	p := r.Field("spec", "reservedNamespaces")
	r.RecordLine(p)
	if id.Namespace != "" && names != nil {
		r.Rulef(p, "objects of this kind are in its own namespace only; remove it, or use a Cluster%s", id.Kind)
		return
	}
	CheckLength(r, p, len(names), 0, 20)
	for i, name := range names {
		switch {
		case name == api.Namespace:
			r.Rulef(p.At(i), "namespace %s is gitfleet's own, in which nothing can be placed; remove it", name)
		case len(validation.IsDNS1123Label(name)) > 0:
			r.Rulef(p.At(i), "%q is not the name of a namespace, and there are no patterns; write one such as kube-system", name)
		case !api.ReservedNamespace(name):
			r.Rulef(p.At(i), "namespace %s is not reserved, so that objects may be in it anyway; remove it", name)
		case slices.Contains(names[:i], name):
			r.Rulef(p.At(i), "namespace %s is listed twice; remove one of them", name)
		}
	}
}

func checkPath(r *document.Report, at *document.FieldPath, text string) (p overlay.Path, ok bool) {
	p, err := overlay.ParseWild(text)
	if err != nil {
		r.Rulef(at, "%v", err)
	}
	return p, err == nil
}
