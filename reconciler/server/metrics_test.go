package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/golden"
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
			InForce: hub.Commit{Hash: "0123456789abcdef"}, Newest: hub.Commit{Hash: "fedcba9876543210"}, Since: time.Unix(1_600_000_000, 0), Problems: problem.List{{Severity: problem.Error}, {Severity: problem.Error}, {Severity: problem.Warning}},
			Git: status.Git{Failures: 3, LastSuccess: time.Unix(1_700_000_000, 0)},
		},
		Clusters: []*api.MemberCluster{member("east", metav1.ConditionTrue), member("west", metav1.ConditionFalse), {ObjectMeta: metav1.ObjectMeta{Name: "new"}}},
		Details: []*status.Detail{
			{
				Placement: "crp/web", Selected: 3, Stopped: "east",
				UpdateRun: &updaterun.Run{Name: "web-1", Reason: "UpdateRunWaiting", ApprovalStage: "prod", ApprovalSince: time.Unix(1_700_000_000, 0), Stages: []updaterun.Stage{{Name: "canary", Finished: time.Unix(1, 0)}, {Name: "prod", Gates: []updaterun.Gate{{Name: "errors", State: placement.GateStateUnknown, Due: time.Unix(1_700_000_060, 0)}, {Name: "calm", State: placement.GateStatePassed}}}}},
				Rollout:   &status.Rollout{Started: time.Unix(1_700_000_000, 0), Updated: 1, Target: 4, Unavailable: 2, MaxUnavailable: 1},
				Clusters: []status.ClusterDetail{
					{Cluster: "a", Applied: true, Available: true}, {Cluster: "east", Commit: "fedcba9876543210", Applied: true, Failure: "no image", FailedObjects: 2, Behind: 1, BehindSince: time.Unix(1_700_000_000, 0)},
					{Cluster: "c", Behind: 1, BehindSince: time.Unix(1_700_000_000, 0)},
					{Cluster: "west", Applied: true, Available: true, Waits: "waits", Behind: 3, BehindSince: time.Unix(1_699_999_900, 0), Deferral: &status.Deferral{Overdue: true}},
					{Cluster: "e", Applied: true, Removing: true, Waits: "waits", BlockedDeletions: []string{"Namespace/web: because"}},
				},
			},
			{Placement: "rp/team/db", Selected: 1, Rollout: &status.Rollout{Started: time.Unix(1, 0), Finished: time.Unix(2, 0)}, Clusters: []status.ClusterDetail{{Cluster: "east", Applied: true, Available: true}}},
		},
		Drifts: []status.Drift{
			{Placement: "crp/web", Cluster: "a", State: api.DriftStanding}, {Placement: "crp/web", Cluster: "b", State: api.DriftStanding},
			{Placement: "crp/web", Cluster: "c", State: api.DriftRepaired}, {Placement: "crp/web", Cluster: "c", State: api.DriftForeign},
		},
		Suspensions: []status.Suspension{
			{Cluster: "east", Since: time.Unix(3000, 0)}, {Placement: "crp/web", Since: time.Unix(1000, 0)}, {Placement: "crp/web", Cluster: "a", Since: time.Unix(2000, 0)},
			{Object: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "settings"}, Since: time.Unix(4000, 0)},
			{Cluster: "west", Since: time.Unix(500, 0), Until: time.Unix(5000, 0)},
		},
	}
}

