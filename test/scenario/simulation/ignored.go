package simulation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The objects of one namespace are not ConfigMaps but Ingresses with two fields that are left to others: their class, and a
// port in a list that the API server replaces as a whole. Git sets both, and others change both at any time.

const invariantIgnored = "an apply never changes an ignored field"

// ingressNamespace is the namespace of these objects.
const ingressNamespace = "docks"

const ignoredPointers = "/spec/ingressClassName, /spec/rules/0/http/paths/0/backend/service/port/number"

var ingressKind = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}

// ingress returns the manifest of such an object. Its value is the path.
func ingress(name, value string) string {
	return fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s, namespace: %s, annotations: {%s: %q}}, spec: {ingressClassName: git, "+
		"rules: [{http: {paths: [{path: /%s, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}\n",
		name, ingressNamespace, api.IgnoreFieldsAnnotation, ignoredPointers, value)
}

// ingressOverride returns the override of such an object.
func ingressOverride(name string, o override) string {
	return fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {name: %s, namespace: %s}, spec: {"+
		"resourceSelectors: [{group: networking.k8s.io, version: v1, kind: Ingress, name: %[1]s}], policy: {overrideRules: [{"+
		"clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: %[3]s}}}]}, "+
		"jsonPatchOverrides: [{op: replace, path: /spec/rules/0/http/paths/0/path, value: /%[4]s}]}]}}}\n", name, ingressNamespace, o.region, o.value)
}

// ingressPath returns the only path of an Ingress, not a copy.
func ingressPath(u *unstructured.Unstructured) map[string]any {
	rules := u.Object["spec"].(map[string]any)["rules"].([]any)
	return rules[0].(map[string]any)["http"].(map[string]any)["paths"].([]any)[0].(map[string]any)
}

// ignoredFields are the values of the ignored fields of an Ingress.
type ignoredFields struct {
	class string
	port  int64
}

func ignoredFieldsOf(u *unstructured.Unstructured) (f ignoredFields) {
	f.class, _, _ = unstructured.NestedString(u.Object, "spec", "ingressClassName")
	f.port, _, _ = unstructured.NestedInt64(ingressPath(u), "backend", "service", "port", "number")
	return f
}

// changeIgnoredFields has others change the ignored fields of some objects on a host, or remove them.
func (a *agent) changeIgnoredFields() {
	for _, id := range slices.SortedFunc(maps.Keys(a.objects), api.ID.Compare) {
		t := a.objects[id]
		if id.Kind != ingressKind.Kind || t.stored == nil || a.others.IntN(2) == 0 {
			continue
		}
		next := t.stored.DeepCopy()
		spec := next.Object["spec"].(map[string]any)
		switch a.others.IntN(4) {
		case 0:
			delete(spec, "ingressClassName")
		case 1, 2:
			spec["ingressClassName"] = fmt.Sprintf("class-%d", a.others.IntN(10))
		}
		if a.others.IntN(3) > 0 {
			service := ingressPath(next)["backend"].(map[string]any)["service"].(map[string]any)
			service["port"] = map[string]any{"number": 8000 + a.others.Int64N(10)}
		}
		out, err := a.d.w.fieldManager(ingressKind).Update(t.stored.DeepCopy(), next, pick(a.others, []string{"canary", "kubectl-edit"}))
		if err != nil {
			a.d.w.t.Error(err)
			continue
		}
		t.stored = out.(*unstructured.Unstructured)
		a.d.w.logf("somebody changes %s on cluster %s: %+v", title(id), a.name, ignoredFieldsOf(t.stored))
	}
}
