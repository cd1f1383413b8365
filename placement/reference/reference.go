// Package reference says which objects an object needs on its cluster, and which objects controllers make from it.
//
// Of lists what an object refers to, and Made what is made from it. Missing compares the two for the objects of clusters.
package reference

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Reference is an object that another one needs. Of a CustomResourceDefinition, Name is that of the kind that it defines,
// and Namespace its group.
type Reference struct {
	To api.ID
	// Field is the field that has the reference; empty for the kind of the object.
	Field string
	// Optional says that the reference may say that the object may be missing, by its field optional.
	Optional bool
}

// definitions are the kind of what defines other kinds.
var definitions = api.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// IsDefinition reports whether the reference is to a CustomResourceDefinition, which is that of the kind of the object itself.
func (r Reference) IsDefinition() bool { return r.To.GroupKind() == definitions }

// IsNamespace reports whether the reference is to a Namespace, which is that of the object itself.
func (r Reference) IsNamespace() bool { return r.To.GroupKind() == namespaces }

// namespaces are the kind of Namespaces.
var namespaces = api.GroupKind{Kind: "Namespace"}

// definitionOf identifies the definition of a kind.
func definitionOf(kind api.GroupKind) api.ID {
	return api.ID{Group: definitions.Group, Kind: definitions.Kind, Namespace: kind.Group, Name: kind.Kind}
}

// podSpecs are the paths of the pod specs of workloads.
var podSpecs = map[api.GroupKind][]string{
	{Kind: "Pod"}:                                   {"spec"},
	{Kind: "ReplicationController"}:                 {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:             {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}:            {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:              {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:             {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:                   {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:               {"spec", "jobTemplate", "spec", "template", "spec"},
	{Group: "argoproj.io", Kind: "Rollout"}:         {"spec", "template", "spec"},
	{Group: "serving.knative.dev", Kind: "Service"}: {"spec", "template", "spec"},
}

// A finder collects the references of one object.
type finder struct {
	namespace string
	found     []Reference
}

// Of returns what an object refers to, each object once. What is optional, and what every cluster has, is left out.
func Of(o *unstructured.Unstructured) []Reference {
	f := &finder{namespace: o.GetNamespace()}
	kind := o.GroupVersionKind().GroupKind()
	if _, builtIn := api.Namespaced(kind); !builtIn && strings.Contains(kind.Group, ".") {
		f.found = append(f.found, Reference{To: definitionOf(kind)})
	}
	if path := podSpecs[kind]; path != nil {
		f.pod(mapping(o.Object, path...), strings.Join(path, "."))
	}
	switch kind {
	case api.GroupKind{Kind: "PersistentVolumeClaim"}:
		f.claim(o.Object, "")
	case api.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		for i, claim := range items(o.Object, "spec", "volumeClaimTemplates") {
			f.claim(claim, index("spec.volumeClaimTemplates", i)+".")
		}
	case api.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}:
		if !issued(o) {
			for i, tls := range items(o.Object, "spec", "tls") {
				f.add("", "Secret", f.namespace, tls["secretName"], index("spec.tls", i)+".secretName")
			}
		}
	case api.GroupKind{Kind: "ServiceAccount"}:
		for i, s := range items(o.Object, "imagePullSecrets") {
			f.add("", "Secret", f.namespace, s["name"], index("imagePullSecrets", i)+".name")
		}
	}
	slices.SortStableFunc(f.found, func(x, y Reference) int { return x.To.Compare(y.To) })
	return slices.CompactFunc(f.found, func(x, y Reference) bool { return x.To == y.To })
}

func (f *finder) add(group, kind, namespace string, name any, field string) {
	if text, _ := name.(string); text != "" {
		f.found = append(f.found, Reference{To: api.ID{Group: group, Kind: kind, Namespace: namespace, Name: text}, Field: field})
	}
}

// optional adds a reference to an object of the namespace, unless the pod starts without it.
func (f *finder) optional(kind string, from any, key, field string) {
	ref, _ := from.(map[string]any)
	if may, _ := ref["optional"].(bool); may {
		return
	}
	before := len(f.found)
	f.add("", kind, f.namespace, ref[key], field+"."+key)
	for i := range f.found[before:] {
		f.found[before+i].Optional = true
	}
}

func (f *finder) pod(spec map[string]any, at string) {
	if name, _ := spec["serviceAccountName"].(string); name != "default" {
		f.add("", "ServiceAccount", f.namespace, spec["serviceAccountName"], at+".serviceAccountName")
	}
	if name, _ := spec["priorityClassName"].(string); !strings.HasPrefix(name, "system-") {
		f.add("scheduling.k8s.io", "PriorityClass", "", spec["priorityClassName"], at+".priorityClassName")
	}
	for i, s := range items(spec, "imagePullSecrets") {
		f.add("", "Secret", f.namespace, s["name"], index(at+".imagePullSecrets", i)+".name")
	}
	for _, list := range []string{"initContainers", "containers"} {
		for i, c := range items(spec, list) {
			f.container(c, index(at+"."+list, i))
		}
	}
	for i, v := range items(spec, "volumes") {
		field := index(at+".volumes", i)
		f.optional("ConfigMap", v["configMap"], "name", field+".configMap")
		f.optional("Secret", v["secret"], "secretName", field+".secret")
		for n, source := range items(v, "projected", "sources") {
			field := index(field+".projected.sources", n)
			f.optional("ConfigMap", source["configMap"], "name", field+".configMap")
			f.optional("Secret", source["secret"], "name", field+".secret")
		}
		f.claim(mapping(v, "ephemeral", "volumeClaimTemplate"), field+".ephemeral.volumeClaimTemplate.")
	}
}

func (f *finder) container(c map[string]any, at string) {
	for i, e := range items(c, "env") {
		from, _ := e["valueFrom"].(map[string]any)
		f.optional("ConfigMap", from["configMapKeyRef"], "name", index(at+".env", i)+".valueFrom.configMapKeyRef")
		f.optional("Secret", from["secretKeyRef"], "name", index(at+".env", i)+".valueFrom.secretKeyRef")
	}
	for i, e := range items(c, "envFrom") {
		f.optional("ConfigMap", e["configMapRef"], "name", index(at+".envFrom", i)+".configMapRef")
		f.optional("Secret", e["secretRef"], "name", index(at+".envFrom", i)+".secretRef")
	}
}

func (f *finder) claim(claim map[string]any, at string) {
	spec, _ := claim["spec"].(map[string]any)
	f.add("storage.k8s.io", "StorageClass", "", spec["storageClassName"], at+"spec.storageClassName")
}

// mapping returns a mapping; nil if there is none.
func mapping(o map[string]any, path ...string) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	m, _ := v.(map[string]any)
	return m
}

// items returns the mappings in a list.
func items(o map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	values, _ := list.([]any)
	out := make([]map[string]any, len(values))
	for i, v := range values {
		out[i], _ = v.(map[string]any)
	}
	return out
}

func index(field string, i int) string {
	return field + "[" + strconv.Itoa(i) + "]"
}

// issued reports whether cert-manager makes the Secrets of an Ingress or a Gateway.
func issued(o *unstructured.Unstructured) bool {
	for key, value := range o.GetAnnotations() {
		if strings.HasPrefix(key, "cert-manager.io/") && strings.HasSuffix(key, "issuer") || key == "kubernetes.io/tls-acme" && value == "true" {
			return true
		}
	}
	return false
}
