package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// The API server accepts and refuses the manifests of gitsource/hub/schema as its tests say, so
// that validate warns of what a member would refuse, and of nothing else.
func TestVerdictsOfAPIServers(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns := a.makeNamespace()
	data, err := os.ReadFile("../../gitsource/hub/schema/testdata/apiserver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(a.config)
	config.QPS = -1
	objects := dynamic.NewForConfigOrDie(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.client.Discovery()))
	for _, part := range strings.Split(string(data), "---\n")[1:] {
		title, manifest, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		if o.GetNamespace() != "" {
			o.SetNamespace(ns)
		}
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		opts := metav1.PatchOptions{FieldManager: "test", DryRun: []string{metav1.DryRunAll}}
		_, err = objects.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(t.Context(), o.GetName(), types.ApplyPatchType, raw, opts)
		if verdict := title[strings.LastIndex(title, " ")+1:]; (err != nil) != (verdict == "refused") {
			t.Errorf("%s, but the API server says: %v", title, err)
		}
	}
}
