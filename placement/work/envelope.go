package work

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A content is a selection with its envelopes opened.
type content struct {
	// manifests and refused are in canonical order.
	manifests []*Manifest
	refused   []Refused
	envelopes map[api.ID]bool
	warnings  []string
	problems  []error
}

// An opener opens envelopes.
type opener struct {
	content
	// within is the namespace to which wrapped objects are limited; empty for no limit.
	within string
	scope  Scope
	// builds are the objects of overlays.
	builds func(envelope *api.Object) ([]*api.Object, error)
	seen   map[api.ID]bool
}

// open opens the envelopes of a selection and keeps the other objects. builds returns the objects of an overlay. Of
// two objects with the same ID the first wins, and objects outside of envelopes come first.
func open(key api.PlacementKey, selected []*api.Object, scope Scope, builds func(*api.Object) ([]*api.Object, error)) content {
	o := &opener{within: key.Namespace, scope: scope, builds: builds, seen: map[api.ID]bool{}}
	o.envelopes = map[api.ID]bool{}
	if scope == nil {
		o.scope = func(api.GroupKind) (bool, bool) { return false, false }
	}
	var envelopes []*api.Object
	for _, object := range placement.Sorted(selected, func(o *api.Object) *api.Object { return o }) {
		if envelopeType(object) == "" {
			o.add(&Manifest{Object: object})
		} else {
			o.envelopes[object.ID] = true
			envelopes = append(envelopes, object)
		}
	}
	for _, e := range envelopes {
		o.unwrap(e)
	}
	if len(envelopes) > 0 {
		o.manifests = Sorted(o.manifests)
		o.refused = placement.Sorted(o.refused, func(r Refused) *api.Object { return r.Object })
	}
	return o.content
}

// The causes of refused objects.
const (
	duplicated   = "a duplicate manifest has been found"
	generateName = "objects with only generate name are not supported"
)

func (o *opener) add(m *Manifest) {
	switch {
	case m.ID.Name == "":
		o.refused = append(o.refused, Refused{m, api.FoundGenerateName, generateName})
	case o.seen[m.ID]:
		o.refused = append(o.refused, Refused{m, api.Duplicated, duplicated})
	default:
		o.seen[m.ID] = true
		m.Encrypted = m.Object.Ciphertext()
		o.manifests = append(o.manifests, m)
	}
}

// envelopeType returns the type of an envelope; "" if the object is none.
func envelopeType(o *api.Object) api.EnvelopeType {
	switch o.ID.GroupKind() {
	case api.GroupKind{Group: api.PlacementGroup, Kind: "ClusterResourceEnvelope"}:
		return api.ClusterResourceEnvelopeType
	case api.GroupKind{Group: api.PlacementGroup, Kind: "ResourceEnvelope"}:
		return api.ResourceEnvelopeType
	case api.GroupKind{Kind: "ConfigMap"}:
		if api.IsEnvelopeConfigMap(o.Content.Object) {
			return api.ConfigMapEnvelopeType
		}
	}
	if o.Overlay != nil {
		return api.EnvelopeType(o.ID.Kind)
	}
	return ""
}

func (o *opener) unwrap(envelope *api.Object) {
	id := &api.EnvelopeIdentifier{Name: envelope.ID.Name, Namespace: envelope.ID.Namespace, Type: envelopeType(envelope)}
	if id.Type.IsBuilt() {
		o.addBuilt(envelope, id)
		return
	}
	data, ok := envelope.Content.Object["data"].(map[string]any)
	if !ok && envelope.Content.Object["data"] != nil {
		o.problem("envelope %s: data is not a map", objectName(id.Namespace, id.Name))
		return
	}
	if id.Type == api.ConfigMapEnvelopeType {
		o.warnDoubtful(envelope)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if id.Type == api.ConfigMapEnvelopeType {
			o.unwrapConfigMapEntry(envelope, id, key, data[key])
		} else {
			o.unwrapEnvelopeEntry(envelope, id, key, data[key])
		}
	}
}

// unwrapEnvelopeEntry reads one entry of a ResourceEnvelope or a ClusterResourceEnvelope. Only
// the namespace in the entry counts, not the scope of its kind.
func (o *opener) unwrapEnvelopeEntry(envelope *api.Object, id *api.EnvelopeIdentifier, key string, value any) {
	ref := objectName(id.Namespace, id.Name)
	object, err := objectOf(value)
	if err != nil {
		o.problem("failed to parse the wrapped manifest data to a Kubernetes runtime object (manifestKey=%s,envelopeObjRef=%s): %w", key, ref, err)
		return
	}
	namespace := object.GetNamespace()
	name := objectName(namespace, object.GetName())
	clusterWide := id.Type == api.ClusterResourceEnvelopeType
	switch {
	case clusterWide && namespace != "":
		o.problem("a namespaced object %s (%s) has been wrapped in a cluster resource envelope %s", key, name, ref)
	case !clusterWide && namespace == "":
		o.problem("a cluster scope object %s (%s) has been wrapped in a resource envelope %s", key, name, ref)
	case !clusterWide && namespace != id.Namespace:
		o.problem("a namespaced object %s (%s) in has been wrapped in a resource envelope from another namespace (%s)", key, name, ref)
	default:
		o.addWrapped(envelope, id, key, object)
	}
}

