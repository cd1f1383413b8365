package diff

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// An object that requests it is recreated if an immutable field changes, and may be recreated
// if only the cluster can tell.
func TestRecreationOf(t *testing.T) {
	const asks = "\nmetadata: {name: x, annotations: {gitfleet.dev/recreate: \"true\"}}\n"
	job := func(spec string) string { return "apiVersion: batch/v1\nkind: Job" + asks + "spec: " + spec }
	service := func(spec string) string { return "apiVersion: v1\nkind: Service" + asks + "spec: " + spec }
	fixed := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap" + asks + "immutable: true\ndata: " + data
	}
	gadget := func(kind, version, spec string) string {
		return "apiVersion: " + version + "\nkind: " + kind + asks + "spec: " + spec
	}
	tests := map[string]struct {
		before, after string
		want          Recreation
	}{
		"a template":                 {job("{template: {spec: {a: 1}}}"), job("{template: {spec: {a: 2}}}"), Recreated},
		"another field":              {job("{template: {}, parallelism: 1}"), job("{template: {}, parallelism: 2}"), NotRecreated},
		"it does not ask":            {job("{template: {spec: {a: 1}}}"), "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: {a: 2}}}", NotRecreated},
		"an address":                 {service("{clusterIP: None}"), service("{clusterIP: 10.0.0.7}"), Recreated},
		"an address instead of any":  {service("{}"), service("{clusterIP: 10.0.0.7}"), MayBeRecreated},
		"an immutable ConfigMap":     {fixed("{a: b}"), fixed("{a: c}"), Recreated},
		"a ConfigMap that was not":   {"apiVersion: v1\nkind: ConfigMap" + asks + "data: {a: b}", fixed("{a: c}"), NotRecreated},
		"a custom resource":          {gadget("Gadget", "example.com/v1", "{a: 1}"), gadget("Gadget", "example.com/v1", "{a: 2}"), MayBeRecreated},
		"a Pod":                      {gadget("Pod", "v1", "{a: 1}"), gadget("Pod", "v1", "{a: 2}"), MayBeRecreated},
		"a kind without such fields": {gadget("Ingress", "networking.k8s.io/v1", "{a: 1}"), gadget("Ingress", "networking.k8s.io/v1", "{a: 2}"), NotRecreated},
		"a kind that never is":       {gadget("PersistentVolumeClaim", "v1", "{a: 1}"), gadget("PersistentVolumeClaim", "v1", "{a: 2}"), NotRecreated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				return o
			}
			if got := RecreationOf(parse(test.before), parse(test.after)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
