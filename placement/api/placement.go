package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A ClusterResourcePlacement says which cluster-scoped objects and namespaces
// of the hub go to which member clusters, and how they get there.
type ClusterResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the manifest asks for, with its defaults filled in.
	Spec PlacementSpec `json:"spec"`
	// Status is what became of it.
	Status PlacementStatus `json:"status,omitempty"`
}

// A ResourcePlacement places namespaced objects of its own namespace. Spec and
// Status have the shape of a ClusterResourcePlacement's.
type ResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the manifest asks for, with its defaults filled in.
	Spec PlacementSpec `json:"spec"`
	// Status is what became of it.
	Status PlacementStatus `json:"status,omitempty"`
}

// A ClusterResourcePlacementStatus mirrors the status of a placement whose
// StatusReportingScope is NamespaceAccessible into the namespace it places.
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// SourceStatus is all of it but the condition StatusSynced.
	SourceStatus PlacementStatus `json:"sourceStatus,omitempty"`
	// LastUpdatedTime is when SourceStatus last changed, or was first told after
	// a restart.
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}

// A PlacementSpec is what a user asks for: what, where, and how.
type PlacementSpec struct {
	// ResourceSelectors are ORed; 1 to 100 of them.
	ResourceSelectors []ResourceSelectorTerm `json:"resourceSelectors"`
	// Policy says where; nil means every eligible cluster (PickAll).
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// Strategy says how and when.
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// RevisionHistoryLimit is accepted for compatibility; the history is Git's.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// StatusReportingScope is ClusterScopeOnly or NamespaceAccessible.
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// A ResourceSelectorTerm names objects of one group, version and kind; with
// neither Name nor LabelSelector it names all of them.
type ResourceSelectorTerm struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind, such as Namespace.
	Kind string `json:"kind"`
	// Name is that of the one object meant; not together with LabelSelector.
	Name string `json:"name,omitempty"`
	// LabelSelector means the objects with these labels; not together with Name.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SelectionScope says what a selected Namespace takes along; by default all that is in it.
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// A SelectionScope says what a term for a Namespace takes along.
type SelectionScope string

// The selection scopes. An empty scope means NamespaceWithResources.
const (
	NamespaceOnly                  SelectionScope = "NamespaceOnly"
	NamespaceWithResources         SelectionScope = "NamespaceWithResources"
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// A StatusReportingScope says where the status of a placement can be read.
type StatusReportingScope string

// The status reporting scopes.
const (
	ClusterScopeOnly    StatusReportingScope = "ClusterScopeOnly"
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// A PlacementType is the way clusters are chosen.
type PlacementType string

// The placement types.
const (
	PickAll   PlacementType = "PickAll"
	PickN     PlacementType = "PickN"
	PickFixed PlacementType = "PickFixed"
)

// A PlacementPolicy says which clusters are chosen.
type PlacementPolicy struct {
	// PlacementType is PickAll (the default), PickN or PickFixed.
	PlacementType PlacementType `json:"placementType,omitempty"`
	// ClusterNames is for PickFixed only; at most 100.
	ClusterNames []string `json:"clusterNames,omitempty"`
	// NumberOfClusters is for PickN only, and mandatory there.
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// Affinity says which clusters are demanded or preferred; for PickAll and PickN.
	Affinity *Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints spread the clusters over the values of a label; for
	// PickN only.
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Tolerations let tainted clusters be chosen; for PickAll and PickN.
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Affinity is what a placement wants of its clusters.
type Affinity struct {
	// ClusterAffinity demands or prefers clusters by their labels and properties.
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// PlacementAffinity keeps this placement on clusters another one has
	// chosen; gitfleet's own, absent from KubeFleet.
	PlacementAffinity []PlacementReference `json:"placementAffinity,omitempty"`
	// PlacementAntiAffinity keeps it away from them; gitfleet's own.
	PlacementAntiAffinity []PlacementReference `json:"placementAntiAffinity,omitempty"`
}

// A PlacementReference names another placement of the same kind, and for a
// ResourcePlacement of the same namespace.
type PlacementReference struct {
	// Name is that of the other placement.
	Name string `json:"name"`
}

// ClusterAffinity is judged when a cluster is chosen and ignored afterwards.
type ClusterAffinity struct {
	// Required clusters are the only ones that can be chosen.
	Required *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// Preferred clusters are chosen before others; for PickN only.
	Preferred []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// A ClusterSelector matches a cluster that any of its terms matches.
type ClusterSelector struct {
	// ClusterSelectorTerms are ORed; at most 10.
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// A ClusterSelectorTerm matches when all that is set in it matches; an empty
// one matches every cluster.
type ClusterSelectorTerm struct {
	// LabelSelector demands labels of the cluster.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// PropertySelector demands values of properties; in required terms only.
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`
	// PropertySorter grades clusters by a property; in preferred terms only.
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// A PropertySelector demands values of cluster properties; all must hold.
type PropertySelector struct {
	// MatchExpressions are ANDed.
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// A PropertySelectorRequirement compares one property with one quantity.
type PropertySelectorRequirement struct {
	// Name is that of the property, such as resources.kubernetes-fleet.io/available-cpu.
	Name string `json:"name"`
	// Operator is Gt, Ge, Eq, Ne, Lt or Le.
	Operator PropertySelectorOperator `json:"operator"`
	// Values has exactly one quantity.
	Values []string `json:"values"`
}

// A PropertySelectorOperator compares quantities.
type PropertySelectorOperator string

// The property selector operators.
const (
	PropertyGreaterThan          PropertySelectorOperator = "Gt"
	PropertyGreaterThanOrEqualTo PropertySelectorOperator = "Ge"
	PropertyEqualTo              PropertySelectorOperator = "Eq"
	PropertyNotEqualTo           PropertySelectorOperator = "Ne"
	PropertyLessThan             PropertySelectorOperator = "Lt"
	PropertyLessThanOrEqualTo    PropertySelectorOperator = "Le"
)

// A PropertySorter grades clusters by a property.
type PropertySorter struct {
	// Name is that of the property.
	Name string `json:"name"`
	// SortOrder is Ascending or Descending.
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// A PropertySortOrder says which end of a property is preferred: Descending
// prefers large values, Ascending small ones.
type PropertySortOrder string

// The sort orders.
const (
	Descending PropertySortOrder = "Descending"
	Ascending  PropertySortOrder = "Ascending"
)

// A PreferredClusterSelector adds its weight, −100 to 100, to the score of the
// clusters it matches.
type PreferredClusterSelector struct {
	// Weight is added to the score of a cluster that matches; −100 to 100.
	Weight int32 `json:"weight"`
	// Preference is what has to match.
	Preference ClusterSelectorTerm `json:"preference"`
}

// A TopologySpreadConstraint bounds how unevenly clusters are chosen over the
// values of a label.
type TopologySpreadConstraint struct {
	// MaxSkew is by how many clusters one value may be ahead of another; 1 by
	// default.
	MaxSkew *int32 `json:"maxSkew,omitempty"`
	// TopologyKey is the label of clusters over whose values to spread.
	TopologyKey string `json:"topologyKey"`
	// WhenUnsatisfiable is DoNotSchedule (the default) or ScheduleAnyway.
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// An UnsatisfiableConstraintAction says what a violated constraint does.
type UnsatisfiableConstraintAction string

// The actions.
const (
	DoNotSchedule  UnsatisfiableConstraintAction = "DoNotSchedule"
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// A RolloutStrategy says how chosen clusters receive content.
type RolloutStrategy struct {
	// Type is RollingUpdate (the default) or External.
	Type RolloutStrategyType `json:"type,omitempty"`
	// RollingUpdate bounds how many clusters change at a time.
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	// ApplyStrategy says how objects are written to members.
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy says what becomes of placed objects when the placement goes.
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// ReportBackStrategy asks for the status of placed objects.
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// A RolloutStrategyType says who moves clusters to new content.
type RolloutStrategyType string

// The rollout strategy types.
const (
	RollingUpdate RolloutStrategyType = "RollingUpdate"
	External      RolloutStrategyType = "External"
)

// RollingUpdateConfig bounds a rolling update. Percentages are of the wanted
// number of clusters, rounded up.
type RollingUpdateConfig struct {
	// MaxUnavailable is how many clusters may be without an available workload; 25%
	// by default.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many clusters more than wanted may hold content; 25% by
	// default.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// UnavailablePeriodSeconds is how long content whose availability cannot be
	// seen is waited for; 60 by default.
	UnavailablePeriodSeconds *int `json:"unavailablePeriodSeconds,omitempty"`
}

// An ApplyStrategy says how an object is written to a member cluster.
type ApplyStrategy struct {
	// ComparisonOption is PartialComparison (the default: fields of the manifest
	// count) or FullComparison (all fields count).
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`
	// WhenToApply is Always (the default) or IfNotDrifted.
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`
	// Type is ClientSideApply (the default), ServerSideApply or ReportDiff.
	Type ApplyStrategyType `json:"type,omitempty"`
	// AllowCoOwnership allows other owners beside gitfleet.
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// ServerSideApplyConfig goes with the type ServerSideApply only.
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
	// WhenToTakeOver is Always (the default), IfNoDiff or Never.
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
}

// ServerSideApplyConfig says whether conflicts with other managers are forced.
type ServerSideApplyConfig struct {
	// ForceConflicts takes fields away from other managers.
	ForceConflicts bool `json:"force"`
}

// A ComparisonOption says which fields count as a difference.
type ComparisonOption string

// The comparison options.
const (
	PartialComparison ComparisonOption = "PartialComparison"
	FullComparison    ComparisonOption = "FullComparison"
)

// WhenToApply says whether drift is overwritten.
type WhenToApply string

// The answers.
const (
	ApplyAlways       WhenToApply = "Always"
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// WhenToTakeOver says what becomes of an object that was there before us.
type WhenToTakeOver string

// The answers.
const (
	TakeOverAlways   WhenToTakeOver = "Always"
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	TakeOverNever    WhenToTakeOver = "Never"
)

// An ApplyStrategyType says how to write. gitfleet writes by server-side apply
// only: ClientSideApply, the default of the API, means server-side apply with
// force.
type ApplyStrategyType string

// The apply strategy types.
const (
	ClientSideApply ApplyStrategyType = "ClientSideApply"
	ServerSideApply ApplyStrategyType = "ServerSideApply"
	ReportDiff      ApplyStrategyType = "ReportDiff"
)

// A DeleteStrategy says what becomes of placed objects when the placement goes.
type DeleteStrategy struct {
	// PropagationPolicy is Delete (the default) or Abandon.
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy,omitempty"`
}

// A DeletePropagationPolicy is Delete or Abandon.
type DeletePropagationPolicy string

// The policies: Delete removes what the placement created or took over,
// Abandon leaves it and releases ownership.
const (
	DeletePropagationDelete  DeletePropagationPolicy = "Delete"
	DeletePropagationAbandon DeletePropagationPolicy = "Abandon"
)

// A ReportBackStrategy asks for the status of placed objects.
type ReportBackStrategy struct {
	// Type is Disabled (the default) or Mirror.
	Type ReportBackStrategyType `json:"type"`
	// Destination says where to; mandatory with Mirror.
	Destination *ReportBackDestination `json:"destination,omitempty"`
}

// A ReportBackStrategyType is Disabled or Mirror.
type ReportBackStrategyType string

// The types.
const (
	ReportBackDisabled ReportBackStrategyType = "Disabled"
	ReportBackMirror   ReportBackStrategyType = "Mirror"
)

// A ReportBackDestination says where mirrored status goes.
type ReportBackDestination string

// The destinations. A Git hub has no original object to write to:
// OriginalResource is accepted with a warning and ignored.
const (
	ReportBackOriginalResource ReportBackDestination = "OriginalResource"
	ReportBackWorkAPI          ReportBackDestination = "WorkAPI"
)
