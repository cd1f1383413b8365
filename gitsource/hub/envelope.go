package hub

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	clusterEnvelope   = "ClusterResourceEnvelope"
	namespaceEnvelope = "ResourceEnvelope"
)

// checkEnvelope validates the entries of a ResourceEnvelope or ClusterResourceEnvelope. An
// entry that is not a manifest refuses the commit, as the API server would refuse the envelope.
// An entry that no cluster could accept is a Failure.
func checkEnvelope(r *document.Report, it *item, object map[string]any) {
	data, _ := object["data"].(map[string]any)
	p := r.Field("data")
	validation.CheckLength(r, p, len(data), 1, 50)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		entry, ok := data[key].(map[string]any)
		if !ok {
			r.Rulef(p.Child(key), "must be a manifest, not %s", document.Describe(data[key]))
			continue
		}
		complete := true
		for _, field := range []string{"apiVersion", "kind"} {
			if s, _ := entry[field].(string); s == "" {
				r.Rulef(p.Child(key, field), "missing: each entry of an envelope is a Kubernetes object")
				complete = false
			}
		}
		if !complete {
			continue
		}
		checkWrapped(r, it, p.Child(key), p.Child(key, "metadata", "namespace"), entry)
		validation.CheckAnnotations(r, p.Child(key), entry)
		if api.CiphertextIn(entry) == nil { // else reported by checkWrapped
			schema.CheckBuiltin(r, p.Child(key), entry)
		}
	}
}

// checkTextEnvelope validates the entries of a ConfigMap envelope, which are manifests as text.
// Problems are Failures: an API server would accept any text.
func checkTextEnvelope(r *document.Report, it *item, object map[string]any) {
	data, _ := object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		p := r.Field("data", key)
		text, _ := data[key].(string)
		file := document.Read(r.Origin.Path, []byte(text), r.Limits, math.MaxInt64, func(_ *document.Report, value any) {
			if entry, ok := value.(map[string]any); ok {
				checkWrapped(r, it, p, p, entry)
			} else {
				failEntry(r, it, p, "must be a manifest, not "+document.Describe(value))
			}
		})
		if file.Problems.HasErrors() {
			it.addUnread(r, p)
		}
		severity := problem.Failure
		if file.GaveUp {
			severity = problem.Error // the entry exceeds a limit, and would have to be read for every plan
		}
		for _, problem := range file.Problems {
			r.Add(severity, p, "in %s: line %d of the entry: %s", it.id, problem.Line, problem.Message)
		}
	}
}

// checkWrapped reports why no cluster could accept an entry of an envelope. Problems with its
// namespace are reported at the field at.
func checkWrapped(r *document.Report, it *item, p, at *document.FieldPath, entry map[string]any) {
	w, fault := readWrapped(entry)
	if fault != "" {
		it.addUnread(r, p)
		failEntry(r, it, p, fault)
		return
	}
	if fault := w.reservedFault(it.id); fault != "" {
		failEntry(r, it, at, fault)
		return
	}
	if encrypted := api.CiphertextIn(entry); encrypted != nil {
		failEntry(r, it, p, w.id.String()+": "+encrypted.Message())
	}
	namespaced, known := api.Namespaced(w.id.GroupKind())
	if !known {
		// Until the definitions of the commit are known, the entry counts as namespaced if it
		// has a namespace.
		namespaced = w.id.Namespace != ""
	}
	w.field, w.origin, w.known = at.String(), r.Origin, known
	w.origin.Line = r.LineOf(at)
	it.wrapped = append(it.wrapped, w)
	if fault := w.scopeFault(it.id, namespaced); fault != "" {
		failEntry(r, it, at, fault)
	}
}

// addUnread records that an entry could not be read.
func (it *item) addUnread(r *document.Report, p *document.FieldPath) {
	it.wrapped = append(it.wrapped, wrapped{id: it.id, origin: r.Origin, field: p.String(), unread: true, known: true})
}

// failEntry reports that an entry of an envelope cannot be placed.
func failEntry(r *document.Report, it *item, p *document.FieldPath, fault string) {
	r.Add(problem.Failure, p, "in %s: %s", it.id, fault)
}

// readWrapped reads the identity of an entry, or returns what is missing.
func readWrapped(entry map[string]any) (wrapped, string) {
	version, _ := entry["apiVersion"].(string)
	kind, _ := entry["kind"].(string)
	gv, ok := groupVersion(version)
	metadata, _ := entry["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	switch {
	case !ok:
		return wrapped{}, "apiVersion is missing or malformed: each entry of an envelope is a Kubernetes object"
	case !isKind(kind):
		return wrapped{}, "kind is missing or malformed: each entry of an envelope is a Kubernetes object"
	case name == "":
		return wrapped{}, fmt.Sprintf("metadata.name of the %s is missing", kind)
	}
	return wrapped{id: api.ID{Group: gv.Group, Kind: kind, Namespace: namespace, Name: name}}, ""
}

// reservedFault returns the fault of an entry in a reserved namespace; empty if it is not in
// one.
func (w *wrapped) reservedFault(envelope api.ID) string {
	namespace := w.id.Namespace
	if w.id.GroupKind() == (api.GroupKind{Kind: "Namespace"}) {
		namespace = w.id.Name
	} else if namespace == envelope.Namespace && namespace != api.Namespace {
		return "" // a ResourcePlacement of that namespace may name the envelope
	}
	if !api.ReservedNamespace(namespace) {
		return ""
	}
	return fmt.Sprintf("%s cannot be placed, since namespace %s is reserved%s", w.id, namespace, api.ReservedHint(namespace))
}

// scopeFault returns why the scope of an entry's kind, or its namespace, does not match the
// envelope; empty if both match.
func (w *wrapped) scopeFault(envelope api.ID, namespaced bool) string {
	kind, namespace := w.id.Kind, w.id.Namespace
	inCluster, inNamespace := envelope.Kind == clusterEnvelope, envelope.Kind == namespaceEnvelope
	switch {
	case inCluster && namespace != "":
		return fmt.Sprintf("a namespaced %s cannot be wrapped in a %s; use a %s in namespace %s", kind, clusterEnvelope, namespaceEnvelope, namespace)
	case inCluster && namespaced:
		return fmt.Sprintf("%s is namespaced, so it cannot be wrapped in a %s; use a %s in that namespace", api.WithArticle(kind), clusterEnvelope, namespaceEnvelope)
	case inNamespace && !namespaced:
		advice := ""
		if _, known := api.Namespaced(w.id.GroupKind()); !known && namespace == "" {
			advice = ", or write namespace: " + envelope.Namespace
		}
		return fmt.Sprintf("a cluster scoped %s cannot be wrapped in a %s; use a %s%s", kind, namespaceEnvelope, clusterEnvelope, advice)
	case inNamespace && namespace == "":
		return fmt.Sprintf("metadata.namespace of the %s is missing; write namespace: %s", kind, envelope.Namespace)
	case inNamespace && namespace != envelope.Namespace:
		return fmt.Sprintf("%s of namespace %s cannot be wrapped in a %s of namespace %s", api.WithArticle(kind), namespace, namespaceEnvelope, envelope.Namespace)
	case !inCluster && namespaced && namespace == "":
		return fmt.Sprintf("metadata.namespace of the %s is missing; write the namespace it goes to", kind)
	}
	return ""
}
