package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A PlacementStatus is the observed state of a placement.
type PlacementStatus struct {
	// SelectedResources are the selected objects in canonical order. An envelope is one object.
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// ObservedResourceIndex is the number of the current content of the placement, which is
	// counted from "0".
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// PlacementStatuses has one entry for each selected cluster, then one without a name for
	// each cluster that the policy asks for and that was not found.
	PlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`
	// Conditions are the steps of the placement, up to the first that is not True.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ID returns the object's ID, which has no version and no envelope.
func (r ResourceIdentifier) ID() ID {
	return ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// SortKey is the sort key of lists of objects, unique within a placement.
func (r ResourceIdentifier) SortKey() string {
	parts := []string{r.Group, r.Version, r.Kind, r.Namespace, r.Name}
	if e := r.Envelope; e != nil {
		parts = append(parts, string(e.Type), e.Namespace, e.Name)
	}
	return strings.Join(parts, "/")
}

// IsBuilt reports whether the content of such an envelope is built: by kustomize or from a chart.
func (t EnvelopeType) IsBuilt() bool {
	return t == ClusterOverlayType || t == OverlayType || t.IsChart()
}

// IsChart reports whether the content of such an envelope is rendered from a chart.
func (t EnvelopeType) IsChart() bool { return t == ClusterHelmChartType || t == HelmChartType }

// ID returns the ID of the envelope itself.
func (e EnvelopeIdentifier) ID() ID {
	id := ID{Kind: string(e.Type), Namespace: e.Namespace, Name: e.Name}
	switch {
	case e.Type.IsBuilt():
		id.Group = OverlayGroup
	case e.Type != ConfigMapEnvelopeType:
		id.Group = PlacementGroup
	}
	return id
}

// A PerClusterPlacementStatus is the observed state of a placement on one cluster.
type PerClusterPlacementStatus struct {
	// ClusterName is the name of the cluster; empty for one that was not found.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedResourceIndex is the number of the content that the cluster should have.
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// ApplicableResourceOverrides are the ResourceOverrides that apply on the cluster.
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// ApplicableClusterResourceOverrides are the ClusterResourceOverrides that apply on the
	// cluster.
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// FailedPlacements are the objects that are not applied or not available.
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`
	// DriftedPlacements are the objects that others have changed since they were applied.
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	// DiffedPlacements are the objects that differ from their manifests and are not applied.
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`
	// Conditions are the steps of the placement on the cluster.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A NamespacedName identifies an override.
type NamespacedName struct {
	// Name is the name of the override.
	Name string `json:"name"`
	// Namespace is the namespace of the override; empty for a cluster-scoped one.
	Namespace string `json:"namespace,omitempty"`
}

// A FailedResourcePlacement is an object that is not applied or not available.
type FailedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// Condition is the condition Applied or Available of the object.
	Condition metav1.Condition `json:"condition"`
}

// A DriftedResourcePlacement is an object that others have changed since it was applied.
type DriftedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is the time of the last comparison.
	ObservationTime metav1.Time `json:"observationTime"`
	// TargetClusterObservedGeneration is the generation of the object on the cluster.
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`
	// FirstDriftedObservedTime is the time at which the drift was first observed.
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`
	// ObservedDrifts are the fields that differ.
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// A DiffedResourcePlacement is an object that differs from its manifest and is not applied.
type DiffedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is the time of the last comparison.
	ObservationTime metav1.Time `json:"observationTime"`
	// TargetClusterObservedGeneration is the generation of the object on the cluster; null if
	// the object does not exist.
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration"`
	// FirstDiffedObservedTime is the time at which the difference was first observed.
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`
	// ObservedDiffs are the fields that differ.
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// A PatchDetail is a field that differs between the repository and a cluster.
type PatchDetail struct {
	// Path is the JSON pointer of the field.
	Path string `json:"path"`
	// ValueInMember is the value on the cluster as text; empty if there is none.
	ValueInMember string `json:"valueInMember,omitempty"`
	// ValueInHub is the value in the repository as text; empty if there is none.
	ValueInHub string `json:"valueInHub,omitempty"`
}
