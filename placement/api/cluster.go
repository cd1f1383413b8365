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

	Spec   MemberClusterSpec   `json:"spec,omitempty"`
	Status MemberClusterStatus `json:"status,omitempty"`
}

// A MemberClusterSpec is what is declared of a cluster.
type MemberClusterSpec struct {
	// Identity is KubeFleet's; gitfleet has no agent and ignores it.
	Identity               *Subject       `json:"identity,omitempty"`
	HeartbeatPeriodSeconds *int32         `json:"heartbeatPeriodSeconds,omitempty"`
	Taints                 []Taint        `json:"taints,omitempty"`
	DeleteOptions          *DeleteOptions `json:"deleteOptions,omitempty"`
}

// A Subject is who acts for a member in KubeFleet.
type Subject struct {
	Kind      string `json:"kind"`
	APIGroup  string `json:"apiGroup,omitempty"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// A Taint keeps placements away that do not tolerate it.
type Taint struct {
	Key    string      `json:"key"`
	Value  string      `json:"value,omitempty"`
	Effect TaintEffect `json:"effect"`
}

// A Toleration lets a placement choose a tainted cluster.
type Toleration struct {
	Key      string             `json:"key,omitempty"`
	Operator TolerationOperator `json:"operator,omitempty"`
	Value    string             `json:"value,omitempty"`
	Effect   TaintEffect        `json:"effect,omitempty"`
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
	Conditions    []metav1.Condition       `json:"conditions,omitempty"`
	Properties    map[string]PropertyValue `json:"properties,omitempty"`
	Namespaces    map[string]string        `json:"namespaces,omitempty"`
	ResourceUsage ResourceUsage            `json:"resourceUsage,omitempty"`
	AgentStatus   []AgentStatus            `json:"agentStatus,omitempty"`
}

// A PropertyValue is one observed property.
type PropertyValue struct {
	Value           string      `json:"value"`
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// ResourceUsage sums the nodes of a cluster.
type ResourceUsage struct {
	Capacity        ResourceList `json:"capacity,omitempty"`
	Allocatable     ResourceList `json:"allocatable,omitempty"`
	Available       ResourceList `json:"available,omitempty"`
	ObservationTime metav1.Time  `json:"observationTime,omitempty"`
}

// AgentStatus is KubeFleet's heartbeat. gitfleet has no agent; it reports its
// own probes in this shape under the type MemberAgent.
type AgentStatus struct {
	Type                  AgentType          `json:"type"`
	Conditions            []metav1.Condition `json:"conditions,omitempty"`
	LastReceivedHeartbeat metav1.Time        `json:"lastReceivedHeartbeat,omitempty"`
}

// An AgentType names the sender of a heartbeat.
type AgentType string

// MemberAgent is the only type gitfleet reports.
const MemberAgent AgentType = "MemberAgent"
