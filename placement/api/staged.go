package api

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// UnmatchedClustersAnnotation says what becomes of selected clusters that are in no stage of a staged update strategy.
const UnmatchedClustersAnnotation = "gitfleet.dev/unmatched-clusters"

// The values of UnmatchedClustersAnnotation: the run is not initialised (the default), they are updated one at a time in a
// last stage, or they keep their content.
const (
	UnmatchedFail   = "fail"
	UnmatchedLast   = "last"
	UnmatchedIgnore = "ignore"
)

// MaxUnreachablePerStageAnnotation and MaxUnreachablePerRunAnnotation, on a staged update strategy, are how many clusters of a stage, and of all
// stages together, are not waited for while they are unreachable: a number or a percentage, which is rounded down. If only one is set, the other
// limits nothing; without both, all are waited for.
const (
	MaxUnreachablePerStageAnnotation = "gitfleet.dev/max-unreachable-per-stage"
	MaxUnreachablePerRunAnnotation   = "gitfleet.dev/max-unreachable-per-run"
)

// MaxFailedPerStageAnnotation and MaxFailedPerRunAnnotation, on a staged update strategy, are on how many clusters of a stage, and of all stages
// together, the update may fail while the run goes on: a number or a percentage, which is rounded down. If only one is set, the other limits
// nothing; without both, the first failed cluster keeps the run from going on.
const (
	MaxFailedPerStageAnnotation = "gitfleet.dev/max-failed-per-stage"
	MaxFailedPerRunAnnotation   = "gitfleet.dev/max-failed-per-run"
)

// StagedUpdateStrategyAnnotation, on a placement with the rollout strategy External, names the strategy of the runs that are made
// for each commit that changes its content. NewContentAnnotation says what becomes then of the run that is not finished: a
// new one supersedes it (the default), or waits until it is finished.
const (
	StagedUpdateStrategyAnnotation = "gitfleet.dev/staged-update-strategy"
	NewContentAnnotation           = "gitfleet.dev/new-content"
	NewContentSupersedes           = "supersede"
	NewContentQueues               = "queue"
)

// ApprovedByReviewAnnotation, on a staged update strategy, names the stages, separated by commas, that an approving review approves
// of the pull request that the content of a run came from.
const ApprovedByReviewAnnotation = "gitfleet.dev/approved-by-review"

// StagesApprovedByReview returns the stages that a value of ApprovedByReviewAnnotation names.
func StagesApprovedByReview(value string) (names []string) {
	for _, name := range strings.Split(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// UnmatchedStage is the name of the last stage, of clusters that are in no other.
const UnmatchedStage = "unmatched"

// A ClusterStagedUpdateStrategy has the stages of runs of ClusterResourcePlacements.
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec StagedUpdateStrategySpec `json:"spec"`
}

// A StagedUpdateStrategy has the stages of runs of ResourcePlacements in its namespace.
type StagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec StagedUpdateStrategySpec `json:"spec"`
}

// A StagedUpdateStrategySpec has the stages of a run.
type StagedUpdateStrategySpec struct {
	// Stages are updated one after another; 1 to 31.
	Stages []StageConfig `json:"stages"`
}

// A StageConfig is one stage.
type StageConfig struct {
	// Name is unique among the stages.
	Name string `json:"name"`
	// LabelSelector matches the clusters of the stage: an empty one all that the placement selects, and a missing one
	// none.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SortingLabelKey is a label with a whole number, in whose ascending order clusters are updated; by name without it.
	SortingLabelKey string `json:"sortingLabelKey,omitempty"`
	// MaxConcurrency is how many clusters are updated at once, or which share of the stage, rounded down to at least
	// one; 1 by default.
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// BeforeStageTasks have to be done before a cluster of the stage is updated.
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
	// AfterStageTasks have to be done, after all clusters of the stage are available, before the next stage begins.
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`
}

// A StageTask is something to wait for before or after a stage.
type StageTask struct {
	// Type is TimedWait, Approval or Gate. KubeFleet does not have the last.
	Type StageTaskType `json:"type"`
	// WaitTime is how long a TimedWait takes, such as 1h30m.
	WaitTime string `json:"waitTime,omitempty"`
	// GateName is the name of the RolloutGate that has to pass; empty unless the task is a Gate.
	GateName string `json:"gateName,omitempty"`
}

// A StageTaskType is a type of task.
type StageTaskType string

// The types of tasks.
const (
	TimedWait    StageTaskType = "TimedWait"
	ApprovalTask StageTaskType = "Approval"
	GateTask     StageTaskType = "Gate"
)

// Wait is how long the stage waits after all its clusters are available.
func (c *StageConfig) Wait() time.Duration {
	for _, t := range c.AfterStageTasks {
		if t.Type == TimedWait {
			d, _ := time.ParseDuration(t.WaitTime) // validated when it was loaded
			return d
		}
	}
	return 0
}

// NeedsApproval reports whether the stage needs an approval before its clusters are updated, or after that.
func (c *StageConfig) NeedsApproval(before bool) bool {
	tasks := c.AfterStageTasks
	if before {
		tasks = c.BeforeStageTasks
	}
	for _, t := range tasks {
		if t.Type == ApprovalTask {
			return true
		}
	}
	return false
}

// GateNames are the names of the gates that have to pass after the stage, in order.
func (c *StageConfig) GateNames() (names []string) {
	for _, t := range c.AfterStageTasks {
		if t.Type == GateTask {
			names = append(names, t.GateName)
		}
	}
	return names
}

// A ClusterStagedUpdateRun moves a ClusterResourcePlacement to a new content, stage by stage.
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec StagedUpdateRunSpec `json:"spec"`
	// Status is what the run has done.
	Status StagedUpdateRunStatus `json:"status,omitempty"`
}

// A StagedUpdateRun moves a ResourcePlacement of its namespace to a new content, stage by stage.
type StagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest, with defaults.
	Spec StagedUpdateRunSpec `json:"spec"`
	// Status is what the run has done.
	Status StagedUpdateRunStatus `json:"status,omitempty"`
}

// A StagedUpdateRunSpec says what a run updates, and how.
type StagedUpdateRunSpec struct {
	// PlacementName is the name of the placement.
	PlacementName string `json:"placementName"`
	// ResourceSnapshotIndex is the number of the content, as in the status of the placement; if it is empty, the content is that of
	// the commit in which the run appears.
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`
	// StrategyName is the name of the strategy.
	StrategyName string `json:"stagedRolloutStrategyName"`
	// State is Initialize (the default), Run or Stop.
	State UpdateRunState `json:"state,omitempty"`
}

