package validation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
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
	if spec.Path != "" {
		return "spec.path"
	}
	return "spec.paths"
}

// CheckOverlay validates an overlay whose defaults are set.
func CheckOverlay(r *document.Report, id api.ID, spec *api.OverlaySpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	one, many := r.Field("spec", "path"), r.Field("spec", "paths")
	switch {
	case spec.Path != "" && spec.Paths != nil:
		r.Rulef(many, "path and paths are mutually exclusive; remove one of them")
	case spec.Path == "" && spec.Paths == nil:
		r.Rulef(one, "missing; write the directory of a kustomization, such as clusters/${cluster.name}")
	case spec.Path != "":
		checkPath(r, one, spec.Path)
		r.RecordLine(one)
	default:
		CheckLength(r, many, len(spec.Paths), 1, 16)
		for i, text := range spec.Paths {
			checkPath(r, many.At(i), text)
		}
		r.RecordLine(many)
	}
	namespace := r.Field("spec", "namespace")
	switch {
	case id.Namespace != "" && spec.Namespace != id.Namespace:
		r.Rulef(namespace, "is that of the Overlay, %s, and cannot be another one; remove it, or use a ClusterOverlay", id.Namespace)
	case id.Namespace == "" && api.ReservedNamespace(spec.Namespace):
		r.Rulef(namespace, "namespace %s is reserved%s; write another one", spec.Namespace, api.ReservedHint(spec.Namespace))
	case spec.Namespace != "":
		rules(r, namespace, validation.IsDNS1123Label(spec.Namespace), "%q is not a valid namespace", spec.Namespace)
	}
}

func checkPath(r *document.Report, p *document.FieldPath, text string) {
	if _, err := overlay.Parse(text); err != nil {
		r.Rulef(p, "%v", err)
	}
}
