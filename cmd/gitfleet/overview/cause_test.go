package overview

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// A cause has everything that the user has to know.
func TestCause(t *testing.T) {
	notAvailable := health.Health{State: health.NotAvailableYet}.Condition().Message
	said := errors.New(`.spec.replica: field not declared in schema (sic)`)
	for name, test := range map[string]struct{ message, want string }{
		"changed":             {diff.ApplyFailed(diff.Apply, said).Message, said.Error()},
		"created":             {diff.ApplyFailed(diff.Create, said).Message, said.Error()},
		"another placement's": {"Failed to apply the manifest (error: failed to take over a pre-existing object: the object is already owned by another Fleet AppliedWork object: the placement crp/web (web.yaml:2) selects it as well and has it on this cluster)", "the placement crp/web (web.yaml:2) selects it as well and has it on this cluster"},
		"another fleet's":     {diff.Refused(diff.OwnedByPlacement, "", false).Message, "the object is already owned by another Fleet AppliedWork object"},
		"no such kind":        {`Failed to apply the manifest (error: failed to decode manifest: failed to find GVR from member cluster client REST mapping: no matches for kind "Widget" in version "example.com/v1")`, `no matches for kind "Widget" in version "example.com/v1"`},
		"nothing inside":      {"Failed to apply the manifest (error: failed to apply the manifest: )", "failed to apply the manifest: "},
		"not available":       {notAvailable + " (1 of 2 replicas updated; pod web-1, container web: CrashLoopBackOff (exit code 1))", "1 of 2 replicas updated; pod web-1, container web: CrashLoopBackOff (exit code 1)"},
		"and nothing more":    {notAvailable, notAvailable},
		"something else":      {"Manifest is not yet available (1 of 2 replicas updated)", "Manifest is not yet available (1 of 2 replicas updated)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Cause(test.message); got != test.want {
				t.Errorf("of %q it is\n%q, want\n%q", test.message, got, test.want)
			}
		})
	}
}

// The reason is the same for all clusters, whatever the names of the pods are.
func TestNotAvailableNamesNoPod(t *testing.T) {
	of := func(pod string) string {
		return NotAvailable(&api.PerClusterPlacementStatus{FailedPlacements: []api.FailedResourcePlacement{{
			ResourceIdentifier: api.ResourceIdentifier{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Condition: metav1.Condition{Type: api.Available, Message: health.Health{State: health.NotAvailableYet}.Condition().Message +
				" (1 of 2 replicas updated; pod " + pod + ", container web: ImagePullBackOff: Back-off pulling image web:2)"},
		}}})
	}
	want := "Deployment.apps/shop/web: 1 of 2 replicas updated; a pod, container web: ImagePullBackOff: Back-off pulling image web:2"
	for _, pod := range []string{"web-5b9f9b86c4-sh6z6", "web-5b9f9b86c4-x7k2p"} {
		if got := of(pod); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
