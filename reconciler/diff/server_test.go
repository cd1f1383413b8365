package diff

import (
	"errors"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A server stores one object and its managed fields, with the code and the schemas of an API
// server. It sets no defaults.
type server struct {
	t    *testing.T
	live *unstructured.Unstructured
}

// newServer returns a server with an object that gitfleet has applied.
func newServer(t *testing.T, manifest string) *server {
	t.Helper()
	o := object(t, manifest)
	s := &server{t: t, live: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{},
	}}}
	s.apply(api.FieldManager, manifest)
	return s
}

// apply is a forced server-side apply.
func (s *server) apply(manager, manifest string) {
	s.t.Helper()
	s.live = s.dryRun(manager, manifest)
}

func (s *server) dryRun(manager, manifest string) *unstructured.Unstructured {
	s.t.Helper()
	return s.dryRunOf(manager, object(s.t, manifest))
}

func (s *server) dryRunOf(manager string, manifest *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.fields("").Apply(s.live.DeepCopy(), manifest.DeepCopy(), manager, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.(*unstructured.Unstructured)
}

// update stores the object with a change, made directly or through a subresource.
func (s *server) update(manager, subresource string, change func(map[string]any)) {
	s.t.Helper()
	changed := s.live.DeepCopy()
	change(changed.Object)
	out, err := s.fields(subresource).Update(s.live.DeepCopy(), changed, manager)
	if err != nil {
		s.t.Fatal(err)
	}
	s.live = out.(*unstructured.Unstructured)
}

// scale changes the replicas, as an autoscaler or kubectl scale does.
func (s *server) scale(manager string, replicas int64) {
	s.t.Helper()
	s.update(manager, "scale", func(o map[string]any) { set(s.t, o, replicas, "spec", "replicas") })
}

func (s *server) hash() string { return ApplyHash(s.live.GetManagedFields(), api.FieldManager) }

func (s *server) fields(subresource string) *managedfields.FieldManager {
	s.t.Helper()
	gvk := s.live.GroupVersionKind()
	f, err := managedfields.NewDefaultFieldManager(schemas(), identityConvertor{}, identityConvertor{}, identityConvertor{}, gvk, gvk.GroupVersion(), subresource, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

var schemas = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// identityConvertor converts between versions of a kind that has only one.
type identityConvertor struct{}

func (identityConvertor) Convert(in, out, context any) error { return errors.New("one version only") }
func (identityConvertor) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (identityConvertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (identityConvertor) Default(runtime.Object) {}
func (identityConvertor) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

// object reads one manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in:\n%s", err, manifest)
	}
	return o
}

func set(t *testing.T, o map[string]any, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o, value, path...); err != nil {
		t.Fatal(err)
	}
}

// container returns the first container of a workload, which the caller may change.
func container(o map[string]any) map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "template", "spec", "containers")
	return list.([]any)[0].(map[string]any)
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {tier: front}
spec:
  replicas: 3
  strategy:
    rollingUpdate: {maxUnavailable: 1}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        env:
        - {name: MODE, value: fast}
        ports:
        - containerPort: 80
        resources:
          limits: {cpu: 500m, memory: 1Gi}
      tolerations:
      - {key: spot, operator: Exists}
`

func managers(entries []metav1.ManagedFieldsEntry) string {
	var names []string
	for i := range entries {
		names = append(names, actor(&entries[i]).String())
	}
	return strings.Join(names, ", ")
}
