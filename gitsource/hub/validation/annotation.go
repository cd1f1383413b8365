package validation

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// An annotationRule validates the value of one of gitfleet's annotations on an object of a kind.
type annotationRule struct {
	name string
	rule func(value string, kind api.GroupKind) (warning string, err error)
}

// objectAnnotations are those of the objects to place. Mistakes in them would otherwise be found
// on each member.
var objectAnnotations = []annotationRule{
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
	{api.SecretFieldsAnnotation, func(value string, _ api.GroupKind) (string, error) {
		_, err := api.Pointers(value)
		return "", err
	}},
	driftRule,
	missingRule,
	substituteRule,
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
	{api.CiphertextAnnotation, func(value string, _ api.GroupKind) (string, error) {
		if value != api.CiphertextApply {
			return "", fmt.Errorf("%q is unknown; write %q, or leave the annotation out", value, api.CiphertextApply)
		}
		return "", nil
	}},
}

// strategyAnnotations are those of staged update strategies.
var strategyAnnotations = []annotationRule{
	{api.UnmatchedClustersAnnotation, func(value string, _ api.GroupKind) (string, error) {
		switch value {
		case api.UnmatchedFail, api.UnmatchedLast, api.UnmatchedIgnore:
			return "", nil
		}
		return "", fmt.Errorf("%q is unknown; write %q, %q or %q", value, api.UnmatchedFail, api.UnmatchedLast, api.UnmatchedIgnore)
	}},
	{api.OnFailureAnnotation, func(value string, _ api.GroupKind) (string, error) {
		switch value {
		case api.OnFailureStop, api.OnFailureRollBack, api.OnFailureContinue:
			return "", nil
		}
		return "", fmt.Errorf("%q is unknown; write %q, %q, or %q, which is the default", value, api.OnFailureRollBack, api.OnFailureContinue, api.OnFailureStop)
	}},
	{api.MaxUnreachablePerStageAnnotation, maxClusters},
	{api.MaxUnreachablePerRunAnnotation, maxClusters},
	{api.MaxFailedPerStageAnnotation, maxClusters},
	{api.MaxFailedPerRunAnnotation, maxClusters},
}

// maxClusters validates a number or a percentage of clusters.
func maxClusters(value string, _ api.GroupKind) (string, error) {
	v := intstr.Parse(value)
	if n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, false); err != nil || n < 0 || v.Type == intstr.String && n > 100 {
		return "", fmt.Errorf("%q is neither a number nor a percentage; write for example %q or %q", value, "2", "10%")
	}
	return "", nil
}

var driftRule = annotationRule{api.DriftAnnotation, func(value string, _ api.GroupKind) (string, error) {
	_, err := api.ParseDriftRule(value)
	return "", err
}}

var missingRule = annotationRule{api.MissingReferencesAnnotation, func(value string, _ api.GroupKind) (string, error) {
	if value != api.MissingReferencesIgnore {
		return "", fmt.Errorf("%q is unknown; write %q, or leave the annotation out", value, api.MissingReferencesIgnore)
	}
	return "", nil
}}

var substituteRule = annotationRule{api.SubstituteAnnotation, func(value string, _ api.GroupKind) (string, error) {
	if value != api.SubstituteEnabled && value != api.SubstituteDisabled {
		return "", fmt.Errorf("%q is unknown; write %q, or %q if what looks like a variable is text", value, api.SubstituteEnabled, api.SubstituteDisabled)
	}
	return "", nil
}}

// placementAnnotations are those of placements. An invalid value would otherwise be treated as
// the default.
var placementAnnotations = []annotationRule{
	{api.OnFailureAnnotation, func(value string, _ api.GroupKind) (string, error) {
		if value != api.OnFailureContinue && value != api.OnFailureStop {
			return "", fmt.Errorf("%q is unknown; write %q, or %q, which is the default", value, api.OnFailureContinue, api.OnFailureStop)
		}
		return "", nil
	}},
	{api.AvailableTimeoutAnnotation, func(value string, _ api.GroupKind) (string, error) {
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			return "", fmt.Errorf("%q is not a duration; write one such as %q, or %q for any time", value, "10m", "0s")
		}
		return "", nil
	}},
	driftRule,
	missingRule,
	substituteRule,
	{api.NewContentAnnotation, func(value string, _ api.GroupKind) (string, error) {
		if value != api.NewContentSupersedes && value != api.NewContentQueues {
			return "", fmt.Errorf("%q is unknown; write %q, or %q, which is the default", value, api.NewContentQueues, api.NewContentSupersedes)
		}
		return "", nil
	}},
}

// CheckAnnotations validates gitfleet's annotations of the object at p, and reports whether they
// are valid.
func CheckAnnotations(r *document.Report, p *document.FieldPath, object map[string]any) bool {
	meta, _ := object["metadata"].(map[string]any)
	notes, _ := meta["annotations"].(map[string]any)
	kind, ok := (&unstructured.Unstructured{Object: object}).GroupVersionKind().GroupKind(), true
	for _, a := range objectAnnotations {
		if value, written := notes[a.name].(string); written {
			ok = a.check(r, p, value, kind) && ok
		}
	}
	return ok
}

// checkAnnotations validates the annotations of one of gitfleet's kinds.
func checkAnnotations(r *document.Report, annotations map[string]string, rules []annotationRule) {
	for _, a := range rules {
		if value, written := annotations[a.name]; written {
			a.check(r, r.Object, value, api.GroupKind{})
		}
	}
}

func (a annotationRule) check(r *document.Report, p *document.FieldPath, value string, kind api.GroupKind) bool {
	warning, err := a.rule(value, kind)
	p = p.Child("metadata", "annotations", a.name)
	if err != nil {
		r.Errorf(p, "%v", err)
	} else if warning != "" {
		r.Warnf(p, "%s", warning)
	}
	return err == nil
}