// KubeFleet's metric shows the condition that a placement has to reach next, while the
// placement exists.
func TestMetricOfTheOutstandingCondition(t *testing.T) {
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
			s := New(NewRegistry())
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

// page returns what Prometheus scrapes.
func page(t *testing.T, s *Server) string {
	t.Helper()
	w := askFor(t.Context(), s, "/metrics")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s\n%s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// gathered returns the metrics of a collector as Prometheus scrapes them.
func gathered(t *testing.T, c *collector) string {
	t.Helper()
	registry := NewRegistry()
	registry.AddSources(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// Metrics agree with the newest report: each cluster of a placement counts once, and a state
// without clusters is zero and not missing.
func TestMetrics(t *testing.T) {
	s := New(nil)
	c := &collector{report: s.reportToExport, now: func() time.Time { return time.Unix(1_700_000_600, 0) }}
	if got := gathered(t, c); got != "" {
		t.Errorf("before the first report:\n%s", got)
	}
	s.Publish(measured())
	golden.File(t, "testdata/metrics.txt", gathered(t, c))

	s.Publish(&status.Report{})
	for _, gone := range []string{"gitfleet_member_up", "gitfleet_placement_clusters", "last_success", "commit_info", "suspended_since"} {
		if got := gathered(t, c); strings.Contains(got, gone) {
			t.Errorf("%s of what is gone:\n%s", gone, got)
		}
	}
}

// What keeps gitfleet from using a member is exported by its reason, while that lasts.
func TestMetricOfMemberProblems(t *testing.T) {
	s := New(NewRegistry())
	no := func(typ, reason string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: metav1.ConditionFalse, Reason: reason}
	}
	east := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Status.Conditions = []metav1.Condition{no(api.Joined, api.MemberClusterDuplicate), no(api.CredentialsRenewed, api.CredentialsUnusable)}
	west := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	west.Status.Conditions = []metav1.Condition{no(api.Joined, api.MemberClusterForeign), no(api.PermissionsGranted, api.PermissionsMissing), no(api.Healthy, "NotReady")}
	s.Publish(&status.Report{Clusters: []*api.MemberCluster{east, west}})
	got := page(t, s)
	for _, series := range []string{`cluster="east",problem="duplicate"`, `cluster="east",problem="credentials"`, `cluster="west",problem="foreign"`, `cluster="west",problem="permissions"`} {
		if !strings.Contains(got, "gitfleet_member_problems{"+series+"} 1\n") {
			t.Errorf("no %s in\n%s", series, got)
		}
	}
	if n := strings.Count(got, "gitfleet_member_problems{"); n != 4 {
		t.Errorf("%d series, want 4", n)
	}
	s.Publish(&status.Report{Clusters: []*api.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}})
	if got := page(t, s); strings.Contains(got, "gitfleet_member_problems{") {
		t.Errorf("of problems that are gone:\n%s", got)
	}
}

// A member that another fleet or another member holds is not up, however ready it is. One whose
// credentials or permissions have a problem is.
func TestClaimedMembersAreNotUp(t *testing.T) {
	for problem, test := range map[string]struct {
		typ, reason string
		want        string
	}{
		"none":        {api.Joined, "", "1"},
		"foreign":     {api.Joined, api.MemberClusterForeign, "0"},
		"duplicate":   {api.Joined, api.MemberClusterDuplicate, "0"},
		"credentials": {api.CredentialsRenewed, api.CredentialsUnusable, "1"},
		"permissions": {api.PermissionsGranted, api.PermissionsMissing, "1"},
	} {
		east := member("east", metav1.ConditionTrue)
		if test.reason != "" {
			east.Status.Conditions = []metav1.Condition{{Type: test.typ, Status: metav1.ConditionFalse, Reason: test.reason}}
		}
		s := New(NewRegistry())
		s.Publish(&status.Report{Clusters: []*api.MemberCluster{east}})
		if got := page(t, s); !strings.Contains(got, "gitfleet_member_up{cluster=\"east\"} "+test.want+"\n") {
			t.Errorf("%s: up is not %s in\n%s", problem, test.want, got)
		}
	}
}

// What keeps a placement from being scheduled is exported by its reason, while that lasts.
func TestMetricOfPlacementProblems(t *testing.T) {
	scheduled := func(prefix string, status metav1.ConditionStatus, reason string) api.PlacementStatus {
		return api.PlacementStatus{Conditions: []metav1.Condition{{Type: prefix + api.Scheduled, Status: status, Reason: reason}}}
	}
	const no = metav1.ConditionFalse
	s := New(NewRegistry())
	s.Publish(&status.Report{
		Placements: []*api.ClusterResourcePlacement{
			{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Status: scheduled(api.PlacementPrefix, no, api.SchedulingPolicyUnfulfilled)},
			{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Status: scheduled(api.PlacementPrefix, no, api.InvalidResourceSelectors)},
			{ObjectMeta: metav1.ObjectMeta{Name: "good"}, Status: scheduled(api.PlacementPrefix, metav1.ConditionTrue, api.SchedulingPolicyFulfilled)},
			{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: scheduled(api.PlacementPrefix, metav1.ConditionUnknown, api.SchedulePending)},
		},
		ResourcePlacements: []*api.ResourcePlacement{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db"}, Status: scheduled(api.ResourcePlacementPrefix, no, api.SchedulingFailed)},
		},
	})
	got := page(t, s)
	for _, series := range []string{`placement="crp/few",problem="unfulfilled"`, `placement="crp/bad",problem="selectors"`, `placement="rp/team/db",problem="internal"`} {
		if !strings.Contains(got, "gitfleet_placement_problems{"+series+"} 1\n") {
			t.Errorf("no %s in\n%s", series, got)
		}
	}
	if n := strings.Count(got, "gitfleet_placement_problems{"); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
}

// Every series names the fleet, also before its first report, and the labels are sorted.
func TestMetricsNameTheFleet(t *testing.T) {
	s := New(NewRegistry())
	s.SetFleet("assumed", "")
	askFor(t.Context(), s, "/healthz")
	if got := page(t, s); !strings.Contains(got, `gitfleet_http_requests_total{code="200",fleet="assumed",handler="GET /healthz"} 1`) {
		t.Errorf("before the first report:\n%s", got)
	}
	s.SetFleet("prod", "")
	s.Publish(measured())
	for range 2 { // the labels do not pile up
		got := page(t, s)
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "#") && strings.Count(line, `fleet="prod"`) != 1 {
				t.Errorf("without the fleet: %s", line)
			}
		}
		for _, series := range []string{`gitfleet_git_consecutive_failures{fleet="prod"} 3`, `gitfleet_placement_clusters{fleet="prod",placement="crp/web",state="failed"} 1`} {
			if !strings.Contains(got, series+"\n") {
				t.Errorf("no %s in\n%s", series, got)
			}
		}
	}
}

