package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsEnvelopeConfigMap reports whether a ConfigMap is an envelope: the value of its
// EnvelopeConfigMapAnnotation is neither empty nor "false".
func IsEnvelopeConfigMap(configMap map[string]any) bool {
	marker, _, _ := unstructured.NestedString(configMap, "metadata", "annotations", EnvelopeConfigMapAnnotation)
	return marker != "" && marker != "false"
}

// A ClusterResourceEnvelope wraps cluster-scoped objects that are applied to member clusters
// only.
type ClusterResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has 1 to 50 entries, each one object.
	Data map[string]json.RawMessage `json:"data"`
}

// A ResourceEnvelope wraps objects of its own namespace that are applied to member clusters
// only.
type ResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has 1 to 50 entries, each one object.
	Data map[string]json.RawMessage `json:"data"`
}