// addBuilt adds the objects of an overlay.
func (o *opener) addBuilt(envelope *api.Object, id *api.EnvelopeIdentifier) {
	objects, err := o.builds(envelope)
	if err != nil {
		o.problem("%s: %s: %w", envelope.Overlay.At, envelope.ID, err)
		return
	}
	for _, object := range objects {
		namespace := o.reserved(object.Content)
		if namespace != "" && !(object.ID.Namespace == namespace && slices.Contains(envelope.Overlay.ReservedNamespaces, namespace)) {
			o.problem("%s: %s of %s: namespace %s is not allowed to propagate%s", object.Origin, object.ID, envelope.ID, namespace, api.ReservedHint(namespace))
			continue
		}
		o.add(&Manifest{Object: object, Envelope: id})
	}
}

// addWrapped adds the object of one entry of an envelope.
func (o *opener) addWrapped(envelope *api.Object, id *api.EnvelopeIdentifier, key string, object *unstructured.Unstructured) {
	if namespace := o.reserved(object); namespace != "" {
		o.problem("%s %q under key %q of envelope %s: namespace %s is not allowed to propagate%s", object.GetKind(),
			objectName(object.GetNamespace(), object.GetName()), key, objectName(id.Namespace, id.Name), namespace, api.ReservedHint(namespace))
		return
	}
	if envelope.HashKey != nil {
		api.SetSecretFields(object.Object, contentOf(object.Object))
	}
	hash, err := hashObject(object, envelope.HashKey)
	if err != nil {
		o.problem("envelope %s: %w", objectName(id.Namespace, id.Name), err)
		return
	}
	o.add(&Manifest{
		Object: &api.Object{
			ID: api.IDOf(object), Content: object, Hash: hash, HashKey: envelope.HashKey, CiphertextFault: envelope.CiphertextFault, Origin: envelope.Origin,
			Numbers: numbersIn(envelope, key),
		},
		Envelope: id,
	})
}

// numbersIn returns the fields of an entry of an envelope that must be numbers.
func numbersIn(envelope *api.Object, key string) []api.NumberField {
	var all []api.NumberField
	for _, n := range envelope.Numbers {
		if len(n.Path) > 2 && n.Path[0] == "data" && n.Path[1] == key {
			all = append(all, api.NumberField{Path: n.Path[2:], OrText: n.OrText})
		}
	}
	return all
}

// contentOf returns the paths of all that an object has beside its identity. In an envelope with encrypted values any of them
// may be one.
func contentOf(object map[string]any) [][]string {
	var paths [][]string
	for key := range object {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			paths = append(paths, []string{key})
		}
	}
	return paths
}

// reserved returns the reserved namespace that an object is or is in; empty if it may be
// placed. A ResourcePlacement may place objects of its own namespace, which Select allows by
// name only.
func (o *opener) reserved(object *unstructured.Unstructured) string {
	namespace := object.GetNamespace()
	if object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		namespace = object.GetName()
	} else if namespace == o.within && namespace != api.Namespace {
		return ""
	}
	if !api.ReservedNamespace(namespace) {
		return ""
	}
	return namespace
}

func (o *opener) problem(format string, args ...any) {
	o.problems = append(o.problems, fmt.Errorf(format, args...))
}

func (o *opener) warn(format string, args ...any) {
	o.warnings = append(o.warnings, fmt.Sprintf(format, args...))
}

// objectOf makes an object from decoded JSON, which it does not change. It leaves out the
// fields that a server sets.
func objectOf(value any) (*unstructured.Unstructured, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	if u.GetKind() == "" {
		return nil, errors.New("kind is missing")
	}
	if u.GetAPIVersion() == "" {
		return nil, errors.New("apiVersion is missing")
	}
	if _, err := schema.ParseGroupVersion(u.GetAPIVersion()); err != nil {
		return nil, fmt.Errorf("apiVersion: %w", err)
	}
	if u.GetName() == "" && u.GetGenerateName() == "" {
		return nil, errors.New("metadata.name is missing")
	}
	strip(u)
	return u, nil
}

// serverFields are the metadata fields that a server sets. They are present in the output of
// kubectl get, and applying them fails or has no effect.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// serverAnnotations are annotations that controllers and kubectl set.
var serverAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"deployment.kubernetes.io/revision",
}

// strip removes the fields that a server sets.
func strip(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, f := range serverFields {
		delete(metadata, f)
	}
	if annotations, is := metadata["annotations"].(map[string]any); is {
		for _, a := range serverAnnotations {
			delete(annotations, a)
		}
		if len(u.GetAnnotations()) == 0 { // also if a value is not text: a server would refuse them all
			delete(metadata, "annotations")
		}
	}
}
