package work

import (
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestManifestsAreInCanonicalOrder(t *testing.T) {
	text := []string{
		"PriorityClass.scheduling.k8s.io/v1 p", "Namespace/v1 b", "Namespace/v1 a", "Service/v1 ns/web", "Service.serving.knative.dev/v1 ns/web",
		"Service/v1 ns-2/web", "Service/v1 ns/api", "Deployment.apps/v1 ns/web", "ValidatingWebhookConfiguration.admissionregistration.k8s.io/v1 v",
		"Widget.example.com/v2 w", "Widget.example.com/v1 w", "Gadget.example.com/v1 g", "Thing/v1 t",
	}
	var objects []*Manifest
	for _, o := range text {
		objects = append(objects, &Manifest{Object: objectFrom(o)})
	}
	var got []string
	for _, m := range Sorted(objects) {
		got = append(got, strings.TrimPrefix(refOf(m.Object).String(), " "))
	}
	want := []string{
		`scheduling.k8s.io/v1 PriorityClass "p"`, `v1 Namespace "a"`, `v1 Namespace "b"`,
		// the group does not count for the rank, and names are compared by bytes: serving…
		// before v1, "-" before "/"
		`serving.knative.dev/v1 Service "ns/web"`, `v1 Service "ns-2/web"`, `v1 Service "ns/api"`, `v1 Service "ns/web"`,
		`apps/v1 Deployment "ns/web"`, `admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration "v"`,
		`v1 Thing "t"`, `example.com/v1 Gadget "g"`, `example.com/v1 Widget "w"`, `example.com/v2 Widget "w"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("order\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// objectFrom parses Kind.group/version namespace/name.
func objectFrom(text string) *api.Object {
	kind, name, _ := strings.Cut(text, " ")
	kind, version, _ := strings.Cut(kind, "/")
	kind, group, _ := strings.Cut(kind, ".")
	namespace, name, found := strings.Cut(name, "/")
	if !found {
		namespace, name = "", namespace
	}
	u, err := objectOf(map[string]any{
		"apiVersion": apiVersion(group, version), "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
	})
	if err != nil {
		panic(err)
	}
	return &api.Object{ID: api.IDOf(u), Content: u}
}

func TestWaves(t *testing.T) {
	tests := map[string]int{
		"Namespace": 0, "CustomResourceDefinition.apiextensions.k8s.io": 0, "PriorityClass.scheduling.k8s.io": 0,
		"ConfigMap": 1, "Secret": 1, "StorageClass.storage.k8s.io": 1, "PodDisruptionBudget.policy": 1, "IngressClass.networking.k8s.io": 1,
		"ClusterRole.rbac.authorization.k8s.io": 2, "RoleBinding.rbac.authorization.k8s.io": 3,
		"Deployment.apps": 4, "CronJob.batch": 4, "HorizontalPodAutoscaler.autoscaling": 4, "Service": 4,
		"APIService.apiregistration.k8s.io": 5, "MutatingWebhookConfiguration.admissionregistration.k8s.io": 5,
		"SecretStore.external-secrets.io": StoreWave, "ClusterIssuer.cert-manager.io": StoreWave, "ExternalSecret.external-secrets.io": LastWave, "SecretStore.example.com": LastWave,
		"Service.serving.knative.dev": LastWave, "Widget.example.com": LastWave, "CSIDriver.storage.k8s.io": LastWave, "Namespace.example.com": LastWave,
	}
	for kind, want := range tests {
		k, group, _ := strings.Cut(kind, ".")
		if got := Wave(api.GroupKind{Group: group, Kind: k}); got != want {
			t.Errorf("%s is in wave %d, want %d", kind, got, want)
		}
	}
}

func TestWhatOthersNeedIsDeletedLast(t *testing.T) {
	ids := []api.ID{
		{Kind: "Namespace", Name: "app"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"},
		{Kind: "ConfigMap", Namespace: "app", Name: "a"},
		{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "web"},
		{Kind: "ConfigMap", Namespace: "app", Name: "b"},
		{Group: "example.com", Kind: "Widget", Namespace: "app", Name: "w"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration", Name: "hook"},
	}
	slices.SortFunc(ids, DeleteOrder)
	var got []string
	for _, id := range ids {
		got = append(got, id.Kind+" "+id.Name)
	}
	want := []string{"Widget w", "MutatingWebhookConfiguration hook", "Deployment web", "ConfigMap a", "ConfigMap b", "Namespace app", "CustomResourceDefinition widgets.example.com"}
	if !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}
