package diff

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestOwnerOf(t *testing.T) {
	marker := func(fleet, placement string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels:          map[string]string{api.ManagedByLabel: fleet},
			Annotations:     map[string]string{api.PlacementAnnotation: placement},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "u"}},
		}
	}
	tests := map[string]struct {
		live   *metav1.ObjectMeta
		want   Owner
		owners string
	}{
		"no marker":            {&metav1.ObjectMeta{}, Foreign, "[]"},
		"ours":                 {marker("f", "crp/web"), Ours, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u}]"},
		"another placement":    {marker("f", "rp/a/web"), OtherPlacement, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u} {Placement:rp/a/web}]"},
		"another fleet":        {marker("g", "crp/web"), OtherFleet, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u} {Fleet:g Placement:crp/web}]"},
		"a placement gone":     {marker("f", "crp/gone"), Foreign, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u} {Placement:crp/gone}]"},
		"a label alone":        {marker("f", ""), Foreign, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u}]"},
		"an annotation alone":  {marker("", "crp/web"), Foreign, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u}]"},
		"another fleet's gone": {marker("g", "crp/gone"), OtherFleet, "[{APIVersion:apps/v1 Kind:ReplicaSet Name:x UID:u} {Fleet:g Placement:crp/gone}]"},
	}
	gone := func(placement string) bool { return placement == "crp/gone" }
	for name, test := range tests {
		if got := OwnerOf(test.live, "f", api.PlacementKey{Name: "web"}, gone); got != test.want {
			t.Errorf("%s: owner = %q, want %q", name, got, test.want)
		}
		if got := Owners(test.live, "f", api.PlacementKey{Name: "web"}); got != test.owners {
			t.Errorf("%s: owners = %s, want %s", name, got, test.owners)
		}
	}
}

// The reasons are exactly those of KubeFleet, since scripts compare them.
func TestConditionsHaveTheWordsOfKubeFleet(t *testing.T) {
	cause := errors.New("no")
	tests := []struct {
		got             Condition
		typ             string
		status          metav1.ConditionStatus
		reason, message string
	}{
		{got: Applied(), typ: "Applied", status: "True", reason: "Applied", message: "Manifest has been applied successfully"},
		{got: AppliedUnverified(), typ: "Applied", status: "True", reason: "AppliedWithFailedDriftDetection", message: "AppliedWithFailedDriftDetection"},
		{got: Refused(NotOurs, "", false), reason: "NotTakenOver",
			message: "Failed to apply the manifest (error: no ownership of the object in the member cluster; takeover is needed)"},
		{got: Refused(OwnedBySome, "[a]", false), reason: "FailedToTakeOver",
			message: "Failed to apply the manifest (error: failed to take over a pre-existing object: the object is already owned by some other sources(s) and co-ownership is disallowed (existingOwnerRefs: [a]))"},
		{got: Refused(OwnedByPlacement, "", false), reason: "FailedToTakeOver",
			message: "Failed to apply the manifest (error: failed to take over a pre-existing object: the object is already owned by another Fleet AppliedWork object)"},
		{got: Refused(WouldOverwrite, "", false), reason: "FailedToTakeOver",
			message: "Failed to apply the manifest (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster)"},
		{got: Refused(WouldOverwrite, "", true), reason: "FailedToTakeOver",
			message: "Failed to apply the manifest (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster in degraded mode (full comparison is performed instead of partial comparison, as the manifest object is considered to be invalid by the member cluster API server))"},
		{got: Refused(Drifts, "", false), reason: "FoundDrifts",
			message: "Failed to apply the manifest (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster)"},
		{got: Refused(Drifts, "", true), reason: "FoundDriftsInDegradedMode",
			message: "Failed to apply the manifest (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster in degraded mode (full comparison is performed instead of partial comparison, as the manifest object is considered to be invalid by the member cluster API server))"},
		{got: Refused(CoOwned, "", false), reason: "ManifestApplyFailed",
			message: "Failed to apply the manifest (error: failed to apply the manifest: failed to validate owner references: object is co-owned by multiple objects but co-ownership has been disallowed)"},
		{got: DecodeFailed(cause), reason: "DecodingErred",
			message: "Failed to apply the manifest (error: failed to decode manifest: failed to find GVR from member cluster client REST mapping: no)"},
		{got: ReadFailed(cause), reason: "FailedToFindObjInMemberCluster",
			message: "Failed to apply the manifest (error: failed to find the corresponding object for the manifest object in the member cluster: error returned by the API server: no)"},
		{got: TakeOverCompareFailed(cause), reason: "FailedToTakeOver",
			message: "Failed to apply the manifest (error: failed to take over a pre-existing object: failed to calculate configuration diffs between the manifest object and the object from the member cluster: no)"},
		{got: DriftCompareFailed(cause), reason: "FailedToRunDriftDetection",
			message: "Failed to apply the manifest (error: failed to calculate pre-apply drifts between the manifest and the object from the member cluster: no)"},
		{got: ApplyFailed(Create, cause), reason: "ManifestApplyFailed",
			message: "Failed to apply the manifest (error: failed to apply the manifest: failed to create manifest object: error returned by the API server: no)"},
		{got: ApplyFailed(Apply, cause), reason: "ManifestApplyFailed",
			message: "Failed to apply the manifest (error: failed to apply the manifest: failed to apply the manifest object: an error is returned by the API server: no)"},
		{got: Reported(0, true), typ: "DiffReported", status: "True", reason: "NoDiffFound",
			message: "No diff has been found between the hub cluster and the member cluster"},
		{got: Reported(2, false), typ: "DiffReported", status: "True", reason: "FoundDiff",
			message: "Diff has been found between the hub cluster and the member cluster"},
		{got: Reported(2, true), typ: "DiffReported", status: "True", reason: "FoundDiffInDegradedMode",
			message: "Diff has been found in degraded mode: cannot perform partial comparison as the member cluster API server rejected the manifest object (object is invalid)"},
		{got: ReportFailed(cause), typ: "DiffReported", status: "False", reason: "FailedToReportDiff",
			message: "Failed to report the diff between the hub cluster and the member cluster (error = no)"},
	}
	for _, test := range tests {
		want := metav1.Condition{Type: test.typ, Status: test.status, Reason: test.reason, Message: test.message}
		if want.Type == "" {
			want.Type, want.Status = "Applied", "False"
		}
		got := metav1.Condition{Type: test.got.Type, Status: test.got.Status, Reason: test.got.Reason, Message: test.got.Message()}
		if got != want {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
	}
}
