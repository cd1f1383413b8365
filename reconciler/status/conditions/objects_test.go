package conditions

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Objects with equal names are told apart by their envelopes, also in the order.
func TestSortKeysAreUnique(t *testing.T) {
	one := api.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}
	wrapped, other := one, one
	box := &api.EnvelopeIdentifier{Name: "box", Namespace: "web", Type: api.ResourceEnvelopeType}
	wrapped.Envelope, other.Envelope = box, &api.EnvelopeIdentifier{Name: "box", Namespace: "web", Type: api.ConfigMapEnvelopeType}
	keys := []string{one.SortKey(), wrapped.SortKey(), other.SortKey()}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 3 {
		t.Errorf("keys %q", keys)
	}
	c := Cluster{p: &plan.Placement{Key: api.PlacementKey{Name: "web"}}}
	if name := c.work(box); !strings.HasPrefix(name, "web-work-envelope-") || name == c.work(other.Envelope) {
		t.Errorf("the work of an envelope is %s", name)
	}
}

// An object that waits for a hook is the cause of a cluster only if nothing else is refused: usually the hook is.
func TestTheCauseIsNotWhatWaitsForIt(t *testing.T) {
	object := func(name, conditionType, reason string) failedObject {
		return failedObject{api.FailedResourcePlacement{ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Name: name},
			Condition: metav1.Condition{Type: conditionType, Reason: reason}}, "why", ""}
	}
	waits, hook, absent := object("a", api.Applied, api.HookPending), object("job", api.Applied, api.ManifestApplyFailed), object("c", api.Available, "")
	for name, test := range map[string]struct {
		failed []failedObject
		want   string
	}{
		"none":              {nil, ""},
		"hook is refused":   {[]failedObject{waits, hook, waits}, "ConfigMap/job: why (and 2 more)"},
		"all wait":          {[]failedObject{absent, waits, waits}, "ConfigMap/a: why (and 1 more)"},
		"one is not ready":  {[]failedObject{absent}, "ConfigMap/c: why"},
		"the first of many": {[]failedObject{hook, object("other", api.Applied, "")}, "ConfigMap/job: why (and 1 more)"},
	} {
		if got := causeOf(test.failed); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