// A replica that may have lost its lease exports no gauges of the fleet, although its last report
// is one of a leader: another replica may export them.
func TestMetricsOfDeposedLeader(t *testing.T) {
	s, leads := New(nil), true
	s.SetLeader(nil, func() bool { return leads })
	s.Publish(measured())
	c := &collector{report: s.reportToExport, now: time.Now}
	if got := gathered(t, c); !strings.Contains(got, "gitfleet_member_up") {
		t.Errorf("the leader exports\n%s", got)
	}
	leads = false
	if got := gathered(t, c); got != "" {
		t.Errorf("the deposed leader exports\n%s", got)
	}
}

// Metrics follow the conventions of Prometheus.
func TestMetricsLint(t *testing.T) {
	s := New(NewRegistry())
	s.Publish(measured())
	problems, err := promlint.New(strings.NewReader(page(t, s))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// largest returns the report of a fleet in which every placement is on every cluster and is
// being rolled out; a tenth of the rollouts is stopped.
func largest(placements, clusters int) *status.Report {
	r := &status.Report{At: time.Unix(1_700_000_000, 0), Source: status.Source{InForce: hub.Commit{Hash: "c1"}, Git: status.Git{LastSuccess: time.Unix(1_700_000_000, 0)}}}
	for i := range clusters {
		r.Clusters = append(r.Clusters, member(fmt.Sprintf("c%03d", i), metav1.ConditionTrue))
	}
	for i := range placements {
		name := fmt.Sprintf("p%04d", i)
		d := &status.Detail{
			Placement: "crp/" + name, Selected: 20,
			Rollout: &status.Rollout{Started: time.Unix(1_699_999_000, 0), Updated: clusters / 2, Target: clusters, Unavailable: 1, MaxUnavailable: 1},
		}
		if i%10 == 0 {
			d.Stopped = "c000"
		}
		for _, c := range r.Clusters {
			d.Clusters = append(d.Clusters, status.ClusterDetail{Cluster: c.Name, Applied: true, Behind: 1, BehindSince: time.Unix(1_699_999_000, 0), Waits: "waits"})
		}
		r.Details = append(r.Details, d)
		r.Drifts = append(r.Drifts, status.Drift{Placement: d.Placement, Cluster: "c000", State: api.DriftStanding})
		r.Placements = append(r.Placements, &api.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}})
	}
	return r
}

// The number of series grows with the placements and with the clusters, but not with their
// product.
func TestSeriesAreBounded(t *testing.T) {
	count := func(placements, clusters int) int {
		s := New(nil)
		s.Publish(largest(placements, clusters))
		n := 0
		for _, f := range series.Gather(nil, &collector{report: s.reportToExport, now: time.Now}) {
			n += len(f.Metric)
		}
		return n
	}
	// The daemon may have 20,000 series. 3,000 are left for its other metrics, of which each
	// cluster has some 25.
	if got := count(1000, 100); got > 17_000 {
		t.Errorf("%d series for 1,000 placements on 100 clusters", got)
	}
	few, morePlacements, moreClusters, more := count(10, 10), count(20, 10), count(10, 20), count(20, 20)
	if more-few != (morePlacements-few)+(moreClusters-few) {
		t.Errorf("%d series for 10 placements on 10 clusters, %d for 20 on 10, %d for 10 on 20, %d for 20 on 20", few, morePlacements, moreClusters, more)
	}
}

func BenchmarkScrape(b *testing.B) {
	registry := NewRegistry()
	s := New(registry)
	s.SetFleet("prod", "")
	s.Publish(largest(1000, 100))
	b.ReportAllocs()
	for b.Loop() {
		if w := askFor(b.Context(), s, "/metrics"); w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}
