package watch

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
)

// The expression of the manifest is evaluated, whatever the live object has.
func TestOnlyExpressionsOfManifestsAreEvaluated(t *testing.T) {
	object := func(expression, phase string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"phase": phase}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
		u.SetNamespace("app")
		u.SetName("a")
		if expression != "" {
			u.SetAnnotations(map[string]string{api.AvailableAnnotation: expression})
		}
		return u
	}
	wanting := func(expression string) []*work.Manifest {
		o := object(expression, "")
		m := &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Content: o}}
		return []*work.Manifest{m}
	}
	const running = `object.phase == "Running"`
	tests := map[string]struct {
		manifest, live, phase string
		want                  health.State
	}{
		"the same":                        {running, running, "Running", health.Available},
		"another on the member":           {running, "true", "Stopped", health.NotAvailableYet},
		"none on the member":              {running, "", "Stopped", health.NotAvailableYet},
		"none in Git":                     {"", "false", "Stopped", health.Of(object("", "Stopped")).State},
		"one that is broken, none in Git": {"", "object.", "Stopped", health.Of(object("", "Stopped")).State},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := &Kind{
				GVK:         schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
				expressions: availability.New(&availability.Cache{}),
			}
			k.expressions.Replace(slices.Values(wanting(test.manifest)))
			if _, l := k.stateOf(object(test.live, test.phase)); l.Health.State != test.want {
				t.Errorf("%+v, want %v", l.Health, test.want)
			}
		})
	}
}
