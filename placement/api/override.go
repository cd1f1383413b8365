package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ClusterResourceOverride changes cluster-scoped objects, and the objects in selected
// namespaces, on the clusters that its rules match.
type ClusterResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// A ClusterResourceOverrideSpec is the spec of a ClusterResourceOverride.
type ClusterResourceOverrideSpec struct {
	// Placement is the placement whose objects are changed; all placements if it is missing.
	Placement *PlacementRef `json:"placement,omitempty"`
	// ClusterResourceSelectors select the objects to change; 1 to 20.
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`
	// Policy has the rules that change the objects.
	Policy *OverridePolicy `json:"policy"`
}

// A ResourceOverride changes objects of its own namespace on the clusters that its rules match.
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec ResourceOverrideSpec `json:"spec"`
}

// A ResourceOverrideSpec is the spec of a ResourceOverride.
type ResourceOverrideSpec struct {
	// Placement is the placement whose objects are changed; all placements if it is missing.
	Placement *PlacementRef `json:"placement,omitempty"`
	// ResourceSelectors select the objects to change; 1 to 20.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Policy has the rules that change the objects.
	Policy *OverridePolicy `json:"policy"`
}

// A PlacementRef binds an override to one placement.
type PlacementRef struct {
	// Name is the name of the placement.
	Name string `json:"name"`
	// Scope is Cluster (the default) or Namespaced.
	Scope PlacementScope `json:"scope,omitempty"`
}

// A PlacementScope is Cluster for a ClusterResourcePlacement, or Namespaced for a
// ResourcePlacement.
type PlacementScope string

// The scopes.
const (
	ClusterScoped   PlacementScope = "Cluster"
	NamespaceScoped PlacementScope = "Namespaced"
)

// A ResourceSelector selects one object by name.
type ResourceSelector struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
}

// An OverridePolicy is a list of rules, of which all that match a cluster apply.
type OverridePolicy struct {
	// OverrideRules apply in order; 1 to 20.
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// An OverrideRule changes objects on the clusters that it matches, or leaves them out there.
type OverrideRule struct {
	// ClusterSelector matches no cluster if it is missing, and every cluster if it has no terms.
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`
	// OverrideType is JSONPatch (the default) or Delete.
	OverrideType OverrideType `json:"overrideType,omitempty"`
	// JSONPatchOverrides apply in order; 1 to 20.
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// An OverrideType is JSONPatch or Delete.
type OverrideType string

// The override types.
const (
	JSONPatchOverrideType OverrideType = "JSONPatch"
	DeleteOverrideType    OverrideType = "Delete"
)

// A JSONPatchOverride is one operation of an RFC 6902 patch.
type JSONPatchOverride struct {
	// Operator is add, remove, replace or test.
	Operator JSONPatchOverrideOperator `json:"op"`
	// Path is the JSON pointer of the field.
	Path string `json:"path"`
	// Value is the new value, or the one that a test expects. In strings, ${MEMBER-CLUSTER-NAME} and
	// ${MEMBER-CLUSTER-LABEL-KEY-…} are replaced by the cluster's name and labels.
	Value json.RawMessage `json:"value,omitempty"`
}

// A JSONPatchOverrideOperator is add, remove, replace or test. KubeFleet has no test, which changes nothing and fails
// unless the field has the value.
type JSONPatchOverrideOperator string

// The operators.
const (
	JSONPatchAdd     JSONPatchOverrideOperator = "add"
	JSONPatchRemove  JSONPatchOverrideOperator = "remove"
	JSONPatchReplace JSONPatchOverrideOperator = "replace"
	JSONPatchTest    JSONPatchOverrideOperator = "test"
)
