package api

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A ClusterResourcePlacement places cluster-scoped objects and namespaces of the repository on
// member clusters.
type ClusterResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec PlacementSpec `json:"spec"`
	// Status is the observed state of the placement.
	Status PlacementStatus `json:"status,omitempty"`
}

// A ResourcePlacement places namespaced objects of its own namespace. It has the same spec and
// status as a ClusterResourcePlacement.
type ResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec PlacementSpec `json:"spec"`
	// Status is the observed state of the placement.
	Status PlacementStatus `json:"status,omitempty"`
}

// A ClusterResourcePlacementStatus is a copy of the status of a ClusterResourcePlacement, in the
// namespace that it places. It exists if the StatusReportingScope is NamespaceAccessible.
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// SourceStatus is the status of the placement without the condition StatusSynced.
	SourceStatus PlacementStatus `json:"sourceStatus,omitempty"`
	// LastUpdatedTime is the time at which SourceStatus last changed, or of its first report
	// after a restart of the daemon.
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}

// A PlacementSpec is the spec of a placement: which objects are placed on which clusters, and
// how they are rolled out.
type PlacementSpec struct {
	// ResourceSelectors are ORed; 1 to 100.
	ResourceSelectors []ResourceSelectorTerm `json:"resourceSelectors"`
	// Policy selects the clusters; all eligible ones (PickAll) if it is missing.
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// Strategy configures the rollout to the selected clusters.
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// RevisionHistoryLimit is accepted for compatibility and ignored; Git has the history.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// StatusReportingScope is ClusterScopeOnly or NamespaceAccessible.
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// A ResourceSelectorTerm selects objects of one group, version and kind: all of them if neither
// Name nor LabelSelector is set.
type ResourceSelectorTerm struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind, such as Namespace.
	Kind string `json:"kind"`
	// Name selects one object by name. It excludes LabelSelector.
	Name string `json:"name,omitempty"`
	// LabelSelector selects objects by their labels. It excludes Name.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SelectionScope is whether the objects in a selected Namespace are selected too;
	// NamespaceWithResources by default.
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// A SelectionScope is whether a term for a Namespace also selects the objects in it.
type SelectionScope string

// The selection scopes. NamespaceOnly selects the Namespace alone, and NamespaceWithResources,
// which an empty scope means, also all objects in it. With NamespaceWithResourceSelectors the
// other terms select objects in it.
const (
	NamespaceOnly                  SelectionScope = "NamespaceOnly"
	NamespaceWithResources         SelectionScope = "NamespaceWithResources"
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// A StatusReportingScope is where the status of a ClusterResourcePlacement can be read.
type StatusReportingScope string

// The status reporting scopes. NamespaceAccessible adds a ClusterResourcePlacementStatus in the
// placed namespace.
const (
	ClusterScopeOnly    StatusReportingScope = "ClusterScopeOnly"
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// A PlacementType is the way in which clusters are selected.
type PlacementType string

// The placement types.
const (
	PickAll   PlacementType = "PickAll"
	PickN     PlacementType = "PickN"
	PickFixed PlacementType = "PickFixed"
)

// A PlacementPolicy selects the clusters of a placement.
type PlacementPolicy struct {
	// PlacementType is PickAll (the default), PickN or PickFixed.
	PlacementType PlacementType `json:"placementType,omitempty"`
	// ClusterNames are the clusters of PickFixed; at most 100.
	ClusterNames []string `json:"clusterNames,omitempty"`
	// NumberOfClusters is the number of clusters of PickN, which requires it.
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// Affinity requires or prefers clusters; for PickAll and PickN.
	Affinity *Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints spread the clusters over the values of a label; for PickN.
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Tolerations allow clusters with matching taints; for PickAll and PickN.
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Type returns the type of the policy. A policy that is nil or has no type is PickAll.
func (p *PlacementPolicy) Type() PlacementType {
	if p == nil || p.PlacementType == "" {
		return PickAll
	}
	return p.PlacementType
}

// NamesClusters reports whether the clusters are those that the policy names, so that only a commit takes the placement from one:
// it is neither evicted nor scheduled elsewhere.
func (p *PlacementPolicy) NamesClusters() bool { return p.Type() == PickFixed }

// Summary returns the type of the policy, and the number of clusters that it asks for, if it has
// one.
func (p *PlacementPolicy) Summary() string {
	if p == nil || p.PlacementType == "" || p.NumberOfClusters == nil {
		return string(p.Type())
	}
	return fmt.Sprintf("%s %d", p.PlacementType, *p.NumberOfClusters)
}

// Affinity requires or prefers clusters, by their own attributes or by other placements.
type Affinity struct {
	// ClusterAffinity requires or prefers clusters by their labels and properties.
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// PlacementAffinity requires clusters that the named placements hold. KubeFleet does not
	// have it.
	PlacementAffinity []PlacementReference `json:"placementAffinity,omitempty"`
	// PlacementAntiAffinity excludes clusters that the named placements hold. KubeFleet does not
	// have it.
	PlacementAntiAffinity []PlacementReference `json:"placementAntiAffinity,omitempty"`
}

// A PlacementReference names another placement of the same kind, and for a
// ResourcePlacement of the same namespace.
type PlacementReference struct {
	// Name is the name of the other placement.
	Name string `json:"name"`
}

// ClusterAffinity requires or prefers clusters. It is evaluated when a cluster is selected and
// ignored afterwards.
type ClusterAffinity struct {
	// Required must match for a cluster to be selected.
	Required *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// Preferred adds to the scores of the clusters that match; for PickN.
	Preferred []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// A ClusterSelector matches a cluster if any of its terms does.
type ClusterSelector struct {
	// ClusterSelectorTerms are ORed; at most 10.
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// A ClusterSelectorTerm matches a cluster if all of its selectors do. An empty term matches
// every cluster.
type ClusterSelectorTerm struct {
	// LabelSelector selects clusters by their labels.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// PropertySelector selects clusters by their properties; in required terms only.
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`
	// PropertySorter ranks clusters by a property; in preferred terms only.
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// A PropertySelector selects clusters by the values of their properties.
type PropertySelector struct {
	// MatchExpressions are ANDed.
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// A PropertySelectorRequirement compares one property with one quantity.
type PropertySelectorRequirement struct {
	// Name is the name of the property, such as resources.kubernetes-fleet.io/available-cpu.
	Name string `json:"name"`
	// Operator is Gt, Ge, Eq, Ne, Lt or Le.
	Operator PropertySelectorOperator `json:"operator"`
	// Values is a list of exactly one quantity.
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

// A PropertySorter ranks clusters by a property.
type PropertySorter struct {
	// Name is the name of the property.
	Name string `json:"name"`
	// SortOrder is Ascending or Descending.
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// A PropertySortOrder is Descending, which prefers large values, or Ascending, which prefers
// small ones.
type PropertySortOrder string

// The sort orders.
const (
	Descending PropertySortOrder = "Descending"
	Ascending  PropertySortOrder = "Ascending"
)

// A PreferredClusterSelector adds to the scores of the clusters that it matches.
type PreferredClusterSelector struct {
	// Weight is added to the score of a cluster that matches; −100 to 100.
	Weight int32 `json:"weight"`
	// Preference is the term that must match.
	Preference ClusterSelectorTerm `json:"preference"`
}

// A TopologySpreadConstraint limits how unevenly the selected clusters are spread over the
// values of a label.
type TopologySpreadConstraint struct {
	// MaxSkew is the maximum difference between the numbers of clusters selected for any two
	// values; 1 by default.
	MaxSkew *int32 `json:"maxSkew,omitempty"`
	// TopologyKey is the label of the clusters.
	TopologyKey string `json:"topologyKey"`
	// WhenUnsatisfiable is DoNotSchedule (the default) or ScheduleAnyway.
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// An UnsatisfiableConstraintAction is the effect of a violated constraint on a cluster:
// DoNotSchedule excludes it, and ScheduleAnyway lowers its score.
type UnsatisfiableConstraintAction string

// The actions.
const (
	DoNotSchedule  UnsatisfiableConstraintAction = "DoNotSchedule"
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// A RolloutStrategy configures the rollout of a placement to its clusters.
type RolloutStrategy struct {
	// Type is RollingUpdate (the default) or External.
	Type RolloutStrategyType `json:"type,omitempty"`
	// RollingUpdate limits how many clusters are updated at a time.
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	// ApplyStrategy configures how objects are applied to member clusters.
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy configures whether the placed objects are deleted with the placement.
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// ReportBackStrategy configures whether the status of the placed objects is reported.
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// ReportsDiff reports whether objects are compared and never written.
func (s *RolloutStrategy) ReportsDiff() bool {
	return s.ApplyStrategy != nil && s.ApplyStrategy.Type == ReportDiff
}

// A RolloutStrategyType is RollingUpdate or External.
type RolloutStrategyType string

// The rollout strategy types. With External, clusters keep their content until a staged update run
// updates them.
const (
	RollingUpdate RolloutStrategyType = "RollingUpdate"
	External      RolloutStrategyType = "External"
)

// RollingUpdateConfig limits a rolling update. Percentages are of the number of clusters that
// the policy asks for, rounded up.
type RollingUpdateConfig struct {
	// MaxUnavailable is the maximum number of clusters on which the objects are not available;
	// 25% by default.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many clusters may hold objects of the placement in addition to those that
	// the policy asks for; 25% by default.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// UnavailablePeriodSeconds is how long after an update objects without a health check count
	// as unavailable; 60 by default.
	UnavailablePeriodSeconds *int `json:"unavailablePeriodSeconds,omitempty"`
}

// An ApplyStrategy configures how objects are applied to member clusters.
type ApplyStrategy struct {
	// ComparisonOption is PartialComparison (the default), which compares the fields of the
	// manifest, or FullComparison, which compares all fields.
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`
	// WhenToApply is Always (the default) or IfNotDrifted.
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`
	// Type is ClientSideApply (the default), ServerSideApply or ReportDiff.
	Type ApplyStrategyType `json:"type,omitempty"`
	// AllowCoOwnership allows objects that have owners besides gitfleet.
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// ServerSideApplyConfig is for the type ServerSideApply.
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
	// WhenToTakeOver is Always (the default), IfNoDiff or Never.
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
}

// ServerSideApplyConfig configures server-side apply.
type ServerSideApplyConfig struct {
	// ForceConflicts takes ownership of fields that other field managers own.
	ForceConflicts bool `json:"force"`
}

// A ComparisonOption selects the fields that are compared.
type ComparisonOption string

// The comparison options.
const (
	PartialComparison ComparisonOption = "PartialComparison"
	FullComparison    ComparisonOption = "FullComparison"
)

// WhenToApply is whether objects with drift are applied.
type WhenToApply string

// The values of WhenToApply.
const (
	ApplyAlways       WhenToApply = "Always"
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// WhenToTakeOver is whether gitfleet becomes the owner of an object that it did not create.
type WhenToTakeOver string

// The values of WhenToTakeOver.
const (
	TakeOverAlways   WhenToTakeOver = "Always"
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	TakeOverNever    WhenToTakeOver = "Never"
)

// An ApplyStrategyType is the way in which objects are applied. gitfleet only uses server-side
// apply: ClientSideApply, the default, is server-side apply that forces conflicts. ReportDiff
// compares objects and does not write.
type ApplyStrategyType string

// The apply strategy types.
const (
	ClientSideApply ApplyStrategyType = "ClientSideApply"
	ServerSideApply ApplyStrategyType = "ServerSideApply"
	ReportDiff      ApplyStrategyType = "ReportDiff"
)

// A DeleteStrategy configures whether the placed objects are deleted with the placement.
type DeleteStrategy struct {
	// PropagationPolicy is Delete (the default) or Abandon.
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy,omitempty"`
}

// A DeletePropagationPolicy is Delete or Abandon.
type DeletePropagationPolicy string

// The propagation policies. Delete deletes the objects that the placement owns, and Abandon
// leaves them on the clusters without an owner.
const (
	DeletePropagationDelete  DeletePropagationPolicy = "Delete"
	DeletePropagationAbandon DeletePropagationPolicy = "Abandon"
)

// A ReportBackStrategy configures whether the status of the placed objects is reported.
type ReportBackStrategy struct {
	// Type is Disabled (the default) or Mirror.
	Type ReportBackStrategyType `json:"type"`
	// Destination is where the status is reported; required for Mirror.
	Destination *ReportBackDestination `json:"destination,omitempty"`
}

// A ReportBackStrategyType is Disabled or Mirror.
type ReportBackStrategyType string

// The report back strategy types.
const (
	ReportBackDisabled ReportBackStrategyType = "Disabled"
	ReportBackMirror   ReportBackStrategyType = "Mirror"
)

// A ReportBackDestination is where the status of placed objects is reported.
type ReportBackDestination string

// The destinations. OriginalResource is accepted with a warning and ignored: objects in Git have
// no status.
const (
	ReportBackOriginalResource ReportBackDestination = "OriginalResource"
	ReportBackWorkAPI          ReportBackDestination = "WorkAPI"
)
