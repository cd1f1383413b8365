package server

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func member(name string, healthy metav1.ConditionStatus) *api.MemberCluster {
	m := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.AgentStatus = []api.AgentStatus{{Conditions: []metav1.Condition{
		{Type: api.Joined, Status: metav1.ConditionTrue}, {Type: api.Healthy, Status: healthy},
	}}}
	return m
}

func measured() *status.Report {
	return &status.Report{
		Source: status.Source{
			InForce: hub.Commit{Hash: "c1"}, Newest: hub.Commit{Hash: "c2"}, Problems: hub.Problems{{}, {}},
			Git: status.Git{Failures: 3, LastSuccess: time.Unix(1_700_000_000, 0)},
		},
		Clusters: []*api.MemberCluster{member("east", metav1.ConditionTrue), member("west", metav1.ConditionFalse), {ObjectMeta: metav1.ObjectMeta{Name: "new"}}},
		Details: []*status.Detail{
			{Placement: "crp/web", Clusters: []status.ClusterDetail{
				{Cluster: "a", Applied: true, Available: true}, {Cluster: "b", Applied: true}, {Cluster: "c"},
				{Cluster: "d", Applied: true, Available: true, Held: "waits"}, {Cluster: "e", Applied: true, Removing: true, Held: "waits"},
			}},
			{Placement: "rp/team/db"},
		},
		Drifts: []status.Drift{
			{Placement: "crp/web", Cluster: "a", State: api.DriftStanding}, {Placement: "crp/web", Cluster: "b", State: api.DriftStanding},
			{Placement: "crp/web", Cluster: "c", State: api.DriftRepaired}, {Placement: "crp/web", Cluster: "c", State: api.DriftForeign},
		},
		Suspensions: []status.Suspension{
			{Cluster: "east", Since: time.Unix(3000, 0)}, {Placement: "crp/web", Since: time.Unix(1000, 0)}, {Placement: "crp/web", Cluster: "a", Since: time.Unix(2000, 0)},
			{Object: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "settings"}, Since: time.Unix(4000, 0)},
		},
	}
}

