package daemon

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/golden"
)

// everyMetric returns a registry with all metrics of the daemon, each with at least one series,
// and their descriptions.
func everyMetric(t *testing.T) (*server.Registry, map[string]*prometheus.Desc) {
	t.Helper()
	registry, registered := server.NewRegistry(), &recorder{}
	newMetrics(registered, func() bool { return true })
	registry.MustRegister(registered.collectors...)
	registry.AddSources(registered.sources...)
	srv := server.New(registry)
	srv.Publish(oneOfEach())
	srv.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/healthz", nil))
	labels := func(c describer) []string { return make([]string, len(labelsOf(descs(c)[0]))) }
	for _, c := range registered.collectors {
		values := labels(c)
		switch c := c.(type) {
		case *prometheus.CounterVec:
			c.WithLabelValues(values...)
		case *prometheus.GaugeVec:
			c.WithLabelValues(values...)
		case *prometheus.HistogramVec:
			c.WithLabelValues(values...)
		}
	}
	for _, s := range registered.sources {
		values := labels(s)
		s.(*series.Vec).Set(0, values[0], values[1:]...)
	}
	all := map[string]*prometheus.Desc{}
	for _, d := range descs(registry) {
		if all[nameOf(d)] != nil {
			t.Errorf("there are two metrics %s", nameOf(d)) // sources are registered without checks
		}
		all[nameOf(d)] = d
	}
	return registry, all
}

// A recorder records what is registered.
type recorder struct {
	collectors []prometheus.Collector
	sources    []series.Source
}

func (r *recorder) MustRegister(c ...prometheus.Collector) { r.collectors = append(r.collectors, c...) }

func (r *recorder) AddSources(s ...series.Source) { r.sources = append(r.sources, s...) }

type describer interface {
	Describe(chan<- *prometheus.Desc)
}

func descs(c describer) []*prometheus.Desc {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	var all []*prometheus.Desc
	for d := range ch {
		all = append(all, d)
	}
	return all
}

// a description can only be formatted as text
var descText = regexp.MustCompile(`fqName: "([^"]*)", help: "(.*)", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func nameOf(d *prometheus.Desc) string { return descText.FindStringSubmatch(d.String())[1] }

func labelsOf(d *prometheus.Desc) []string {
	return strings.FieldsFunc(descText.FindStringSubmatch(d.String())[4], func(r rune) bool { return r == ',' })
}

// oneOfEach returns a report with at least one of everything.
func oneOfEach() *status.Report {
	at := time.Unix(1_700_000_000, 0)
	return &status.Report{
		At: at, InForce: &hub.Snapshot{},
		Source: status.Source{InForce: hub.Commit{Hash: "0123456789abcdef"}, Since: at, Git: status.Git{LastSuccess: at}},
		Placements: []*api.ClusterResourcePlacement{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: api.PlacementStatus{Conditions: []metav1.Condition{
			{Type: api.PlacementPrefix + api.Scheduled, Status: metav1.ConditionFalse, Reason: api.SchedulingPolicyUnfulfilled},
		}}}},
		Clusters: []*api.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: api.MemberClusterStatus{Conditions: []metav1.Condition{
			{Type: api.PermissionsGranted, Status: metav1.ConditionFalse, Reason: api.PermissionsMissing},
		}}}},
		Details: []*status.Detail{{
			Placement: "crp/web", Rollout: &status.Rollout{Started: at}, Stopped: "east", UpdateRun: &updaterun.Run{Name: "web-1", ApprovalStage: "canary", ApprovalSince: at, Stages: []updaterun.Stage{{Name: "canary", Gates: []updaterun.Gate{{Name: "errors", State: placement.GateStateWaiting, Due: at}}}}},
			Clusters: []status.ClusterDetail{{Cluster: "east", Behind: 1, BehindSince: at, Deferral: &status.Deferral{Overdue: true}}},
		}},
		Drifts:      []status.Drift{{Placement: "crp/web", Cluster: "east", State: api.DriftStanding}},
		Suspensions: []status.Suspension{{Cluster: "east", Since: at}},
	}
}

func gather(t *testing.T, registry prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// metricGroups are the sections of docs/metrics.md, each with the prefixes of its metrics.
var metricGroups = []struct {
	title    string
	prefixes []string
}{
	{"Source and commits", []string{"gitfleet_git_", "gitfleet_webhook_", "gitfleet_commit_", "gitfleet_load_"}},
	{"Placements", []string{"gitfleet_placement_", "fleet_workload_"}},
	{"Rollouts", []string{"gitfleet_rollout", "gitfleet_propagation_"}},
	{"Member clusters", []string{"gitfleet_member_"}},
	{"Operations and drift", []string{"gitfleet_operation", "gitfleet_drift", "gitfleet_sweep_", "gitfleet_suspen"}},
	{"Daemon", []string{"gitfleet_loop_", "gitfleet_history_", "gitfleet_http_", "gitfleet_build_", "gitfleet_leader", "gitfleet_ledger_"}},
}

// docs/metrics.md has exactly the metrics that the program exports.
func TestMetricsAreDocumented(t *testing.T) {
	registry, all := everyMetric(t)
	families := gather(t, registry)
	var page strings.Builder
	documented := map[string]bool{}
	for _, group := range metricGroups {
		fmt.Fprintf(&page, "### %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", group.title)
		var names []string
		for name := range all {
			if slices.ContainsFunc(group.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			f := families[name]
			if f == nil {
				t.Errorf("%s has no series here", name)
				continue
			}
			documented[name] = true
			labels := labelsOf(all[name])
			for _, l := range f.Metric[0].Label {
				if !slices.Contains(labels, l.GetName()) {
					labels = append(labels, l.GetName())
				}
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), quoted(labels), f.GetHelp())
		}
		page.WriteString("\n")
	}
	for name := range all {
		if !documented[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s belongs to no section of docs/metrics.md: add its prefix to metricGroups", name)
		}
	}
	const file = "../../../docs/metrics.md"
	const begin, end = "<!-- metrics: written by go test ./cmd/gitfleet/daemon -update; its sections are metricGroups in metricspage_test.go -->\n", "<!-- end of metrics -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the metrics", file)
	}
	golden.File(t, file, before+begin+"\n"+page.String()+end+after)
}

func quoted(labels []string) string {
	var out []string
	for _, l := range labels {
		out = append(out, "`"+l+"`")
	}
	return strings.Join(out, ", ")
}

// The name and help text of each metric pass the linter of Prometheus, and each help text
// ends with a full stop.
func TestMetricsFollowTheConventions(t *testing.T) {
	registry, _ := everyMetric(t)
	var text bytes.Buffer
	for _, f := range gather(t, registry) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
		if help := f.GetHelp(); strings.HasPrefix(f.GetName(), "gitfleet_") && !strings.HasSuffix(help, ".") {
			t.Errorf("%s: the help text does not end with a full stop: %s", f.GetName(), help)
		}
	}
	problems, err := promlint.New(&text).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "fleet_workload_") {
			continue // the name and the labels are KubeFleet's
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
