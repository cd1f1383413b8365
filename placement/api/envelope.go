package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsEnvelopeConfigMap reports whether a ConfigMap is an envelope: whether it has
// the annotation, with any value but "false".
func IsEnvelopeConfigMap(configMap map[string]any) bool {
	marker, _, _ := unstructured.NestedString(configMap, "metadata", "annotations", EnvelopeConfigMapAnnotation)
	return marker != "" && marker != "false"
}

// A ClusterResourceEnvelope wraps cluster-scoped objects that take effect on
// the members only.
type ClusterResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has 1 to 50 entries, each one object.
	Data map[string]json.RawMessage `json:"data"`
}

// A ResourceEnvelope wraps objects of its own namespace.
type ResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has 1 to 50 entries, each one object.
	Data map[string]json.RawMessage `json:"data"`
}
