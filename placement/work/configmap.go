package work

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// warnDoubtful warns of settings of a ConfigMap envelope that are probably mistakes.
func (o *opener) warnDoubtful(envelope *api.Object) {
	name := objectName(envelope.ID.Namespace, envelope.ID.Name)
	if marker := envelope.Content.GetAnnotations()[api.EnvelopeConfigMapAnnotation]; marker != "true" {
		o.warn("ConfigMap %q is taken for an envelope because of the annotation %s: %q; write \"true\", or \"false\" if it is none",
			name, api.EnvelopeConfigMapAnnotation, marker)
	}
	if binary, ok := envelope.Content.Object["binaryData"].(map[string]any); ok && len(binary) > 0 {
		o.warn("envelope ConfigMap %q: binaryData is ignored; put manifests under data", name)
	}
}

// unwrapConfigMapEntry reads one entry of a ConfigMap envelope: YAML or JSON, one document or
// several.
func (o *opener) unwrapConfigMapEntry(envelope *api.Object, id *api.EnvelopeIdentifier, key string, value any) {
	text, ok := value.(string)
	if !ok {
		o.malformed(id, key, errors.New("it is not text: indent the manifest below \"|\""))
		return
	}
	docs := documents(text)
	for i, doc := range docs {
		at := key
		if len(docs) > 1 {
			at = fmt.Sprintf("%s[%d]", key, i)
		}
		var value any
		if err := yaml.UnmarshalStrict([]byte(doc), &value); err != nil {
			// The parser's message has several lines, but a condition has only one.
			o.malformed(id, at, errors.New(strings.Join(strings.Fields(err.Error()), " ")))
			continue
		}
		object, err := objectOf(value)
		if err != nil {
			o.malformed(id, at, err)
			continue
		}
		if err := o.checkNamespace(id, at, object); err != nil {
			o.problems = append(o.problems, err)
			continue
		}
		if placement.NeverPropagated(object.GroupVersionKind()) {
			o.warn("envelope ConfigMap %q, key %q: objects of kind %s are not placed as a rule; this one is", objectName(id.Namespace, id.Name), at, object.GetKind())
		}
		o.addWrapped(envelope, id, at, object)
	}
}

// checkNamespace checks the namespace of an object in a ConfigMap envelope. With a
// ClusterResourcePlacement it may be any namespace; with a ResourcePlacement only its own.
func (o *opener) checkNamespace(id *api.EnvelopeIdentifier, key string, object *unstructured.Unstructured) error {
	ref := objectName(id.Namespace, id.Name)
	name, kind := object.GetName(), object.GetKind()
	namespaced, known := o.scope(object.GroupVersionKind().GroupKind())
	switch {
	case known && namespaced && object.GetNamespace() == "":
		return fmt.Errorf("the object with manifest key %q in envelope config %q is of the namespaced kind %s and needs a metadata.namespace",
			key, ref, kind)
	case known && !namespaced && object.GetNamespace() != "":
		o.warn("envelope ConfigMap %q, key %q: %s is not namespaced; its metadata.namespace is ignored", ref, key, kind)
		object.SetNamespace("")
	}
	namespace := object.GetNamespace()
	switch {
	case o.within != "" && namespace == "":
		return fmt.Errorf("cannot wrap cluster-scoped resource %s in the envelope %s", name, ref)
	case o.within != "" && namespace != id.Namespace:
		// The blank at the end is in KubeFleet's message.
		return fmt.Errorf("the namespaced object `%s` in envelope config `%s` is placed in a different namespace `%s` ", name, ref, namespace)
	case namespace != "" && namespace != id.Namespace:
		o.warn("envelope ConfigMap %q, key %q: %s %q is in another namespace, %q", ref, key, kind, name, namespace)
	}
	return nil
}

func (o *opener) malformed(id *api.EnvelopeIdentifier, key string, err error) {
	o.problem("the object with manifest key %q in envelope config %q is malformatted, err: %w", key, objectName(id.Namespace, id.Name), err)
}

// separator begins a document, which may follow on the same line.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// documents splits YAML into its documents, and leaves out those that are empty or have only
// comments.
func documents(text string) []string {
	return slices.DeleteFunc(separator.Split(text, -1), func(doc string) bool {
		for line := range strings.Lines(doc) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				return false
			}
		}
		return true
	})
}
