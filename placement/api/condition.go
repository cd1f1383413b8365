package api

// Condition types of a placement are a prefix, PlacementPrefix or
// ResourcePlacementPrefix, and one of these; on a cluster the bare word.
const (
	Scheduled        = "Scheduled"
	RolloutStarted   = "RolloutStarted"
	Overridden       = "Overridden"
	WorkSynchronized = "WorkSynchronized"
	Applied          = "Applied"
	Available        = "Available"
	DiffReported     = "DiffReported"
	StatusSynced     = "StatusSynced"
)

// DeletionsHeld is a condition type of gitfleet's own, without a prefix: objects
// should be deleted, and stay until a commit allows it. Where nothing is held there
// is no such condition.
const DeletionsHeld = "DeletionsHeld"

// AllowedByNoCommit is the reason of DeletionsHeld.
const AllowedByNoCommit = "AllowedByNoCommit"

// Older condition types, which the public documentation still has: the first on
// a placement, with its prefix, the others on a cluster.
const (
	Synchronized      = "Synchronized"
	ResourceScheduled = "ResourceScheduled"
	ResourceApplied   = "ResourceApplied"
)

// Reasons that only the older conditions have.
const (
	SynchronizeSucceeded = "SynchronizeSucceeded"
	ScheduleSucceeded    = "ScheduleSucceeded"
)

// The prefixes of condition types on placements.
const (
	PlacementPrefix         = "ClusterResourcePlacement"
	ResourcePlacementPrefix = "ResourcePlacement"
)

// Reasons of a placement's conditions.
const (
	SchedulingPolicyFulfilled   = "SchedulingPolicyFulfilled"
	SchedulingPolicyUnfulfilled = "SchedulingPolicyUnfulfilled"
	InvalidResourceSelectors    = "InvalidResourceSelectors"
	SchedulingFailed            = "SchedulingFailed"
	SchedulePending             = "SchedulePending"

	RolloutStartedReason                  = "RolloutStarted"
	RolloutNotStartedYet                  = "RolloutNotStartedYet"
	RolloutStartedUnknown                 = "RolloutStartedUnknown"
	RolloutControlledByExternalController = "RolloutControlledByExternalController"

	OverriddenSucceeded = "OverriddenSucceeded"
	NoOverrideSpecified = "NoOverrideSpecified"
	OverriddenFailed    = "OverriddenFailed"
	OverriddenPending   = "OverriddenPending"

	WorkSynchronizedReason  = "WorkSynchronized"
	WorkNotSynchronizedYet  = "WorkNotSynchronizedYet"
	WorkSynchronizedUnknown = "WorkSynchronizedUnknown"

	ApplySucceeded = "ApplySucceeded"
	ApplyFailed    = "ApplyFailed"
	ApplyPending   = "ApplyPending"

	ResourceAvailable        = "ResourceAvailable"
	ResourceNotAvailableYet  = "ResourceNotAvailableYet"
	ResourceAvailableUnknown = "ResourceAvailableUnknown"

	DiffReportingCompleted          = "DiffReportingCompleted"
	DiffReportingIncompleteOrFailed = "DiffReportingIncompleteOrFailed"
	DiffReportingPending            = "DiffReportingPending"

	StatusSyncSucceeded = "StatusSyncSucceeded"
	StatusSyncFailed    = "StatusSyncFailed"
)

// Reasons of a cluster's conditions, where they differ from the placement's.
const (
	ScheduledReason = "Scheduled"
	ScheduleFailed  = "ScheduleFailed"

	AllWorkSynced  = "AllWorkSynced"
	SyncWorkFailed = "SyncWorkFailed"

	AllWorkHaveBeenApplied    = "AllWorkHaveBeenApplied"
	NotAllWorkHaveBeenApplied = "NotAllWorkHaveBeenApplied"
	ApplyInProgress           = "ApplyInProgress"

	AllWorkAreAvailable                = "AllWorkAreAvailable"
	NotAllWorkAreAvailabilityTrackable = "NotAllWorkAreAvailabilityTrackable"
	NotAllWorkAreAvailable             = "NotAllWorkAreAvailable"

	AllWorkHaveDiffReported    = "AllWorkHaveDiffReported"
	NotAllWorkHaveDiffReported = "NotAllWorkHaveDiffReported"
	DiffReportInProgress       = "DiffReportInProgress"
)

