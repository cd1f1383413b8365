package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// Conditions are Started and Succeeded.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A StageTaskStatus is the state of a task.
type StageTaskStatus struct {
	// Type is the type of the task.
	Type StageTaskType `json:"type"`
	// ApprovalRequestName is the name of the request; empty unless the task is an Approval.
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`
	// Conditions are WaitTimeElapsed, or ApprovalRequestCreated and ApprovalRequestApproved.
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
	RequestCreated   = "ApprovalRequestCreated"
	RequestApproved  = "ApprovalRequestApproved"
	Approved         = "Approved"
	ApprovalAccepted = "ApprovalAccepted"
)
