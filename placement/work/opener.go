package work

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The causes of refused objects.
const (
	duplicated   = "a duplicate manifest has been found"
	generateName = "objects with only generate name are not supported"
)

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
