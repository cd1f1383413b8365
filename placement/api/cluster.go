package api

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A MemberCluster registers a cluster with the fleet. In a Git hub its spec
// and labels come from Git and its status from gitfleet's own probes.
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the manifest declares.
	Spec MemberClusterSpec `json:"spec,omitempty"`
	// Status is what is seen of the cluster.
	Status MemberClusterStatus `json:"status,omitempty"`
}

// A MemberClusterSpec is what is declared of a cluster.
type MemberClusterSpec struct {
	// Identity is KubeFleet's; gitfleet has no agent and ignores it.
	Identity *Subject `json:"identity,omitempty"`
	// HeartbeatPeriodSeconds is KubeFleet's; gitfleet probes by a setting of its own.
	HeartbeatPeriodSeconds *int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// Taints keep placements away that do not tolerate them.
	Taints []Taint `json:"taints,omitempty"`
	// DeleteOptions say how the cluster leaves.
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// A Subject is who acts for a member in KubeFleet.
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	Kind string `json:"kind"`
	// APIGroup is that of the kind.
	APIGroup string `json:"apiGroup,omitempty"`
	// Name is that of the subject.
	Name string `json:"name"`
	// Namespace is that of a ServiceAccount.
	Namespace string `json:"namespace,omitempty"`
}

// A Taint keeps placements away that do not tolerate it.
type Taint struct {
	// Key is that of the taint.
	Key string `json:"key"`
	// Value is compared with that of a toleration.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule.
	Effect TaintEffect `json:"effect"`
}

// A Toleration lets a placement choose a tainted cluster.
type Toleration struct {
	// Key is that of the taint; empty for all, with the operator Exists.
	Key string `json:"key,omitempty"`
	// Operator is Equal (the default) or Exists.
	Operator TolerationOperator `json:"operator,omitempty"`
	// Value is compared with that of the taint.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, or empty for all.
	Effect TaintEffect `json:"effect,omitempty"`
}

// A TaintEffect is what an untolerated taint does; only NoSchedule exists.
type TaintEffect string

// NoSchedule keeps new placements away and leaves those that are there.
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

// DeleteOptions say how a cluster leaves the fleet.
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

// A MemberClusterStatus is what is seen of a cluster.
type MemberClusterStatus struct {
	// Conditions say whether the cluster has joined.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Properties are what a placement can ask for, beside resources.
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// Namespaces are those of the cluster, with the placement each belongs to.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// ResourceUsage sums the nodes.
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// AgentStatus is when the cluster last answered, and how.
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
}

// A PropertyValue is one observed property.
type PropertyValue struct {
	// Value is a quantity, for most.
	Value string `json:"value"`
	// ObservationTime is when it was seen.
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// ResourceUsage sums the nodes of a cluster.
type ResourceUsage struct {
	// Capacity is what the nodes have.
	Capacity ResourceList `json:"capacity,omitempty"`
	// Allocatable is what they have for workloads.
	Allocatable ResourceList `json:"allocatable,omitempty"`
	// Available is what of that is not requested.
	Available ResourceList `json:"available,omitempty"`
	// ObservationTime is when it was seen.
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// AgentStatus is KubeFleet's heartbeat. gitfleet has no agent; it reports its
// own probes in this shape under the type MemberAgent.
type AgentStatus struct {
	// Type is MemberAgent.
	Type AgentType `json:"type"`
	// Conditions are those of the agent.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastReceivedHeartbeat is when the cluster last answered.
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitempty"`
}

// An AgentType names the sender of a heartbeat.
type AgentType string

// MemberAgent is the only type gitfleet reports.
const MemberAgent AgentType = "MemberAgent"
