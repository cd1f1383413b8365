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
func TestNewMember(t *testing.T) {
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
		"ready":                        {member(nil, healthy), Member{State: status.StateAvailable, Reason: "it has not answered yet"}},
		"permissions granted":          {member(condition(api.PermissionsGranted, metav1.ConditionTrue, "", ""), healthy), Member{State: status.StateAvailable, Reason: "it has not answered yet"}},
		"not answered yet":             {member(nil, nil), Member{State: status.StateUnreachable, Reason: "it has not answered yet"}},
		"unreachable":                  {member(nil, condition(api.Healthy, metav1.ConditionFalse, "", "connection refused")), Member{State: status.StateUnreachable, Since: since, Reason: "connection refused"}},
		"unreachable, by its agent":    {member(condition(api.Joined, metav1.ConditionUnknown, "", "not joined"), condition(api.Healthy, metav1.ConditionFalse, "", "connection refused")), Member{State: status.StateUnreachable, Since: since, Reason: "connection refused"}},
		"forbidden":                    {member(denied, nil), Member{State: status.StateForbidden, Since: since, Reason: "permissions are missing: list secrets"}},
		"healthy, permissions missing": {member(denied, healthy), Member{State: status.StateForbidden, Since: since, Reason: "permissions are missing: list secrets"}},
		"another fleet's":              {member(condition(api.Joined, metav1.ConditionFalse, api.MemberClusterForeign, "fleet prod holds it"), healthy), Member{State: status.StateForeign, Since: since, Reason: "fleet prod holds it"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Name = "east"
			if got := NewMember(test.of); got != test.want {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
	if got := status.MemberStateOf(member(denied, healthy)); got != status.StateAvailable {
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
		{"ams", status.StateAvailable, "", []string{"ConfigMap/web/old: denied", "ConfigMap/web/slow: deleted, and not gone yet"}},
		{"ber", status.StateWaiting, "waits for ams", nil}, {"chi", status.StateFailed, "denied", nil}, {"dal", status.StateUnreachable, "Healthy is not true yet", nil}, {"gone", status.StateUnreachable, "", nil},
	}
	equal := func(a, b Stage) bool {
		return a.Cluster == b.Cluster && a.State == b.State && a.Why == b.Why && slices.Equal(a.NotDeleted, b.NotDeleted)
	}
	if got := StagesOf(r, "crp/web"); !slices.EqualFunc(got, want, equal) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
