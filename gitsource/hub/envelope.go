package hub

import (
	"fmt"
)

// checkEnvelope looks at the shape of an envelope. Whether its contents may go
// where a placement takes them is seen when they are unwrapped.
func checkEnvelope(r *report, it *item, object map[string]any) {
	data, _ := object["data"].(map[string]any)
	p := r.field("data")
	count(r, p, len(data), 1, 50)
	for _, key := range sortedKeys(data) {
		checkWrapped(r, it, p.child(key), data[key])
	}
}

func checkWrapped(r *report, it *item, p *fieldPath, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		r.rulef(p, "must be a manifest, not %s", describe(value))
		return
	}
	complete := true
	for _, key := range []string{"apiVersion", "kind"} {
		if s, _ := object[key].(string); s == "" {
			r.rulef(p.child(key), "missing: each entry of an envelope is a Kubernetes object")
			complete = false
		}
	}
	annotationsFit(r, p, object)
	if msg := wrappedFault(it, object); complete && msg != "" {
		r.warnf(p.child("metadata", "namespace"), "%s", msg)
	}
	judgeBuiltin(r, p, object)
}

// wrappedFault foretells what would stop the envelope from being opened.
func wrappedFault(it *item, object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name := fmt.Sprint(object["kind"])
	switch {
	case it.id.Kind == clusterEnvelope && namespace != "":
		return fmt.Sprintf("a namespaced %s cannot be wrapped in a %s; use a ResourceEnvelope in namespace %s", name, clusterEnvelope, namespace)
	case it.id.Kind != clusterEnvelope && namespace == "":
		return fmt.Sprintf("a cluster scoped %s cannot be wrapped in a ResourceEnvelope; write namespace: %s, or use a %s", name, it.id.Namespace, clusterEnvelope)
	case it.id.Kind != clusterEnvelope && namespace != it.id.Namespace:
		return fmt.Sprintf("a %s of namespace %s cannot be wrapped in a ResourceEnvelope of namespace %s", name, namespace, it.id.Namespace)
	}
	return ""
}

const clusterEnvelope = "ClusterResourceEnvelope"
