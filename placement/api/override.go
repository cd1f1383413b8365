package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ClusterResourceOverride changes cluster-scoped objects, and all that is in
// a Namespace, for the clusters its rules match.
type ClusterResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which objects, and how.
	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// A ClusterResourceOverrideSpec says which objects, and how.
type ClusterResourceOverrideSpec struct {
	// Placement is the one whose content is changed; every one if it is missing.
	Placement *PlacementRef `json:"placement,omitempty"`
	// ClusterResourceSelectors name the objects; 1 to 20.
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`
	// Policy is what to change, and where.
	Policy *OverridePolicy `json:"policy"`
}

// A ResourceOverride changes objects of its own namespace for the clusters its
// rules match.
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which objects, and how.
	Spec ResourceOverrideSpec `json:"spec"`
}

// A ResourceOverrideSpec says which objects, and how.
type ResourceOverrideSpec struct {
	// Placement is the one whose content is changed; every one if it is missing.
	Placement *PlacementRef `json:"placement,omitempty"`
	// ResourceSelectors name the objects; 1 to 20.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Policy is what to change, and where.
	Policy *OverridePolicy `json:"policy"`
}

// A PlacementRef ties an override to one placement.
type PlacementRef struct {
	// Name is that of the placement.
	Name string `json:"name"`
	// Scope is Cluster (the default) or Namespaced.
	Scope PlacementScope `json:"scope,omitempty"`
}

// A PlacementScope tells a ClusterResourcePlacement (Cluster) from a
// ResourcePlacement (Namespaced).
type PlacementScope string

// The scopes.
const (
	ClusterScoped   PlacementScope = "Cluster"
	NamespaceScoped PlacementScope = "Namespaced"
)

// A ResourceSelector names one object exactly.
type ResourceSelector struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Name is that of the object.
	Name string `json:"name"`
}

// An OverridePolicy is an ordered list of rules; all that match apply.
type OverridePolicy struct {
	// OverrideRules apply in order; 1 to 20.
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// An OverrideRule changes or deletes an object on the clusters it selects.
type OverrideRule struct {
	// ClusterSelector nil selects no cluster; with no terms, every cluster.
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
	// Operator is add, remove or replace.
	Operator JSONPatchOverrideOperator `json:"op"`
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Value may use ${MEMBER-CLUSTER-NAME} and ${MEMBER-CLUSTER-LABEL-KEY-…}.
	Value json.RawMessage `json:"value,omitempty"`
}

// A JSONPatchOverrideOperator is add, remove or replace.
type JSONPatchOverrideOperator string

// The operators.
const (
	JSONPatchAdd     JSONPatchOverrideOperator = "add"
	JSONPatchRemove  JSONPatchOverrideOperator = "remove"
	JSONPatchReplace JSONPatchOverrideOperator = "replace"
)
