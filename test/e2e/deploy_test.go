package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// The kustomization of the management cluster builds, a real API server accepts all of it
// with strict validation, and the pod meets the restricted pod security standard.
func TestKustomizationApplies(t *testing.T) {
	root, err := filepath.Abs("../../deploy/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	applyDeployment(t, string(text))
}

// applyDeployment applies documents to the first member and removes their namespace
// afterwards. Everything but the Namespace is applied as a dry run.
func applyDeployment(t *testing.T, text string) {
	t.Helper()
	m := fleet.Shared(t).Member("member-1")
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(m.Config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	objects := dynamic.NewForConfigOrDie(m.Config)
	var pod *corev1.Pod
	kinds := map[string]bool{}
	for _, document := range strings.Split(text, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		kinds[o.GetKind()] = true
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		opts := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		switch o.GetKind() {
		case "Namespace":
			opts.DryRun = nil
			t.Cleanup(func() { client.CoreV1().Namespaces().Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
		case "Deployment":
			template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
			pod = &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
				t.Fatal(err)
			}
			pod.Name, pod.Namespace = o.GetName(), o.GetNamespace()
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, raw, opts); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	for _, kind := range []string{"Deployment", "ServiceAccount", "PersistentVolumeClaim", "Service", "NetworkPolicy", "PodDisruptionBudget", "ConfigMap"} {
		if !kinds[kind] {
			t.Errorf("there is no %s", kind)
		}
	}
	if pod == nil {
		t.Fatal("there is no Deployment")
	}
	create := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, create); err != nil {
		t.Errorf("the pod is refused: %v", err)
	}
	pod.Spec.Containers[0].SecurityContext = nil
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, create); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("pod security is not enforced: %v", err)
	}
}
