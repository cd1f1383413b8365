package diff

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Condition is a condition of one object: its reason and cause as values, and the sentence that people read around the cause.
// Texts of errors are used unchanged, so that the caller must mask secret values first.
type Condition struct {
	Type     string
	Status   metav1.ConditionStatus
	Reason   string
	Sentence api.Sentence
	Cause    string
}

// Message is the message of the condition.
func (c Condition) Message() string { return c.Sentence.Message(c.Cause) }

// Applied is the condition of an applied object.
func Applied() Condition {
	return isTrue(api.Applied, api.ManifestApplied, "Manifest has been applied successfully")
}

// AppliedUnverified is the condition of an object that is applied and could not be compared
// afterwards.
func AppliedUnverified() Condition {
	return isTrue(api.Applied, api.AppliedWithFailedDriftDetection, api.AppliedWithFailedDriftDetection)
}

// Refused is the condition of an object that Decide refuses. owners is the result of Owners.
// degraded says that a full comparison was used because the API server considers the manifest
// invalid.
func Refused(why Refusal, owners string, degraded bool) Condition {
	c, known := refusals[why]
	if !known {
		panic("diff: unknown refusal " + string(why))
	}
	c.Type, c.Status = api.Applied, metav1.ConditionFalse
	switch {
	case why == OwnedBySome:
		c.Cause += " (existingOwnerRefs: " + owners + ")"
	case why == Drifts && degraded:
		c.Reason = api.FoundDriftsInDegradedMode
	}
	if degraded && (why == Drifts || why == WouldOverwrite) {
		c.Cause += " in degraded mode (full comparison is performed instead of partial comparison, as the manifest object is considered to be invalid by the member cluster API server)"
	}
	return c
}

// refusals are the conditions of refused objects, with causes in KubeFleet's words.
var refusals = map[Refusal]Condition{
	NotOurs:          {Reason: api.NotTakenOver, Sentence: api.SaysNotApplied, Cause: "no ownership of the object in the member cluster; takeover is needed"},
	OwnedBySome:      {Reason: api.FailedToTakeOver, Sentence: api.SaysNotTakenOver, Cause: "the object is already owned by some other sources(s) and co-ownership is disallowed"},
	OwnedByPlacement: {Reason: api.FailedToTakeOver, Sentence: api.SaysNotTakenOver, Cause: "the object is already owned by another Fleet AppliedWork object"},
	WouldOverwrite:   {Reason: api.FailedToTakeOver, Sentence: api.SaysNotApplied, Cause: "cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster"},
	Drifts:           {Reason: api.FoundDrifts, Sentence: api.SaysNotApplied, Cause: "cannot apply manifest: drifts are found between the manifest and the object from the member cluster"},
	CoOwned:          {Reason: api.ManifestApplyFailed, Sentence: api.SaysNotTried, Cause: "failed to validate owner references: object is co-owned by multiple objects but co-ownership has been disallowed"},
}

// NotApplied is the condition of an object that is not applied, with a reason of package api.
func NotApplied(reason, cause string) Condition { return failed(reason, api.SaysNotApplied, cause) }

// NotTried is the condition of an object that is not sent to the API server.
func NotTried(err error) Condition {
	return failed(api.ManifestApplyFailed, api.SaysNotTried, err.Error())
}

// DecodeFailed is the condition of an object whose kind the member does not know.
func DecodeFailed(err error) Condition {
	return failed(api.DecodingErred, api.SaysNotDecoded, err.Error())
}

// ReadFailed is the condition of an object that could not be read.
func ReadFailed(err error) Condition {
	return NotApplied(api.FailedToFindObjInMemberCluster, "failed to find the corresponding object for the manifest object in the member cluster: "+api.FromServer+err.Error())
}

// TakeOverCompareFailed is the condition of an object that could not be compared before a
// takeover.
func TakeOverCompareFailed(err error) Condition {
	return failed(api.FailedToTakeOver, api.SaysNotTakenOver, "failed to calculate configuration diffs between the manifest object and the object from the member cluster: "+err.Error())
}

// DriftCompareFailed is the condition of an object that could not be compared before an apply.
func DriftCompareFailed(err error) Condition {
	return NotApplied(api.FailedToRunDriftDetection, "failed to calculate pre-apply drifts between the manifest and the object from the member cluster: "+err.Error())
}

// ApplyFailed is the condition of an object whose apply or creation the API server refused.
func ApplyFailed(do Operation, err error) Condition {
	if do == Create {
		return failed(api.ManifestApplyFailed, api.SaysCreateRefused, err.Error())
	}
	return failed(api.ManifestApplyFailed, api.SaysApplyRefused, err.Error())
}

// Reported is the condition of an object that was only compared.
func Reported(diffs int, degraded bool) Condition {
	switch {
	case diffs == 0:
		return isTrue(api.DiffReported, api.NoDiffFound, "No diff has been found between the hub cluster and the member cluster")
	case degraded:
		return isTrue(api.DiffReported, api.FoundDiffInDegradedMode, "Diff has been found in degraded mode: cannot perform partial comparison as the member cluster API server rejected the manifest object (object is invalid)")
	default:
		return isTrue(api.DiffReported, api.FoundDiff, "Diff has been found between the hub cluster and the member cluster")
	}
}

// ReportFailed is the condition of an object whose comparison failed.
func ReportFailed(err error) Condition {
	return Condition{api.DiffReported, metav1.ConditionFalse, api.FailedToReportDiff, api.SaysNotReported, err.Error()}
}

func failed(reason string, sentence api.Sentence, cause string) Condition {
	return Condition{api.Applied, metav1.ConditionFalse, reason, sentence, cause}
}

func isTrue(typ, reason, message string) Condition {
	return Condition{typ, metav1.ConditionTrue, reason, "", message}
}
