package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A PlacementStatus says what became of a placement.
type PlacementStatus struct {
	// SelectedResources are in canonical order; an envelope stands for its
	// contents.
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// ObservedResourceIndex counts the distinct contents of the placement,
	// from "0".
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// PlacementStatuses has one entry for each selected cluster, then one
	// without a name for each cluster that is missing.
	PlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`
	// Conditions say how far the placement is, until the first that is not True.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A ResourceIdentifier names one object of the hub.
type ResourceIdentifier struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group,omitempty"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Name is that of the object.
	Name string `json:"name"`
	// Namespace is empty for an object that lives in none.
	Namespace string `json:"namespace,omitempty"`
	// Envelope is what the object came out of, if it did.
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// ID returns the object's ID, which has no version and no envelope.
func (r ResourceIdentifier) ID() ID {
	return ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// An EnvelopeIdentifier names the envelope an object came out of.
type EnvelopeIdentifier struct {
	// Name is that of the envelope.
	Name string `json:"name"`
	// Namespace is empty for an envelope that lives in none.
	Namespace string `json:"namespace,omitempty"`
	// Type is ConfigMap, ClusterResourceEnvelope or ResourceEnvelope.
	Type EnvelopeType `json:"type,omitempty"`
}

// An EnvelopeType is one of the three ways to wrap objects.
type EnvelopeType string

// The envelope types.
const (
	ConfigMapEnvelopeType       EnvelopeType = "ConfigMap"
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	ResourceEnvelopeType        EnvelopeType = "ResourceEnvelope"
)

// A PerClusterPlacementStatus says what became of a placement on one cluster.
type PerClusterPlacementStatus struct {
	// ClusterName is empty for a cluster that could not be found.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedResourceIndex is the content that is meant for the cluster.
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// ApplicableResourceOverrides are the overrides that change the content here.
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// ApplicableClusterResourceOverrides are those that reach over namespaces.
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// FailedPlacements are objects that are not applied or not available.
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`
	// DriftedPlacements are objects that moved away from what was applied.
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	// DiffedPlacements are objects that differ and were not applied.
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`
	// Conditions say how far the placement is on this cluster.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A NamespacedName names an override.
type NamespacedName struct {
	// Name is that of the override.
	Name string `json:"name"`
	// Namespace is where it lives.
	Namespace string `json:"namespace,omitempty"`
}

// A FailedResourcePlacement is an object that is not applied or not available.
type FailedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// Condition says why.
	Condition metav1.Condition `json:"condition"`
}

// A DriftedResourcePlacement is an object that has moved away from what was
// applied.
type DriftedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is when it was last looked at.
	ObservationTime metav1.Time `json:"observationTime"`
	// TargetClusterObservedGeneration is the generation of the object there.
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`
	// FirstDriftedObservedTime is when it was first seen.
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`
	// ObservedDrifts are the fields that differ.
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// A DiffedResourcePlacement is an object that differs and was not applied.
type DiffedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is when it was last looked at.
	ObservationTime metav1.Time `json:"observationTime"`
	// TargetClusterObservedGeneration is the generation of the object there; null if
	// there is none.
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration"`
	// FirstDiffedObservedTime is when it was first seen.
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`
	// ObservedDiffs are the fields that differ.
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// A PatchDetail is one difference between hub and member, as text.
type PatchDetail struct {
	// Path is a JSON pointer.
	Path string `json:"path"`
	// ValueInMember is what the cluster has; empty for nothing.
	ValueInMember string `json:"valueInMember,omitempty"`
	// ValueInHub is what the repository wants; empty for nothing.
	ValueInHub string `json:"valueInHub,omitempty"`
}
