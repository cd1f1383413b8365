package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// annotationRules validate gitfleet's annotations on the objects of a kind. Mistakes in them
// would otherwise be found on each member.
var annotationRules = []struct {
	name string
	rule func(value string, kind api.GroupKind) (warning string, err error)
}{
	{api.AvailableAnnotation, func(value string, _ api.GroupKind) (string, error) {
		e, err := expression.Compile(value)
		if err != nil {
			return "", fmt.Errorf("not a CEL expression over object that says whether it is available: %w", err)
		}
		return e.Warning(), nil
	}},
	{api.IgnoreFieldsAnnotation, func(value string, _ api.GroupKind) (string, error) {
		_, err := api.Pointers(value)
		return "", err
	}},
	{api.DriftAnnotation, func(value string, _ api.GroupKind) (string, error) {
		_, err := api.ParseDriftRule(value)
		return "", err
	}},
	{api.PruneAnnotation, func(value string, _ api.GroupKind) (string, error) {
		if value != api.PruneDisabled {
			return "", fmt.Errorf("%q is unknown; write %q, or leave the annotation out", value, api.PruneDisabled)
		}
		return "", nil
	}},
	{api.RecreateAnnotation, func(value string, kind api.GroupKind) (string, error) {
		switch {
		case value != api.RecreateEnabled:
			return "", fmt.Errorf("%q is unknown; write %q in quotes, or leave the annotation out", value, api.RecreateEnabled)
		case !api.Recreatable(kind):
			return "", fmt.Errorf("a %s is never deleted to be created anew, since its deletion deletes more than the object itself; leave the annotation out", kind.Kind)
		}
		return "", nil
	}},
}

// CheckAnnotations validates gitfleet's annotations of the object at p, and reports whether they are
// valid.
func CheckAnnotations(r *document.Report, p *document.FieldPath, object map[string]any) bool {
	meta, _ := object["metadata"].(map[string]any)
	notes, _ := meta["annotations"].(map[string]any)
	kind, ok := (&unstructured.Unstructured{Object: object}).GroupVersionKind().GroupKind(), true
	for _, a := range annotationRules {
		value, written := notes[a.name].(string)
		if !written {
			continue
		}
		at := p.Child("metadata", "annotations", a.name)
		warning, err := a.rule(value, kind)
		if err != nil {
			r.Errorf(at, "%v", err)
			ok = false
		} else if warning != "" {
			r.Warnf(at, "%s", warning)
		}
	}
	return ok
}
