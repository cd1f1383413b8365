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

	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// A ClusterResourceOverrideSpec says which objects, and how.
type ClusterResourceOverrideSpec struct {
	Placement                *PlacementRef          `json:"placement,omitempty"`
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`
	Policy                   *OverridePolicy        `json:"policy"`
}

// A ResourceOverride changes objects of its own namespace for the clusters its
// rules match.
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourceOverrideSpec `json:"spec"`
}

// A ResourceOverrideSpec says which objects, and how.
type ResourceOverrideSpec struct {
	Placement         *PlacementRef      `json:"placement,omitempty"`
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	Policy            *OverridePolicy    `json:"policy"`
}

// A PlacementRef ties an override to one placement.
type PlacementRef struct {
	Name  string         `json:"name"`
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
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

// An OverridePolicy is an ordered list of rules; all that match apply.
type OverridePolicy struct {
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// An OverrideRule changes or deletes an object on the clusters it selects.
type OverrideRule struct {
	// ClusterSelector nil selects no cluster; with no terms, every cluster.
	ClusterSelector    *ClusterSelector    `json:"clusterSelector,omitempty"`
	OverrideType       OverrideType        `json:"overrideType,omitempty"`
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
	Operator JSONPatchOverrideOperator `json:"op"`
	Path     string                    `json:"path"`
	Value    json.RawMessage           `json:"value,omitempty"`
}

// A JSONPatchOverrideOperator is add, remove or replace.
type JSONPatchOverrideOperator string

// The operators.
const (
	JSONPatchAdd     JSONPatchOverrideOperator = "add"
	JSONPatchRemove  JSONPatchOverrideOperator = "remove"
	JSONPatchReplace JSONPatchOverrideOperator = "replace"
)
