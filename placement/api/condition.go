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
	MemberClusterHealthy     = "InternalMemberClusterHealthy"
	MemberClusterUnhealthy   = "InternalMemberClusterUnhealthy"

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
	// Unscheduled: a placement leaves a cluster.
	Unscheduled = "Unscheduled"
	// RolloutStopped and RolloutResumed: an update made a cluster unavailable,
	// and the rest waits, or does so no more.
	RolloutStopped = "RolloutStopped"
	RolloutResumed = "RolloutResumed"
	// DriftFound, DriftPutBack and DriftContestedReason: somebody changed an
	// object on a member, and it is left so, was put back, or is fought about.
	// DriftGone: it is as it should be again.
	DriftFound           = "DriftFound"
	DriftPutBack         = "DriftPutBack"
	DriftContestedReason = "DriftContested"
	DriftGone            = "DriftGone"
	// PlacementWarning: something a person should look at.
	PlacementWarning = "PlacementWarning"
	// DeletionHeld: the deletion brake holds an object.
	DeletionHeld = "DeletionHeld"
	// Resumed: what was Suspended is not to be left as it is any more.
	Resumed = "Resumed"
	// CommitInForce and CommitRefused: what became of a new commit.
	CommitInForce = "CommitInForce"
	CommitRefused = "CommitRefused"
	// FetchFailed and FetchSucceeded: the remote cannot be read, and can again.
	FetchFailed    = "FetchFailed"
	FetchSucceeded = "FetchSucceeded"
)
