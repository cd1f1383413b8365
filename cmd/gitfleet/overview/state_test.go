package overview

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// onCluster is the status of a placement on a cluster, with one condition.
func onCluster(reason, message string, failed ...api.FailedResourcePlacement) *api.PerClusterPlacementStatus {
	return &api.PerClusterPlacementStatus{
		ClusterName: "east", Conditions: []metav1.Condition{{Type: api.Applied, Status: metav1.ConditionFalse, Reason: reason, Message: message}}, FailedPlacements: failed,
	}
}

// failedObject is an object for which a condition is false.
func failedObject(name, condition, message string) api.FailedResourcePlacement {
	return api.FailedResourcePlacement{
		ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: name}, Condition: metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Message: message},
	}
}

// A cluster is in exactly one state: the first that applies of unreachable and forbidden, held and
// removing, failed, waiting, held, available, progressing and rolling.
func TestStateOf(t *testing.T) {
	braked := []string{"ConfigMap/web/one: too much"}
	for name, test := range map[string]struct {
		detail status.ClusterDetail
		status *api.PerClusterPlacementStatus
		member State
		want   State
	}{
		"unreachable before all others":     {status.ClusterDetail{Available: true, Removing: true, Failure: "denied"}, nil, Unreachable, Unreachable},
		"forbidden before all others":       {status.ClusterDetail{Waits: "waits", Braked: braked}, nil, Forbidden, Forbidden},
		"no longer a member":                {status.ClusterDetail{Cluster: "gone", Available: true}, nil, Available, Unreachable},
		"removing with held deletions":      {status.ClusterDetail{Removing: true, Braked: braked}, nil, Available, held},
		"removing before failed":            {status.ClusterDetail{Removing: true, Failure: "denied"}, nil, Available, removing},
		"failed before held":                {status.ClusterDetail{Failure: "denied", Braked: braked}, nil, Available, failed},
		"refused while an update is due":    {status.ClusterDetail{Waits: "waits"}, onCluster(api.OverriddenFailed, "no such field"), Available, failed},
		"waiting before held":               {status.ClusterDetail{Waits: "waits", Braked: braked}, nil, Available, waiting},
		"a failure of earlier content":      {status.ClusterDetail{Waits: "waits", Failure: "denied"}, nil, Available, waiting},
		"held before available":             {status.ClusterDetail{Available: true, Applied: true, Braked: braked}, nil, Available, held},
		"available":                         {status.ClusterDetail{Available: true, Applied: true}, nil, Available, Available},
		"applied and not available":         {status.ClusterDetail{Applied: true}, nil, Available, progressing},
		"being applied":                     {status.ClusterDetail{Progressing: true}, onCluster(api.NotAllWorkHaveBeenApplied, "1 object"), Available, progressing},
		"assigned and nothing reported yet": {status.ClusterDetail{}, nil, Available, rolling},
	} {
		t.Run(name, func(t *testing.T) {
			if test.detail.Cluster == "" {
				test.detail.Cluster = "east"
			}
			if got := StateOf(&test.detail, test.status, MemberStates{"east": test.member}); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The failure of a cluster names the first object that is not applied and counts the others. It is
// without KubeFleet's wrapping, and without the names of pods.
func TestFailureOf(t *testing.T) {
	wrapped := "Failed to apply the manifest (error: denied)"
	for name, test := range map[string]struct {
		detail status.ClusterDetail
		status *api.PerClusterPlacementStatus
		want   string
	}{
		"nothing failed":             {status.ClusterDetail{}, nil, ""},
		"progressing":                {status.ClusterDetail{Progressing: true, Failure: "denied"}, onCluster(api.SyncWorkFailed, "no answer"), ""},
		"an override":                {status.ClusterDetail{}, onCluster(api.OverriddenFailed, "no such field"), "no such field"},
		"not sent":                   {status.ClusterDetail{}, onCluster(api.SyncWorkFailed, "too large"), "too large"},
		"not compared":               {status.ClusterDetail{}, onCluster(api.NotAllWorkHaveDiffReported, "no kind"), "no kind"},
		"another condition":          {status.ClusterDetail{}, onCluster(api.RolloutNotStartedYet, "waits"), ""},
		"an object":                  {status.ClusterDetail{}, onCluster(api.NotAllWorkHaveBeenApplied, "1 object", failedObject("one", api.Applied, wrapped)), "ConfigMap/web/one: denied"},
		"several objects":            {status.ClusterDetail{}, onCluster(api.NotAllWorkHaveBeenApplied, "3 objects", failedObject("one", api.Applied, wrapped), failedObject("two", api.Applied, "x"), failedObject("three", api.Applied, "x")), "ConfigMap/web/one: denied (and 2 more)"},
		"none that is not applied":   {status.ClusterDetail{}, onCluster(api.NotAllWorkHaveBeenApplied, "1 object", failedObject("one", api.Available, "starting")), "1 object"},
		"not available for good":     {status.ClusterDetail{Failure: "Deployment.apps/web/web: " + wrapped}, nil, "Deployment.apps/web/web: denied"},
		"a pod":                      {status.ClusterDetail{Failure: "0 of 1 replicas; pod web-5b9f9b86c4-sh6z6, container web: ImagePullBackOff"}, nil, "0 of 1 replicas; a pod, container web: ImagePullBackOff"},
		"earlier content":            {status.ClusterDetail{Waits: "waits", Failure: "denied"}, nil, ""},
		"refused before unavailable": {status.ClusterDetail{Failure: "starting"}, onCluster(api.SyncWorkFailed, "too large"), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FailureOf(&test.detail, test.status); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// member is a member cluster with conditions of its own and of its agent.
func member(conditions, agent []metav1.Condition) *api.MemberCluster {
	c := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: api.MemberClusterStatus{Conditions: conditions}}
	if agent != nil {
		c.Status.AgentStatus = []api.AgentStatus{{Type: api.MemberAgent, Conditions: agent}}
	}
	return c
}

// A member that lacks permissions is forbidden, one of another fleet is foreign, and every other
// one that is not healthy is unreachable, since when and why its first untrue condition says.
func TestAbsence(t *testing.T) {
	condition := func(typ string, is metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: typ, Status: is, Reason: reason, Message: message, LastTransitionTime: reports.Ago(time.Minute)}}
	}
	since := reports.Ago(time.Minute).Time
	healthy := condition(api.Healthy, metav1.ConditionTrue, "", "")
	denied := condition(api.PermissionsGranted, metav1.ConditionFalse, "Missing", "permissions are missing: list secrets")
	for name, test := range map[string]struct {
		of   *api.MemberCluster
		want Member
	}{
		"ready":                        {member(nil, healthy), Member{State: Available, Reason: "it has not answered yet"}},
		"permissions granted":          {member(condition(api.PermissionsGranted, metav1.ConditionTrue, "", ""), healthy), Member{State: Available, Reason: "it has not answered yet"}},
		"not answered yet":             {member(nil, nil), Member{State: Unreachable, Reason: "it has not answered yet"}},
		"unreachable":                  {member(nil, condition(api.Healthy, metav1.ConditionFalse, "", "connection refused")), Member{State: Unreachable, Since: since, Reason: "connection refused"}},
		"unreachable, by its agent":    {member(condition(api.Joined, metav1.ConditionUnknown, "", "not joined"), condition(api.Healthy, metav1.ConditionFalse, "", "connection refused")), Member{State: Unreachable, Since: since, Reason: "connection refused"}},
		"forbidden":                    {member(denied, nil), Member{State: Forbidden, Since: since, Reason: "permissions are missing: list secrets"}},
		"healthy, permissions missing": {member(denied, healthy), Member{State: Forbidden, Since: since, Reason: "permissions are missing: list secrets"}},
		"another fleet's":              {member(condition(api.Joined, metav1.ConditionFalse, api.MemberClusterForeign, "fleet prod holds it"), healthy), Member{State: foreign, Since: since, Reason: "fleet prod holds it"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Name = "east"
			if got := Absence(test.of); got != test.want {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
	if got := MemberStateOf(member(denied, healthy)); got != Available {
		t.Errorf("a healthy member without some permissions is %s: its other objects are applied", got)
	}
}

// A member whose new credentials cannot be used is shown, also if it is ready.
func TestOutdatedCredentialsAreShown(t *testing.T) {
	c := reports.MemberCluster("east", true)
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: api.CredentialsRenewed, Status: metav1.ConditionFalse, Message: "kept: Unauthorized", LastTransitionTime: reports.Ago(3 * time.Minute),
	})
	o := New(&status.Report{At: reports.Noon, Clusters: []*api.MemberCluster{c}})
	text := strings.Join(o.Text(output.Page{Width: 120}, reports.Noon, false), "\n")
	if want := "Members: 1 of 1 ready\n  east credentials outdated for 3m: kept: Unauthorized"; !strings.Contains(text, want) || !o.NeedsAttention() {
		t.Errorf("the summary is\n%s\nwant\n%s", text, want)
	}
}

// The stage of a placement on a cluster has the reason of its state, and what is not deleted.
func TestStagesOf(t *testing.T) {
	away := reports.MemberCluster("dal", false)
	r := &status.Report{
		Clusters: []*api.MemberCluster{reports.MemberCluster("ams", true), reports.MemberCluster("ber", true), reports.MemberCluster("chi", true), away},
		Details: []*status.Detail{{Placement: "crp/other"}, {Placement: "crp/web", Clusters: []status.ClusterDetail{
			{Cluster: "ams", Available: true, DeletionErrors: []string{"ConfigMap/web/old: denied"}, Lingering: []string{"ConfigMap/web/slow"}},
			{Cluster: "ber", Waits: "waits for ams"}, {Cluster: "chi", Failure: "denied"}, {Cluster: "dal"}, {Cluster: "gone"},
		}}},
	}
	want := []Stage{
		{"ams", Available, "", []string{"ConfigMap/web/old: denied", "ConfigMap/web/slow: deleted, and not gone yet"}},
		{"ber", waiting, "waits for ams", nil}, {"chi", failed, "denied", nil}, {"dal", Unreachable, "Healthy is not true yet", nil}, {"gone", Unreachable, "", nil},
	}
	equal := func(a, b Stage) bool {
		return a.Cluster == b.Cluster && a.State == b.State && a.Why == b.Why && slices.Equal(a.NotDeleted, b.NotDeleted)
	}
	if got := StagesOf(r, "crp/web"); !slices.EqualFunc(got, want, equal) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
