package kubeapi

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A status is encoded byte by byte as by encoding/json.
func TestStatusesAreEncodedLikeEncodingJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain text, 100%", `"quoted" \ <b>&</b>`, "line\nfeed \u2028 ü \x7f \xff"}))
	condition := rapid.Custom(func(t *rapid.T) metav1.Condition {
		c := metav1.Condition{
			Type: text.Draw(t, "type"), Status: metav1.ConditionStatus(text.Draw(t, "status")), Reason: text.Draw(t, "reason"), Message: text.Draw(t, "message"),
			ObservedGeneration: rapid.Int64().Draw(t, "generation"),
		}
		if rapid.Bool().Draw(t, "timed") {
			zone := time.FixedZone("zone", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
			c.LastTransitionTime = metav1.NewTime(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), 5).In(zone))
		}
		return c
	})
	status := rapid.Custom(func(t *rapid.T) api.PerClusterPlacementStatus {
		s := api.PerClusterPlacementStatus{
			ClusterName: text.Draw(t, "cluster"), ObservedResourceIndex: text.Draw(t, "index"), Conditions: rapid.SliceOfN(condition, 0, 3).Draw(t, "conditions"),
		}
		if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
			s.FailedPlacements = []api.FailedResourcePlacement{{Condition: condition.Draw(t, "failed")}}
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		s := status.Draw(t, "of")
		want, err := json.Marshal(s)
		if err != nil {
			t.Skip(err) // a time that cannot be encoded
		}
		got, err := appendStatus(nil, &s)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s\nwant %s (%v)", got, want, err)
		}
	})
	if fields := reflect.TypeFor[metav1.Condition]().NumField(); fields != 6 {
		t.Errorf("a condition has %d fields, and 6 are written", fields)
	}
}

// A placement is encoded as by encoding/json, with and without a status.
func TestPlacementsAreEncodedLikeEncodingJSON(t *testing.T) {
	s := serve(t, reportOf(nil))
	bare, whole := crpOf("bare", 1), large("whole", 1)
	whole.Status.SelectedResources = []api.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "web"}}
	only := large("only", 1)
	only.Status = api.PlacementStatus{PlacementStatuses: only.Status.PlacementStatuses}
	s.api.Publish(reportOf(nil, bare, only, whole))
	for _, p := range []*api.ClusterResourcePlacement{bare, only, whole} {
		var got api.ClusterResourcePlacement
		s.get(placementPath+"/clusterresourceplacements/"+p.Name, &got)
		got.ResourceVersion = ""
		gotRaw, _ := json.Marshal(got)
		want, _ := json.Marshal(p)
		if string(gotRaw) != string(want) {
			t.Errorf("%s: %s\nwant %s", p.Name, gotRaw, want)
		}
	}
}
