package api

// Condition types. On a placement they have one of the prefixes PlacementPrefix and
// ResourcePlacementPrefix; on a cluster they have none.
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

// DeletionsBlocked is a condition type that KubeFleet does not have, always without a prefix. It is
// True while deletions of objects wait for a commit that allows them, and absent otherwise.
const DeletionsBlocked = "DeletionsHeld"

// AllowedByNoCommit is the reason of DeletionsBlocked.
const AllowedByNoCommit = "AllowedByNoCommit"

// Condition types of earlier versions of KubeFleet, which its documentation still has:
// Synchronized of placements, with a prefix, and the others of clusters.
const (
	Synchronized      = "Synchronized"
	ResourceScheduled = "ResourceScheduled"
	ResourceApplied   = "ResourceApplied"
)

// Reasons of the condition types of earlier versions.
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

// Reasons of the conditions of a cluster that differ from those of a placement.
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
	ManifestAvailable               = "Available"
	ManifestNotTrackable            = "NotTrackable"
	ManifestNotAvailableYet         = "ManifestNotAvailableYet"
	ManifestAvailabilityCheckFailed = "Failed"
	NoDiffFound                     = "NoDiffFound"
	FoundDiff                       = "FoundDiff"
	FoundDiffInDegradedMode         = "FoundDiffInDegradedMode"
	// Contested: another writer keeps reverting what is applied. KubeFleet does not have it.
	Contested = "Contested"
	// Encrypted: the object is encrypted in Git. KubeFleet does not have it.
	Encrypted = "Encrypted"
	// HookPending: the object of a chart waits for a hook, or is a hook that waits for others. KubeFleet does not have it.
	HookPending = "HookPending"
	// Suspended: a user has suspended the object. KubeFleet does not have it.
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
	// MemberClusterDuplicate: another member of the fleet is the same cluster, and has claimed it.
	// KubeFleet does not have it.
	MemberClusterDuplicate = "HeldByAnotherMember"
	// MemberClusterForbidden: the cluster cannot be used because permissions are missing.
	// KubeFleet does not have it.
	MemberClusterForbidden = "Forbidden"
	MemberClusterHealthy   = "InternalMemberClusterHealthy"
	MemberClusterUnhealthy = "InternalMemberClusterUnhealthy"
	// MemberClusterRestored is the reason of an event: the cluster was restored to an earlier state.
	// KubeFleet does not have it.
	MemberClusterRestored = "MemberClusterRestored"

	// PermissionsGranted is False while the cluster does not grant all permissions that applying
	// the objects needs, and absent otherwise. KubeFleet does not have it.
	PermissionsGranted = "PermissionsGranted"
	PermissionsMissing = "PermissionsMissing"

	// CredentialsRenewed is False while replaced credentials of the cluster cannot be used, so that
	// those from before are kept, and absent otherwise. KubeFleet does not have it.
	CredentialsRenewed  = "CredentialsRenewed"
	CredentialsUnusable = "CredentialsUnusable"

	NamespaceCollectionSucceeded       = "NamespaceCollectionSucceeded"
	ClusterPropertyCollectionSucceeded = "ClusterPropertyCollectionSucceeded"
	ClusterPropertiesStale             = "ClusterPropertiesStale"
	// ClusterPropertiesIncomplete: some could not be read. KubeFleet does not have it.
	ClusterPropertiesIncomplete = "ClusterPropertiesIncomplete"
)

// Reasons of a placement's events, besides the reasons of its conditions.
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