// Reasons of a single object on a cluster.
const (
	ManifestApplied                 = "Applied"
	AppliedWithFailedDriftDetection = "AppliedWithFailedDriftDetection"
	DecodingErred                   = "DecodingErred"
	FoundGenerateName               = "FoundGenerateName"
	Duplicated                      = "Duplicated"
	FailedToFindObjInMemberCluster  = "FailedToFindObjInMemberCluster"
	FailedToTakeOver                = "FailedToTakeOver"
	NotTakenOver                    = "NotTakenOver"
	FailedToRunDriftDetection       = "FailedToRunDriftDetection"
	FoundDrifts                     = "FoundDrifts"
	FoundDriftsInDegradedMode       = "FoundDriftsInDegradedMode"
	ManifestApplyFailed             = "ManifestApplyFailed"
	PreparingToProcess              = "PreparingToProcess"
	ManifestAvailable               = "Available"
	ManifestNotTrackable            = "NotTrackable"
	ManifestNotAvailableYet         = "ManifestNotAvailableYet"
	ManifestAvailabilityCheckFailed = "Failed"
	NoDiffFound                     = "NoDiffFound"
	FoundDiff                       = "FoundDiff"
	FoundDiffInDegradedMode         = "FoundDiffInDegradedMode"
	// Contested is gitfleet's own: another writer keeps undoing what is applied.
	Contested = "Contested"
	// Suspended is gitfleet's own: a person wants the object left as it is.
	Suspended          = "Suspended"
	FailedToReportDiff = "FailedToReportDiff"
)

// Condition types and reasons of a MemberCluster.
const (
	ReadyToJoin              = "ReadyToJoin"
	Joined                   = "Joined"
	Healthy                  = "Healthy"
	MemberClusterReadyToJoin = "MemberClusterReadyToJoin"
	MemberClusterJoined      = "MemberClusterJoined"
	MemberClusterUnknown     = "MemberClusterJoinStateUnknown"
	MemberClusterLeft        = "MemberClusterLeft"
	MemberClusterForeign     = "HeldByAnotherFleet"
	// MemberClusterForbidden is gitfleet's own: the cluster cannot be used because
	// permissions are missing.
	MemberClusterForbidden = "Forbidden"
	MemberClusterHealthy   = "InternalMemberClusterHealthy"
	MemberClusterUnhealthy = "InternalMemberClusterUnhealthy"

	// PermissionsGranted is gitfleet's own. It is False while the cluster does not grant all
	// permissions that the work needs, and absent otherwise.
	PermissionsGranted = "PermissionsGranted"
	PermissionsMissing = "PermissionsMissing"

	NamespaceCollectionSucceeded       = "NamespaceCollectionSucceeded"
	ClusterPropertyCollectionSucceeded = "ClusterPropertyCollectionSucceeded"
	ClusterPropertiesStale             = "ClusterPropertiesStale"
)

// Reasons of a placement's events; see also those of its conditions.
const (
	PlacementRolloutStarted          = "PlacementRolloutStarted"
	PlacementOverriddenSucceeded     = "PlacementOverriddenSucceeded"
	PlacementWorkSynchronized        = "PlacementWorkSynchronized"
	PlacementApplied                 = "PlacementApplied"
	PlacementAvailable               = "PlacementAvailable"
	PlacementDiffReported            = "PlacementDiffReported"
	PlacementRolloutCompleted        = "PlacementRolloutCompleted"
	PlacementCleanupFinalizerRemoved = "PlacementCleanupFinalizerRemoved"
)

// Reasons of events that are gitfleet's own.
const (
	// PlacementDeleted: the placement is gone from the repository.
	PlacementDeleted = "PlacementDeleted"
	// PlacementRenamed: the placement has a new name.
	PlacementRenamed = "PlacementRenamed"
	// Unscheduled: a placement leaves a cluster.
	Unscheduled = "Unscheduled"
	// UpdateFailed: what a cluster was given will not become available by itself.
	UpdateFailed = "UpdateFailed"
	// RolloutStopped and RolloutResumed: the update of a cluster failed, and the
	// rest waits, or does so no more.
	RolloutStopped = "RolloutStopped"
	RolloutResumed = "RolloutResumed"
	// DriftFound, DriftPutBack and DriftContestedReason: somebody changed an
	// object on a member, and it is left so, was put back, or is fought about.
	// DriftGone: it is as it should be again.
	DriftFound           = "DriftFound"
	DriftPutBack         = "DriftPutBack"
	DriftContestedReason = "DriftContested"
	DriftGone            = "DriftGone"
	// ValuesAltered: the member's API server or an admission webhook stores other
	// values than are applied.
	ValuesAltered = "ValuesAltered"
	// PlacementWarning: something a person should look at.
	PlacementWarning = "PlacementWarning"
	// DeletionHeld: the deletion brake holds an object.
	DeletionHeld = "DeletionHeld"
	// ObjectsDeleted: objects that a placement no longer has were deleted.
	ObjectsDeleted = "ObjectsDeleted"
	// DeletionFailed: a member cluster does not let an object be deleted.
	DeletionFailed = "DeletionFailed"
	// Resumed: what was Suspended is not to be left as it is any more.
	Resumed = "Resumed"
	// CommitInForce and CommitRefused: what became of a new commit.
	CommitInForce = "CommitInForce"
	CommitRefused = "CommitRefused"
	// FetchFailed and FetchSucceeded: the remote cannot be read, and can again.
	FetchFailed    = "FetchFailed"
	FetchSucceeded = "FetchSucceeded"
)
