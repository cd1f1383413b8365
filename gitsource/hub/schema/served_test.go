package schema

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A version or group of a built-in kind that no API server serves is named with the one that is right.
func TestCheckServed(t *testing.T) {
	now := "Kubernetes " + KubernetesVersion + " has no "
	for _, test := range []struct{ version, kind, want string }{
		{"apps/v1", "Deployment", ""},
		{"apps/v1beta2", "Deployment", "since version 1.16 Kubernetes has no Deployment in apps/v1beta2; it has it in apps/v1"},
		{"extensions/v1beta1", "Ingress", "since version 1.22 Kubernetes has no Ingress in extensions/v1beta1; it has it in networking.k8s.io/v1"},
		{"batch/v1beta1", "CronJob", "since version 1.25 Kubernetes has no CronJob in batch/v1beta1; it has it in batch/v1"},
		{"policy/v1beta1", "PodSecurityPolicy", "since version 1.25 Kubernetes has no PodSecurityPolicy; remove it"},
		{"apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "since version 1.22 Kubernetes has no CustomResourceDefinition in apiextensions.k8s.io/v1beta1; it has it in apiextensions.k8s.io/v1"},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", now + "HorizontalPodAutoscaler in autoscaling/v2beta2; it has it in autoscaling/v1, autoscaling/v2"},
		{"v1", "Deployment", now + "Deployment in v1; it has it in apps/v1"},
		{"v1", "Event", ""},
		{"app/v1", "Deployment", now + "Deployment in app/v1; it has it in apps/v1"},
		{"rbac/v1", "Role", now + "Role in rbac/v1; it has it in rbac.authorization.k8s.io/v1"},
		{"networking.k8s/v1", "NetworkPolicy", now + "NetworkPolicy in networking.k8s/v1; it has it in networking.k8s.io/v1"},
		{"serving.knative.dev/v1", "Service", ""},
		{"apps.kruise.io/v1alpha1", "StatefulSet", ""},
		{"scheduling.x-k8s.io/v1alpha1", "PodGroup", ""},
		{"skaffold/v4beta6", "Config", ""},
	} {
		gv, err := schema.ParseGroupVersion(test.version)
		if err != nil {
			t.Fatal(err)
		}
		got, r := "", &document.Report{}
		checkServed(r, nil, gv.WithKind(test.kind))
		for _, p := range r.Problems {
			got += p.Message
		}
		if got != test.want {
			t.Errorf("%s %s: %q, want %q", test.version, test.kind, got, test.want)
		}
	}
}

// Of every kind that is known to be built in, Kubernetes serves a version, or it is known since when it does not.
func TestServedHasAllBuiltInKinds(t *testing.T) {
	for _, gk := range api.KnownKinds() {
		in := schema.GroupVersionKind{Group: gk.Group, Version: "v1beta1", Kind: gk.Kind}
		if api.BuiltInGroup(gk.Group) && len(served()[gk.Kind]) == 0 && removedIn(in) == "" {
			t.Errorf("%s is not known", gk)
		}
	}
}