// An UpdateRunState is what a run is asked to do.
type UpdateRunState string

// The states: the run is only initialised, clusters are updated, or no further cluster is.
const (
	RunInitialize UpdateRunState = "Initialize"
	RunRun        UpdateRunState = "Run"
	RunStop       UpdateRunState = "Stop"
)

// A ClusterApprovalRequest in Git approves a stage of a ClusterStagedUpdateRun.
type ClusterApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest.
	Spec ApprovalRequestSpec `json:"spec"`
	// Status says whether it is approved.
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// An ApprovalRequest in Git approves a stage of a StagedUpdateRun of its namespace.
type ApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the manifest.
	Spec ApprovalRequestSpec `json:"spec"`
	// Status says whether it is approved.
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// An ApprovalRequestSpec says what is approved. Whether it is the start or the end of the stage is in the name.
type ApprovalRequestSpec struct {
	// Run is the name of the run.
	Run string `json:"parentStageRollout"`
	// Stage is the name of the stage.
	Stage string `json:"targetStage"`
}

// ApprovalName is the name of the request for the approval of a stage of a run.
func ApprovalName(run, stage string, before bool) string {
	if before {
		return run + "-before-" + stage
	}
	return run + "-after-" + stage
}

// DeleteStage is the name of the stage in which a run removes what is no longer selected.
const DeleteStage = "kubernetes-fleet.io/deleteStage"

// The labels of approval requests: the run, the stage, whether the beginning or the end of it is approved, and that no newer
// request has the same purpose.
const (
	TargetRunLabel      = "kubernetes-fleet.io/targetUpdateRun"
	TargetStageLabel    = "kubernetes-fleet.io/targetUpdatingStage"
	TaskTypeLabel       = "kubernetes-fleet.io/taskType"
	LatestApprovalLabel = "kubernetes-fleet.io/isLatestUpdateRunApproval"
)

// A StagedUpdateRunStatus is what a run has done.
type StagedUpdateRunStatus struct {
	// PolicySnapshotIndexUsed is the index of the policy, which is always 0.
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`
	// PolicyObservedClusterCount is the number of clusters in stages.
	PolicyObservedClusterCount int `json:"policyObservedClusterCount,omitempty"`
	// ResourceSnapshotIndexUsed is the index of the content.
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`
	// ApplyStrategy is that of the placement.
	ApplyStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`
	// StagedUpdateStrategySnapshot is the strategy as it was when the run was initialised.
	StagedUpdateStrategySnapshot *StagedUpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`
	// StagesStatus are the stages, in order.
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`
	// DeletionStageStatus is the removal from clusters that are no longer selected.
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`
	// Conditions are Initialized, Progressing and Succeeded.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A StageUpdatingStatus is what was done in a stage.
type StageUpdatingStatus struct {
	// StageName is the name of the stage.
	StageName string `json:"stageName"`
	// Clusters are in the order in which they are updated.
	Clusters []ClusterUpdatingStatus `json:"clusters"`
	// BeforeStageTaskStatus are the tasks before the stage.
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`
	// AfterStageTaskStatus are the tasks after the stage.
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`
	// StartTime is when the first cluster was updated.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when the stage ended.
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Conditions are Progressing and Succeeded.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A ClusterUpdatingStatus is what was done on a cluster.
type ClusterUpdatingStatus struct {
	// ClusterName is the name of the cluster.
	ClusterName string `json:"clusterName"`
	// ResourceOverrideSnapshots are the ResourceOverrides that apply on the cluster.
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`
	// ClusterResourceOverrideSnapshots are the ClusterResourceOverrides that apply on the cluster.
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`
	// Conditions are Started and Succeeded.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A StageTaskStatus is the state of a task.
type StageTaskStatus struct {
	// Type is the type of the task.
	Type StageTaskType `json:"type"`
	// ApprovalRequestName is the name of the request; empty unless the task is an Approval.
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`
	// GateName is the name of the gate; empty unless the task is a Gate.
	GateName string `json:"gateName,omitempty"`
	// Conditions are WaitTimeElapsed, GatePassed, or ApprovalRequestCreated and ApprovalRequestApproved.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// An ApprovalRequestStatus says whether a request is approved.
type ApprovalRequestStatus struct {
	// Conditions are Approved, and ApprovalAccepted once the approval counts.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The conditions of runs, of their stages, clusters and tasks, and of approval requests.
const (
	RunInitialized   = "Initialized"
	RunProgressing   = "Progressing"
	RunSucceeded     = "Succeeded"
	ClusterStarted   = "Started"
	WaitTimeElapsed  = "WaitTimeElapsed"
	GatePassed       = "GatePassed"
	RequestCreated   = "ApprovalRequestCreated"
	RequestApproved  = "ApprovalRequestApproved"
	Approved         = "Approved"
	ApprovalAccepted = "ApprovalAccepted"
)
