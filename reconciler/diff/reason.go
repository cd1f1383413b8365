package diff

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Refusal is the reason why an object is not applied.
type Refusal string

// The refusals.
const (
	// NotOurs: it existed before and may not be taken over.
	NotOurs Refusal = "not ours"
	// OwnedBySome: it has other owners, and co-ownership is not allowed.
	OwnedBySome Refusal = "owned by others"
	// OwnedByPlacement: another placement or fleet owns it.
	OwnedByPlacement Refusal = "owned by another placement"
	// WouldOverwrite: it may be taken over only if it does not differ, but it differs.
	WouldOverwrite Refusal = "differs"
	// Drifts: it has drifted and may not be overwritten.
	Drifts Refusal = "drifted"
	// CoOwned: it is owned, but now has other owners too.
	CoOwned Refusal = "co-owned"
)

// The conditions of one object. All have type, status, reason and message; the caller adds the
// generation and the time. Texts of errors are used unchanged, so that the caller must mask
// secret values first.

// Applied is the condition of an applied object.
func Applied() metav1.Condition {
	return condition(api.Applied, metav1.ConditionTrue, api.ManifestApplied, "Manifest has been applied successfully")
}

// AppliedUnverified is the condition of an object that is applied and could not be compared
// afterwards.
func AppliedUnverified() metav1.Condition {
	return condition(api.Applied, metav1.ConditionTrue, api.AppliedWithFailedDriftDetection, api.AppliedWithFailedDriftDetection)
}

// Refused is the condition of an object that Decide refuses. owners is the result of Owners.
// degraded says that a full comparison was used because the API server considers the manifest
// invalid.
func Refused(why Refusal, owners string, degraded bool) metav1.Condition {
	r, known := refusals[why]
	if !known {
		panic("diff: unknown refusal " + string(why))
	}
	switch {
	case why == OwnedBySome:
		r.cause += " (existingOwnerRefs: " + owners + ")"
	case why == Drifts && degraded:
		r.reason = api.FoundDriftsInDegradedMode
	}
	if degraded && (why == Drifts || why == WouldOverwrite) {
		r.cause += " in degraded mode (full comparison is performed instead of partial comparison, as the manifest object is considered to be invalid by the member cluster API server)"
	}
	return NotApplied(r.reason, r.cause)
}

// refusals are the reasons and causes of refusals, in KubeFleet's words.
var refusals = map[Refusal]struct{ reason, cause string }{
	NotOurs:          {api.NotTakenOver, "no ownership of the object in the member cluster; takeover is needed"},
	OwnedBySome:      {api.FailedToTakeOver, takeOver + "the object is already owned by some other sources(s) and co-ownership is disallowed"},
	OwnedByPlacement: {api.FailedToTakeOver, takeOver + "the object is already owned by another Fleet AppliedWork object"},
	WouldOverwrite:   {api.FailedToTakeOver, "cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster"},
	Drifts:           {api.FoundDrifts, "cannot apply manifest: drifts are found between the manifest and the object from the member cluster"},
	CoOwned:          {api.ManifestApplyFailed, "failed to apply the manifest: failed to validate owner references: object is co-owned by multiple objects but co-ownership has been disallowed"},
}

// NotApplied is the condition of an object that is not applied, with a reason and a cause of
// package api. The functions below set both.
func NotApplied(reason, cause string) metav1.Condition {
	return condition(api.Applied, metav1.ConditionFalse, reason, fmt.Sprintf("Failed to apply the manifest (error: %s)", cause))
}

// DecodeFailed is the condition of an object whose kind the member does not know.
func DecodeFailed(err error) metav1.Condition {
	return NotApplied(api.DecodingErred, "failed to decode manifest: failed to find GVR from member cluster client REST mapping: "+err.Error())
}

// ReadFailed is the condition of an object that could not be read.
func ReadFailed(err error) metav1.Condition {
	return NotApplied(api.FailedToFindObjInMemberCluster, "failed to find the corresponding object for the manifest object in the member cluster: "+fromServer+err.Error())
}

// TakeOverCompareFailed is the condition of an object that could not be compared before a
// takeover.
func TakeOverCompareFailed(err error) metav1.Condition {
	return NotApplied(api.FailedToTakeOver, takeOver+"failed to calculate configuration diffs between the manifest object and the object from the member cluster: "+err.Error())
}

// DriftCompareFailed is the condition of an object that could not be compared before an apply.
func DriftCompareFailed(err error) metav1.Condition {
	return NotApplied(api.FailedToRunDriftDetection, "failed to calculate pre-apply drifts between the manifest and the object from the member cluster: "+err.Error())
}

// ApplyFailed is the condition of an object whose apply or creation the API server refused.
func ApplyFailed(do Operation, err error) metav1.Condition {
	cause := "failed to apply the manifest object: an error is returned by the API server: "
	if do == Create {
		cause = "failed to create manifest object: " + fromServer
	}
	return NotApplied(api.ManifestApplyFailed, "failed to apply the manifest: "+cause+err.Error())
}

// Reported is the condition of an object that was only compared.
func Reported(diffs int, degraded bool) metav1.Condition {
	switch {
	case diffs == 0:
		return condition(api.DiffReported, metav1.ConditionTrue, api.NoDiffFound, "No diff has been found between the hub cluster and the member cluster")
	case degraded:
		return condition(api.DiffReported, metav1.ConditionTrue, api.FoundDiffInDegradedMode, "Diff has been found in degraded mode: cannot perform partial comparison as the member cluster API server rejected the manifest object (object is invalid)")
	default:
		return condition(api.DiffReported, metav1.ConditionTrue, api.FoundDiff, "Diff has been found between the hub cluster and the member cluster")
	}
}

// ReportFailed is the condition of an object whose comparison failed.
func ReportFailed(err error) metav1.Condition {
	return condition(api.DiffReported, metav1.ConditionFalse, api.FailedToReportDiff,
		fmt.Sprintf("Failed to report the diff between the hub cluster and the member cluster (error = %s)", err))
}

const (
	takeOver   = "failed to take over a pre-existing object: "
	fromServer = "error returned by the API server: "
)

func condition(typ string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message}
}
