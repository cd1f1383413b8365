package health

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/test/golden"
)

// Each file in testdata has objects with the expected health in a comment above.
func TestOf(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, doc := range strings.Split(string(data), "\n---\n") {
				out = append(out, answered(t, doc))
			}
			golden.File(t, file, strings.Join(out, "\n---\n"))
		})
	}
}

// answered replaces the line that begins with "#=" by the health of the object.
func answered(t *testing.T, doc string) string {
	t.Helper()
	o := object(t, doc)
	before := o.DeepCopy()
	h := Of(o)
	if !reflect.DeepEqual(o, before) {
		t.Errorf("the object was changed:\n%s", doc)
	}
	lines := strings.Split(doc, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#=") {
			lines[i] = strings.TrimRight(fmt.Sprintf("#= %s: %s", h.State, h.Message), ": ")
			if h.Failure != "" {
				lines[i] += "; failed: " + h.Failure
			}
			return strings.Join(lines, "\n")
		}
	}
	t.Fatalf("no line for the answer, #=, in:\n%s", doc)
	return ""
}

func object(t *testing.T, doc string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	return o
}

// Every built-in kind that the specification lists, and some more.
func TestKindsThatTakeNoTime(t *testing.T) {
	tests := map[State][]string{
		Available: {"v1/Namespace", "v1/Secret", "v1/ConfigMap", "v1/ServiceAccount", "v1/LimitRange", "v1/ResourceQuota",
			"rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/ClusterRole",
			"rbac.authorization.k8s.io/v1/RoleBinding", "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
			"networking.k8s.io/v1/NetworkPolicy", "networking.k8s.io/v1/IngressClass",
			"storage.k8s.io/v1/StorageClass", "storage.k8s.io/v1/CSIDriver", "storage.k8s.io/v1/CSINode", "storage.k8s.io/v1/CSIStorageCapacity",
			"apps/v1/ControllerRevision", "scheduling.k8s.io/v1/PriorityClass"},
		NotTrackable: {"batch/v1/Job", "batch/v1/CronJob", "v1/Pod", "apps/v1/ReplicaSet", "v1/ReplicationController", "v1/PersistentVolume",
			"v1/PersistentVolumeClaim", "autoscaling/v2/HorizontalPodAutoscaler", "networking.k8s.io/v1/Ingress",
			"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "apiregistration.k8s.io/v1/APIService",
			"networking.fleet.azure.com/v1alpha1/ServiceExport", "apps/v1beta1/Deployment", "policy/v1beta1/PodDisruptionBudget",
			"example.com/v1/Deployment", "example.com/v1/Widget"},
	}
	for want, kinds := range tests {
		for _, kind := range kinds {
			at := strings.LastIndex(kind, "/")
			o := object(t, "{apiVersion: "+kind[:at]+", kind: "+kind[at+1:]+", metadata: {name: x, generation: 1}}")
			if got := Of(o); got.State != want || got.Failure != "" {
				t.Errorf("%s: %+v, want %s", kind, got, want)
			}
			if got := OfKind(o.GroupVersionKind()); !NeedsStatus(o.GroupVersionKind()) && got.State != want {
				t.Errorf("%s: without looking %+v, want %s", kind, got, want)
			}
		}
	}
}

// No object causes a panic, and one that cannot be understood is not available.
func TestOfUnderstandsAnything(t *testing.T) {
	kinds := []string{"apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "v1/Service",
		"apiextensions.k8s.io/v1/CustomResourceDefinition", "policy/v1/PodDisruptionBudget", "batch/v1/Job", "batch/v1/CronJob", "v1/Pod", "apps/v1/ReplicaSet", "v1/PersistentVolumeClaim", "example.com/v1/Widget"}
	words := []string{"replicas", "observedGeneration", "availableReplicas", "conditions", "type", "status", "clusterIPs", "loadBalancer", "ingress", "Ready", "phase", "active", "name"}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		at := strings.LastIndex(kind, "/")
		var value func(depth int) *rapid.Generator[any]
		value = func(depth int) *rapid.Generator[any] {
			scalar := rapid.SampledFrom([]any{nil, true, int64(1), 1.5, -1e300, "", "Ready", "True", "LoadBalancer"})
			if depth == 0 {
				return scalar
			}
			return rapid.OneOf(scalar,
				rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
				rapid.Map(rapid.MapOfN(rapid.SampledFrom(words), value(depth-1), 0, 4), func(m map[string]any) any { return m }))
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind[:at], "kind": kind[at+1:],
			"metadata": map[string]any{"generation": int64(1)}, "spec": value(3).Draw(t, "spec"), "status": value(4).Draw(t, "status")}}
		if h := Of(o); h.State == Failed && (h.Message == "" || h.Counts()) || h.State == NotAvailableYet && h.Message == "" || h.Counts() && h.Failure != "" {
			t.Fatalf("%+v", h)
		}
	})
}

// The reasons and messages are exactly those of KubeFleet, since scripts compare them.
func TestConditionsHaveTheWordsOfKubeFleet(t *testing.T) {
	tests := []struct {
		in      Health
		counts  bool
		reason  string
		message string
	}{
		{Health{State: Available}, true, "Available", ""},
		{Health{State: NotTrackable}, true, "NotTrackable", ""},
		{Health{State: NotAvailableYet}, false, "ManifestNotAvailableYet", "Manifest is not yet available; Fleet will check again later"},
		{Health{State: Failed, Message: "x"}, false, "Failed", "Failed to track the availability of the applied manifest (error = x)"},
	}
	for _, test := range tests {
		if test.in.Counts() != test.counts || string(test.in.State) != test.reason {
			t.Errorf("%+v: counts as available: %t", test.in, test.in.Counts())
		}
		if got := test.in.Sentence().Message(test.in.Message); !test.counts && got != test.message {
			t.Errorf("%+v: %s, want %s", test.in, got, test.message)
		}
	}
}
