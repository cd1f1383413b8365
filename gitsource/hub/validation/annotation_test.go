package validation

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Annotations of objects are validated by the kind of the object, and an object with an invalid
// one is not placed.
func TestCheckAnnotations(t *testing.T) {
	for name, test := range map[string]struct {
		kind, annotation, value, want string
	}{
		"an expression":                {"ConfigMap", api.AvailableAnnotation, "has(object.data)", ""},
		"a broken expression":          {"ConfigMap", api.AvailableAnnotation, "object.", "not a CEL expression over object that says whether it is available: "},
		"pointers":                     {"ConfigMap", api.IgnoreFieldsAnnotation, "/spec/replicas, /data", ""},
		"a field that is no pointer":   {"ConfigMap", api.IgnoreFieldsAnnotation, "spec.replicas", `["spec.replicas"] is no JSON pointer to a field`},
		"a drift rule":                 {"ConfigMap", api.DriftAnnotation, "perhaps", `"perhaps" is unknown; write "revert", "propose" or "report"`},
		"pruning disabled":             {"ConfigMap", api.PruneAnnotation, api.PruneDisabled, ""},
		"pruning with another word":    {"ConfigMap", api.PruneAnnotation, "no", `"no" is unknown; write "disabled", or leave the annotation out`},
		"recreation":                   {"ConfigMap", api.RecreateAnnotation, api.RecreateEnabled, ""},
		"recreation with another word": {"ConfigMap", api.RecreateAnnotation, "yes", `"yes" is unknown; write "true" in quotes, or leave the annotation out`},
		"recreation of a Namespace":    {"Namespace", api.RecreateAnnotation, api.RecreateEnabled, "a Namespace is never deleted to be created anew, since its deletion deletes more than the object itself; leave the annotation out"},
		"an annotation of others":      {"ConfigMap", "example.com/prune", "no", ""},
		"an annotation of a placement": {"ConfigMap", api.OnFailureAnnotation, "maybe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"apiVersion": "v1", "kind": test.kind, "metadata": map[string]any{"annotations": map[string]any{test.annotation: test.value}}}
			var want []string
			if test.want != "" {
				want = []string{"metadata.annotations[" + test.annotation + "]: " + test.want}
			}
			valid := false
			checkProblems(t, func(r *document.Report) { valid = CheckAnnotations(r, nil, object) }, want)
			if valid != (test.want == "") {
				t.Errorf("valid is %t", valid)
			}
		})
	}
}

// An expression that may become too expensive is only warned of.
func TestCheckAnnotationsWarns(t *testing.T) {
	object := decode[map[string]any](t, "{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {"+api.AvailableAnnotation+
		": 'object.a.all(x, object.b.all(y, object.c.all(z, x.name != y.name + z.name)))'}}}")
	checkProblems(t, func(r *document.Report) {
		if !CheckAnnotations(r, r.Field("data", "gadget.yaml"), *object) {
			t.Error("the object is invalid")
		}
	}, []string{"data[gadget.yaml].metadata.annotations[" + api.AvailableAnnotation + "]: it may cost more than "})
}

func TestCheckPlacementAnnotations(t *testing.T) {
	for name, test := range map[string]struct{ annotation, value, want string }{
		"stop":                        {api.OnFailureAnnotation, api.OnFailureStop, ""},
		"continue":                    {api.OnFailureAnnotation, api.OnFailureContinue, ""},
		"another word":                {api.OnFailureAnnotation, "maybe", `"maybe" is unknown; write "continue", or "stop", which is the default`},
		"a timeout":                   {api.AvailableTimeoutAnnotation, "10m", ""},
		"no timeout":                  {api.AvailableTimeoutAnnotation, "0s", ""},
		"a negative timeout":          {api.AvailableTimeoutAnnotation, "-1s", `"-1s" is not a duration; write one such as "10m", or "0s" for any time`},
		"a timeout without a unit":    {api.AvailableTimeoutAnnotation, "30", `"30" is not a duration`},
		"an unknown drift rule":       {api.DriftAnnotation, "perhaps", `"perhaps" is unknown; write "revert", "propose" or "report"`},
		"an annotation of an object":  {api.PruneAnnotation, "no", ""},
		"an annotation of a property": {api.PropertyAnnotationPrefix + "nodes", "many", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{"metadata.annotations[" + test.annotation + "]: " + test.want}
			}
			checkProblems(t, func(r *document.Report) {
				checkAnnotations(r, map[string]string{test.annotation: test.value}, placementAnnotations)
			}, want)
		})
	}
}

func TestCheckNumbersOfClustersOfStrategies(t *testing.T) {
	for value, valid := range map[string]bool{"0": true, "2": true, "0%": true, "10%": true, "100%": true, "": false, "-1": false, "-1%": false, "101%": false, "some": false, "1.5": false} {
		for _, annotation := range []string{api.MaxUnreachablePerStageAnnotation, api.MaxUnreachablePerRunAnnotation, api.MaxFailedPerStageAnnotation, api.MaxFailedPerRunAnnotation} {
			var want []string
			if !valid {
				want = []string{"metadata.annotations[" + annotation + "]: \"" + value + "\" is neither a number nor a percentage"}
			}
			checkProblems(t, func(r *document.Report) {
				checkAnnotations(r, map[string]string{annotation: value}, strategyAnnotations)
			}, want)
		}
	}
}
