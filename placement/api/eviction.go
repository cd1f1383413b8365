package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A ClusterResourcePlacementEviction removes a placement from one cluster, once.
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is removed from where.
	Spec EvictionSpec `json:"spec"`
	// Status says what came of it.
	Status EvictionStatus `json:"status,omitempty"`
}

// An EvictionSpec names a placement and a cluster.
type EvictionSpec struct {
	// PlacementName is the name of the ClusterResourcePlacement.
	PlacementName string `json:"placementName"`
	// ClusterName is the name of the MemberCluster.
	ClusterName string `json:"clusterName"`
}

// An EvictionStatus has the conditions of an eviction.
type EvictionStatus struct {
	// Conditions are Valid and, if that is true, Executed.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A ClusterResourcePlacementDisruptionBudget limits the evictions of the ClusterResourcePlacement of the same name.
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the budget.
	Spec DisruptionBudgetSpec `json:"spec"`
}

// A DisruptionBudgetSpec has at most one of its fields; with none it blocks every eviction.
type DisruptionBudgetSpec struct {
	// MaxUnavailable is how many clusters may be unavailable, or which share of the wanted ones.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable is how many clusters have to be available, or which share of the wanted ones.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// FaultFor returns the name of the field that a policy does not allow; empty if there is none. PickAll wants no number of clusters,
// of which the budget could be a share.
func (s *DisruptionBudgetSpec) FaultFor(p *PlacementPolicy) string {
	switch {
	case p.Type() != PickAll:
	case s.MaxUnavailable != nil:
		return "maxUnavailable"
	case s.MinAvailable != nil && s.MinAvailable.Type == intstr.String:
		return "minAvailable"
	}
	return ""
}

// The conditions of evictions with their reasons, which are KubeFleet's.
const (
	EvictionValid       = "Valid"
	EvictionExecuted    = "Executed"
	EvictionIsValid     = "ClusterResourcePlacementEvictionValid"
	EvictionIsInvalid   = "ClusterResourcePlacementEvictionInvalid"
	EvictionWasExecuted = "ClusterResourcePlacementEvictionExecuted"
	EvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)

// CordonTaint is the taint of a cluster that is drained, which is that of KubeFleet's drain command.
func CordonTaint() Taint {
	return Taint{Key: "cordon-key", Value: "cordon-value", Effect: NoSchedule}
}
