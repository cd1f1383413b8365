package e2e

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// The kustomization for the management cluster builds, a real API server accepts it with strict
// validation, and the pod meets the restricted pod security standard.
func TestKustomizationOfDeployApplies(t *testing.T) {
	objects := buildKustomization(t, "kubernetes", "")
	applyDeployment(t, objects)
	for _, kind := range []string{"Namespace", "Deployment", "ServiceAccount", "PersistentVolumeClaim", "Service", "NetworkPolicy", "PodDisruptionBudget", "ConfigMap"} {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }) {
			t.Errorf("there is no %s", kind)
		}
	}
	objects = buildKustomization(t, "kubernetes", "components:\n- monitoring\n")
	applyDeployment(t, objects)
	checkMonitoring(t, objects)
}

// buildKustomization builds a directory of deploy, with lines added to the kustomization.yaml of
// deploy/kubernetes.
func buildKustomization(t *testing.T, dir, more string) []*unstructured.Unstructured {
	t.Helper()
	deployed, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(deployed, os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(deployed, "kubernetes", "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deployed, dir))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return readObjects(t, string(rendered))
}

func readObjects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// checkMonitoring checks that the ServiceMonitor finds the Service, and the Secret with the
// token of an account that may read the metrics.
func checkMonitoring(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		found[o.GetKind()+"/"+o.GetName()] = o
	}
	monitor, service, secret := found["ServiceMonitor/gitfleet"], found["Service/gitfleet"], found["Secret/gitfleet-metrics"]
	if monitor == nil || service == nil || secret == nil || found["PrometheusRule/gitfleet"] == nil {
		t.Fatalf("rendered: %v", slices.Sorted(maps.Keys(found)))
	}
	at := func(o *unstructured.Unstructured, path ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return v
	}
	endpoint := at(monitor, "spec", "endpoints").([]any)[0].(map[string]any)
	port := at(service, "spec", "ports").([]any)[0].(map[string]any)
	credentials := endpoint["authorization"].(map[string]any)["credentials"].(map[string]any)
	if !reflect.DeepEqual(at(monitor, "spec", "selector", "matchLabels"), at(service, "metadata", "labels")) || endpoint["port"] != port["name"] {
		t.Errorf("the ServiceMonitor finds %v, and the Service is %v", monitor.Object["spec"], service.Object)
	}
	if credentials["name"] != secret.GetName() || secret.GetAnnotations()[corev1.ServiceAccountNameKey] != found["ServiceAccount/gitfleet-metrics"].GetName() {
		t.Errorf("Prometheus has the token %v, and the Secret is %v", credentials, secret.Object)
	}
}

// applyDeployment applies objects to the first member: the Namespace, which stays, and the
// others as a dry run.
func applyDeployment(t *testing.T, deployed []*unstructured.Unstructured) {
	t.Helper()
	m := fleet.Shared(t).Member("member-1")
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(m.Config)
	objects := dynamic.NewForConfigOrDie(m.Config)
	if slices.ContainsFunc(deployed, isMonitoring) {
		serveMonitoring(t, objects)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	var pod *corev1.Pod
	for _, o := range deployed {
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		opts := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		switch o.GetKind() {
		case "Namespace":
			opts.DryRun = nil
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
		if !isMonitoring(o) {
			continue
		}
		raw = bytes.Replace(raw, []byte(`"spec":{`), []byte(`"spec":{"misspelled":true,`), 1)
		if _, err := objects.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, raw, opts); err == nil || !strings.Contains(err.Error(), "misspelled") {
			t.Errorf("%s %s with an unknown field: %v", o.GetKind(), o.GetName(), err)
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

// isMonitoring reports whether an object has a kind of the Prometheus Operator.
func isMonitoring(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "monitoring.coreos.com"
}

// serveMonitoring has a cluster serve the kinds of the Prometheus Operator until the test ends.
func serveMonitoring(t *testing.T, client dynamic.Interface) {
	t.Helper()
	documents, err := checkout.PrometheusOperator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	// until waits for a definition to be established, or to be gone.
	until := func(ctx context.Context, name string, done func(*unstructured.Unstructured, error) bool) {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return done(crds.Get(ctx, name, metav1.GetOptions{})), nil
		})
		if err != nil {
			t.Errorf("definition %s: %v", name, err)
		}
	}
	for _, d := range readObjects(t, strings.Join(documents, "\n---\n")) {
		if _, err := crds.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := context.Background()
			if err := crds.Delete(ctx, d.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			until(ctx, d.GetName(), func(_ *unstructured.Unstructured, err error) bool { return apierrors.IsNotFound(err) })
		})
		until(t.Context(), d.GetName(), func(d *unstructured.Unstructured, err error) bool {
			if err != nil {
				return false
			}
			conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition := c.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			})
		})
	}
}
