package api

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A MemberCluster registers a cluster with the fleet. Its spec and labels come from Git, and its
// status from gitfleet's probes of the cluster.
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec MemberClusterSpec `json:"spec,omitempty"`
	// Status is the observed state of the cluster.
	Status MemberClusterStatus `json:"status,omitempty"`
}

// A MemberClusterSpec is the spec of a MemberCluster.
type MemberClusterSpec struct {
	// Identity is the identity of KubeFleet's member agent. gitfleet has no agent and ignores
	// it.
	Identity *Subject `json:"identity,omitempty"`
	// HeartbeatPeriodSeconds is the interval of KubeFleet's heartbeats. gitfleet ignores it and
	// probes clusters at an interval of its own.
	HeartbeatPeriodSeconds *int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// Taints keep away placements that do not tolerate them.
	Taints []Taint `json:"taints,omitempty"`
	// DeleteOptions configure how the cluster leaves the fleet.
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// A Subject is the user, group or service account of a member agent in KubeFleet.
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	Kind string `json:"kind"`
	// APIGroup is the API group of the kind.
	APIGroup string `json:"apiGroup,omitempty"`
	// Name is the name of the subject.
	Name string `json:"name"`
	// Namespace is the namespace of a ServiceAccount.
	Namespace string `json:"namespace,omitempty"`
}

// A Taint keeps away placements that do not tolerate it.
type Taint struct {
	// Key is the key of the taint.
	Key string `json:"key"`
	// Value is the value of the taint, which tolerations are compared with.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule.
	Effect TaintEffect `json:"effect"`
}

// A Toleration lets a placement select clusters with matching taints.
type Toleration struct {
	// Key is the key of the taint. Empty, with the operator Exists, matches all keys.
	Key string `json:"key,omitempty"`
	// Operator is Equal (the default) or Exists.
	Operator TolerationOperator `json:"operator,omitempty"`
	// Value is the value of the taint, with the operator Equal.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, or empty to match all effects.
	Effect TaintEffect `json:"effect,omitempty"`
}

// A TaintEffect is the effect of a taint that is not tolerated. Only NoSchedule exists.
type TaintEffect string

// NoSchedule keeps new placements off the cluster. Placements that hold the cluster stay.
const NoSchedule TaintEffect = "NoSchedule"

// A TolerationOperator is Equal (the default) or Exists.
type TolerationOperator string

// The operators.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// A ResourceList maps the name of a resource, such as cpu, to a quantity.
type ResourceList map[string]resource.Quantity

// DeleteOptions configure how a cluster leaves the fleet.
type DeleteOptions struct {
	// ValidationMode is Strict (the default) or Skip.
	ValidationMode DeleteValidationMode `json:"validationMode,omitempty"`
}

// A DeleteValidationMode is Strict or Skip.
type DeleteValidationMode string

// The modes.
const (
	DeleteValidationStrict DeleteValidationMode = "Strict"
	DeleteValidationSkip   DeleteValidationMode = "Skip"
)

// A MemberClusterStatus is the observed state of a cluster.
type MemberClusterStatus struct {
	// Conditions include whether the cluster has joined the fleet.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Properties are the observed properties that placements can select by, besides those of
	// ResourceUsage.
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// Namespaces are the namespaces of the cluster, each with the placement that owns it.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// ResourceUsage has the resources of all nodes.
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// AgentStatus is the result of the last probe of the cluster.
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
}

// A PropertyValue is one observed property.
type PropertyValue struct {
	// Value is the value, usually a quantity.
	Value string `json:"value"`
	// ObservationTime is the time of the observation.
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// ResourceUsage has the resources of a cluster, as sums over its nodes.
type ResourceUsage struct {
	// Capacity is the capacity of the nodes.
	Capacity ResourceList `json:"capacity,omitempty"`
	// Allocatable is the part of the capacity that pods can use.
	Allocatable ResourceList `json:"allocatable,omitempty"`
	// Available is the part of Allocatable that no pod requests.
	Available ResourceList `json:"available,omitempty"`
	// ObservationTime is the time of the observation.
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// AgentStatus is the status of a member agent in KubeFleet. gitfleet has no agent and reports
// the results of its own probes here, with the type MemberAgent.
type AgentStatus struct {
	// Type is MemberAgent.
	Type AgentType `json:"type"`
	// Conditions are the conditions of the agent.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastReceivedHeartbeat is the time at which the cluster last responded.
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitempty"`
}

// An AgentType is a type of member agent.
type AgentType string

// MemberAgent is the only type that gitfleet reports.
const MemberAgent AgentType = "MemberAgent"
