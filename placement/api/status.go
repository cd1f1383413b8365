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
	Conditions        []metav1.Condition          `json:"conditions,omitempty"`
}

// A ResourceIdentifier names one object of the hub.
type ResourceIdentifier struct {
	Group     string              `json:"group,omitempty"`
	Version   string              `json:"version"`
	Kind      string              `json:"kind"`
	Name      string              `json:"name"`
	Namespace string              `json:"namespace,omitempty"`
	Envelope  *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// An EnvelopeIdentifier names the envelope an object came out of.
type EnvelopeIdentifier struct {
	Name      string       `json:"name"`
	Namespace string       `json:"namespace,omitempty"`
	Type      EnvelopeType `json:"type,omitempty"`
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
	ClusterName                        string                     `json:"clusterName,omitempty"`
	ObservedResourceIndex              string                     `json:"observedResourceIndex,omitempty"`
	ApplicableResourceOverrides        []NamespacedName           `json:"applicableResourceOverrides,omitempty"`
	ApplicableClusterResourceOverrides []string                   `json:"applicableClusterResourceOverrides,omitempty"`
	FailedPlacements                   []FailedResourcePlacement  `json:"failedPlacements,omitempty"`
	DriftedPlacements                  []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	DiffedPlacements                   []DiffedResourcePlacement  `json:"diffedPlacements,omitempty"`
	Conditions                         []metav1.Condition         `json:"conditions,omitempty"`
}

// A NamespacedName names an override.
type NamespacedName struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// A FailedResourcePlacement is an object that is not applied or not available.
type FailedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	Condition          metav1.Condition `json:"condition"`
}

// A DriftedResourcePlacement is an object that has moved away from what was
// applied.
type DriftedResourcePlacement struct {
	ResourceIdentifier              `json:",inline"`
	ObservationTime                 metav1.Time   `json:"observationTime"`
	TargetClusterObservedGeneration int64         `json:"targetClusterObservedGeneration"`
	FirstDriftedObservedTime        metav1.Time   `json:"firstDriftedObservedTime"`
	ObservedDrifts                  []PatchDetail `json:"observedDrifts,omitempty"`
}

// A DiffedResourcePlacement is an object that differs and was not applied.
type DiffedResourcePlacement struct {
	ResourceIdentifier              `json:",inline"`
	ObservationTime                 metav1.Time   `json:"observationTime"`
	TargetClusterObservedGeneration *int64        `json:"targetClusterObservedGeneration"`
	FirstDiffedObservedTime         metav1.Time   `json:"firstDiffedObservedTime"`
	ObservedDiffs                   []PatchDetail `json:"observedDiffs,omitempty"`
}

// A PatchDetail is one difference between hub and member, as text.
type PatchDetail struct {
	// Path is a JSON pointer.
	Path          string `json:"path"`
	ValueInMember string `json:"valueInMember,omitempty"`
	ValueInHub    string `json:"valueInHub,omitempty"`
}