// What a placement has to reach next is told by KubeFleet's metric, as long as
// the placement is there.
func TestWhatIsOutstanding(t *testing.T) {
	meta := func(generation int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "web", Generation: generation}
	}
	condition := func(typ string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: api.PlacementPrefix + typ, Status: status, Reason: "Because", ObservedGeneration: 2}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	begun := []metav1.Condition{condition(api.Scheduled, yes), condition(api.RolloutStarted, yes), condition(api.Overridden, yes), condition(api.WorkSynchronized, yes)}
	reports := api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ReportDiff}}}
	tests := map[string]struct {
		of   api.ClusterResourcePlacement
		want string
	}{
		"nothing said":     {api.ClusterResourcePlacement{ObjectMeta: meta(2)}, `conditionType="ClusterResourcePlacementScheduled",generation="2",name="web",namespace="",reason="nil",status="nil"`},
		"of an older spec": {api.ClusterResourcePlacement{ObjectMeta: meta(3), Status: api.PlacementStatus{Conditions: begun}}, `conditionType="ClusterResourcePlacementScheduled",generation="3",name="web",namespace="",reason="nil",status="nil"`},
		"not applied":      {api.ClusterResourcePlacement{ObjectMeta: meta(2), Status: api.PlacementStatus{Conditions: append(begun[:4:4], condition(api.Applied, no))}}, `conditionType="ClusterResourcePlacementApplied",generation="2",name="web",namespace="",reason="Because",status="False"`},
		"completed": {api.ClusterResourcePlacement{ObjectMeta: meta(2), Status: api.PlacementStatus{Conditions: append(begun[:4:4], condition(api.Applied, yes), condition(api.Available, yes))}},
			`conditionType="Completed",generation="2",name="web",namespace="",reason="Completed",status="True"`},
		"compared": {api.ClusterResourcePlacement{ObjectMeta: meta(2), Spec: reports, Status: api.PlacementStatus{Conditions: append(begun[:4:4], condition(api.DiffReported, yes))}},
			`conditionType="Completed",generation="2",name="web",namespace="",reason="Completed",status="True"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(prometheus.NewRegistry())
			s.Publish(&status.Report{At: time.Unix(1000, 0), Placements: []*api.ClusterResourcePlacement{&test.of}})
			if got, want := page(t, s), "fleet_workload_placement_status_last_timestamp_seconds{"+test.want+"} 1000\n"; !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			s.Publish(&status.Report{})
			if got := page(t, s); strings.Contains(got, "last_timestamp_seconds") {
				t.Errorf("of what is gone:\n%s", got)
			}
		})
	}
}

// page is what Prometheus reads.
func page(t *testing.T, s *Server) string {
	t.Helper()
	w := askFor(t.Context(), s, "/metrics")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s\n%s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// What is measured is what the newest report says: each cluster of a placement
// counts once, and a state without clusters is zero, not missing.
func TestMetrics(t *testing.T) {
	s := New(prometheus.NewRegistry())
	if got := page(t, s); got != "" {
		t.Errorf("before the first report:\n%s", got)
	}
	s.Publish(measured())
	want := `# HELP gitfleet_cluster_healthy 1 if the member cluster answers and is ready.
# TYPE gitfleet_cluster_healthy gauge
gitfleet_cluster_healthy{cluster="east"} 1
gitfleet_cluster_healthy{cluster="new"} 0
gitfleet_cluster_healthy{cluster="west"} 0
# HELP gitfleet_drifted_objects Objects on clusters that differ from what the hub wants, by placement and what is done about it.
# TYPE gitfleet_drifted_objects gauge
gitfleet_drifted_objects{placement="crp/web",state="contested"} 0
gitfleet_drifted_objects{placement="crp/web",state="foreign"} 1
gitfleet_drifted_objects{placement="crp/web",state="ignored"} 0
gitfleet_drifted_objects{placement="crp/web",state="standing"} 2
gitfleet_drifted_objects{placement="rp/team/db",state="contested"} 0
gitfleet_drifted_objects{placement="rp/team/db",state="foreign"} 0
gitfleet_drifted_objects{placement="rp/team/db",state="ignored"} 0
gitfleet_drifted_objects{placement="rp/team/db",state="standing"} 0
# HELP gitfleet_git_failures Polls of the remote that failed since the last success.
# TYPE gitfleet_git_failures gauge
gitfleet_git_failures 3
# HELP gitfleet_git_last_success_timestamp_seconds When the remote last gave an answer that could be used.
# TYPE gitfleet_git_last_success_timestamp_seconds gauge
gitfleet_git_last_success_timestamp_seconds 1.7e+09
# HELP gitfleet_head_info Always 1: the commit in force.
# TYPE gitfleet_head_info gauge
gitfleet_head_info{sha="c1"} 1
# HELP gitfleet_head_problems Problems that keep the newest commit from being in force.
# TYPE gitfleet_head_problems gauge
gitfleet_head_problems 2
# HELP gitfleet_placement_clusters Clusters of a placement by how far they are.
# TYPE gitfleet_placement_clusters gauge
gitfleet_placement_clusters{placement="crp/web",state="applied"} 1
gitfleet_placement_clusters{placement="crp/web",state="applying"} 1
gitfleet_placement_clusters{placement="crp/web",state="available"} 1
gitfleet_placement_clusters{placement="crp/web",state="held"} 1
gitfleet_placement_clusters{placement="crp/web",state="removing"} 1
gitfleet_placement_clusters{placement="rp/team/db",state="applied"} 0
gitfleet_placement_clusters{placement="rp/team/db",state="applying"} 0
gitfleet_placement_clusters{placement="rp/team/db",state="available"} 0
gitfleet_placement_clusters{placement="rp/team/db",state="held"} 0
gitfleet_placement_clusters{placement="rp/team/db",state="removing"} 0
# HELP gitfleet_suspended_since_timestamp_seconds When the oldest suspension in force began; missing if there is none.
# TYPE gitfleet_suspended_since_timestamp_seconds gauge
gitfleet_suspended_since_timestamp_seconds 1000
# HELP gitfleet_suspensions Suspensions in force, by what is suspended: a cluster, a placement or an object.
# TYPE gitfleet_suspensions gauge
gitfleet_suspensions{of="cluster"} 1
gitfleet_suspensions{of="object"} 1
gitfleet_suspensions{of="placement"} 2
`
	if got := page(t, s); got != want {
		t.Errorf("got:\n%s", got)
	}

	s.Publish(&status.Report{})
	for _, gone := range []string{"gitfleet_cluster_healthy", "gitfleet_placement_clusters", "last_success", "sha=", "suspended_since"} {
		if got := page(t, s); strings.Contains(got, gone) {
			t.Errorf("%s of what is gone:\n%s", gone, got)
		}
	}
}

// Prometheus has its own idea of what metrics look like; ours agree with it.
func TestMetricsLint(t *testing.T) {
	s := New(prometheus.NewRegistry())
	s.Publish(measured())
	problems, err := promlint.New(strings.NewReader(page(t, s))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