// Reasons of events that KubeFleet does not have.
const (
	// PlacementDeleted: the placement was deleted from the repository.
	PlacementDeleted = "PlacementDeleted"
	// PlacementRenamed: the placement has a new name.
	PlacementRenamed = "PlacementRenamed"
	// Unscheduled: a placement leaves a cluster.
	Unscheduled = "Unscheduled"
	// UpdateFailed: the content of a cluster will not become available by itself.
	UpdateFailed = "UpdateFailed"
	// RolloutStopped and RolloutResumed: a failed update on one cluster stopped the rollout to
	// the others, or no longer does.
	RolloutStopped = "RolloutStopped"
	RolloutResumed = "RolloutResumed"
	// DriftFound, DriftPutBack and DriftContestedReason: an object on a member cluster was
	// changed by others, and the change was left, was reverted, or keeps coming back. DriftGone:
	// the object no longer has drift.
	DriftFound           = "DriftFound"
	DriftPutBack         = "DriftPutBack"
	DriftContestedReason = "DriftContested"
	DriftGone            = "DriftGone"
	// ValuesAltered: the member's API server or an admission webhook stores other values than
	// are applied.
	ValuesAltered = "ValuesAltered"
	// PlacementWarning: a user should look at something.
	PlacementWarning = "PlacementWarning"
	// DeletionBlocked: the deletion of an object waits until a commit allows it.
	DeletionBlocked = "DeletionHeld"
	// ObjectsDeleted: objects that a placement no longer has were deleted.
	ObjectsDeleted = "ObjectsDeleted"
	// DeletionFailed: a member cluster refuses to delete an object.
	DeletionFailed = "DeletionFailed"
	// Resumed: a suspension has ended.
	Resumed = "Resumed"
	// CommitInForce and CommitRefused: a new commit was loaded, or is invalid or not accepted.
	CommitInForce = "CommitInForce"
	CommitRefused = "CommitRefused"
	// FetchFailed and FetchSucceeded: the remote could not be read, or can be read again.
	FetchFailed    = "FetchFailed"
	FetchSucceeded = "FetchSucceeded"
)

// A Sentence is what KubeFleet says around the cause of a condition of an object. The cause alone is what people need; the
// whole message is made from both only where somebody reads it.
type Sentence string

// The sentences. With the empty one the cause is the whole message.
const (
	// SaysNotApplied: the object is not applied. The others are those of one step of that, in KubeFleet's words.
	SaysNotApplied    Sentence = "notApplied"
	SaysNotTried      Sentence = "notTried"
	SaysApplyRefused  Sentence = "applyRefused"
	SaysCreateRefused Sentence = "createRefused"
	SaysNotDecoded    Sentence = "notDecoded"
	SaysNotTakenOver  Sentence = "notTakenOver"
	SaysOwned         Sentence = "owned"
	// SaysNotReported: the differences of the object could not be found out.
	SaysNotReported Sentence = "notReported"
	// SaysNotAvailable: the object is applied and not available yet. Its cause may be empty.
	SaysNotAvailable Sentence = "notAvailable"
	// SaysNotTracked: the status of the object cannot be understood.
	SaysNotTracked Sentence = "notTracked"
)

// FromServer is what KubeFleet says before an error of a member's API server.
const FromServer = "error returned by the API server: "

const (
	notApplied  = "Failed to apply the manifest (error: "
	notTried    = notApplied + "failed to apply the manifest: "
	notTaken    = notApplied + "failed to take over a pre-existing object: "
	unavailable = "Manifest is not yet available; Fleet will check again later"
)

// sentences have what is before and after the cause.
var sentences = map[Sentence]struct{ before, after string }{
	SaysNotApplied:    {notApplied, ")"},
	SaysNotTried:      {notTried, ")"},
	SaysApplyRefused:  {notTried + "failed to apply the manifest object: an error is returned by the API server: ", ")"},
	SaysCreateRefused: {notTried + "failed to create manifest object: " + FromServer, ")"},
	SaysNotDecoded:    {notApplied + "failed to decode manifest: failed to find GVR from member cluster client REST mapping: ", ")"},
	SaysNotTakenOver:  {notTaken, ")"},
	SaysOwned:         {notTaken + "the object is already owned by another Fleet AppliedWork object: ", ")"},
	SaysNotReported:   {"Failed to report the diff between the hub cluster and the member cluster (error = ", ")"},
	SaysNotAvailable:  {unavailable + " (", ")"},
	SaysNotTracked:    {"Failed to track the availability of the applied manifest (error = ", ")"},
}

// Message returns the message of a condition with a cause.
func (s Sentence) Message(cause string) string {
	if s == SaysNotAvailable && cause == "" {
		return unavailable
	}
	is := sentences[s]
	return is.before + cause + is.after
}
