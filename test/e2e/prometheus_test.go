package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gate"
	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/picture"
	"github.com/gitfleet/gitfleet/test/process"
)

// A prometheus is a running Prometheus that scrapes a daemon, with the rules and the
// configuration of deploy.
type prometheus struct {
	t      *testing.T
	fleet  string
	url    string
	source *picture.Source
	panels []panelQuery
}

// A panelQuery is one query of a deployed dashboard.
type panelQuery struct{ page, panel, legend, expr string }

func startPrometheus(t *testing.T, target, fleet string) *prometheus {
	t.Helper()
	program, _, err := checkout.Prometheus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/prometheus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "prometheus.yaml")
	set := strings.NewReplacer("127.0.0.1:8085", target, "15s", "250ms", "- rules.yaml", "- "+filepath.Join(root, "deploy/prometheus/rules.yaml"))
	if err := os.WriteFile(config, []byte(set.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{t: t, fleet: fleet, panels: panelQueries(t, filepath.Join(root, "deploy/grafana"), fleet)}
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + address
	if p.source, err = picture.NewSource(p.url); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := process.Start(log, program, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of Prometheus:\n%s", said[max(0, len(said)-4<<10):])
		}
	})
	return p
}

func panelQueries(t *testing.T, dir, fleet string) []panelQuery {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards in %s: %v", dir, err)
	}
	var all []panelQuery
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Panels {
			for _, q := range p.Targets {
				expr := strings.NewReplacer("$__rate_interval", "1m", "$fleet", fleet, "$placement", "crp/all").Replace(q.Expr)
				all = append(all, panelQuery{filepath.Base(file), p.Title, q.LegendFormat, expr})
			}
		}
	}
	return all
}

// positive stands for any number above zero.
const positive = -1

// waitForSeries waits until an expression has a series with these labels, written name=value,
// and this value.
func (p *prometheus) waitForSeries(what, expr string, labels []string, want float64) {
	p.t.Helper()
	var last []picture.Series
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		all, err := p.source.Now(p.t.Context(), expr)
		if err != nil {
			continue // it is starting
		}
		for _, s := range all {
			if value := s.Points[0].Value; has(s, labels) && (want == positive && value > 0 || math.Abs(value-want) < 1e-6) {
				return
			}
		}
		last = all
	}
	p.t.Fatalf("%s: want %v of %v, got %v\n%s", what, want, labels, last, expr)
}

// has reports whether a series has labels, written name=value.
func has(s picture.Series, labels []string) bool {
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		if s.Labels[name] != value {
			return false
		}
	}
	return true
}

// shows waits until a panel shows a value; on the page of a cluster, for this cluster.
func (p *prometheus) shows(file, panel, legend, cluster string, want float64, labels ...string) {
	p.t.Helper()
	for _, q := range p.panels {
		if q.page == file && q.panel == panel && (legend == "" || q.legend == legend) {
			expr := strings.ReplaceAll(q.expr, "$cluster", cluster)
			p.waitForSeries(file+": "+panel, expr, labels, want)
			if !strings.Contains(q.legend, "{{") {
				p.waitForSeries(file+": "+panel+" is one value", "count("+expr+")", nil, 1)
			}
			return
		}
	}
	p.t.Fatalf("%s has no panel %q with %q", file, panel, legend)
}

// yamlCareful is a strategy whose canary has to be approved.
const yamlCareful = `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: careful}
spec:
  stages:
  - name: canary
    labelSelector: {matchLabels: {number: "1"}}
    afterStageTasks: [{type: Approval}]
  - name: others
    labelSelector: {matchExpressions: [{key: number, operator: NotIn, values: ["1"]}]}
`

// A real Prometheus scrapes a daemon through a rollout that is stopped by a failure, a drift,
// the outage of a cluster, and the commit that fixes everything, and then through a staged update run that waits for an
// approval. Afterwards each panel of each dashboard has data, and shows the right values.
func TestDashboardsShowARollout(t *testing.T) {
	d := newDaemon(t, "--set", "rollout.availableTimeout=2s", "--set", "members.probeInterval=1s")
	p := startPrometheus(t, d.address, d.name)
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	good := d.repo.Commit(t, "main", d.app("good"))
	d.startAt(good)
	d.waitForValues("good good good")
	d.waitForProven(good)
	began := time.Now()
	p.shows("fleet.json", "Commit in force", "", "", 1, "commit="+good[:12])
	p.shows("fleet.json", "Clusters that answer", "up", "", 3)
	p.shows("fleet.json", "Clusters that answer", "of", "", 3)
	p.shows("fleet.json", "Rollouts under way", "", "", 0)
	p.shows("fleet.json", "Objects that differ from Git", "", "", 0)
	p.shows("rollout.json", "Clusters by state", "", "", 3, "state=available")
	p.shows("rollout.json", "Clusters with the newest content", "", "", 1)
	p.shows("rollout.json", "Selected objects", "", "", 2)
	p.shows("daemon.json", "Objects in Git", "", "", 2)

	d.repo.Commit(t, "main", d.app("broken"))
	d.waits("member-2", "waits for cluster member-1, which was available", "broken good good")
	p.shows("fleet.json", "Stopped rollouts", "", "", 1)
	p.shows("fleet.json", "Rollouts under way", "", "", 1)
	p.shows("fleet.json", "Clusters furthest behind", "", "", 0, "cluster=member-1")
	p.shows("fleet.json", "Clusters furthest behind", "", "", positive, "cluster=member-2")
	p.shows("fleet.json", "Placements furthest behind", "", "", positive, "placement=crp/all")
	p.shows("rollout.json", "Stopped", "", "", 1)
	p.shows("rollout.json", "Under way for", "", "", positive)
	p.shows("rollout.json", "Clusters by state", "", "", 1, "state=failed")
	p.shows("rollout.json", "Clusters by state", "", "", 2, "state=waiting")
	p.shows("rollout.json", "Clusters with the newest content", "", "", 1.0/3)
	p.shows("rollout.json", "Commits behind", "", "", 1)
	p.shows("rollout.json", "Budget in use", "unavailable", "", 1)
	p.shows("rollout.json", "Budget in use", "maxUnavailable", "", 1)
	p.shows("rollout.json", "Clusters where placements wait", "", "", 0, "cluster=member-1")
	p.shows("rollout.json", "Clusters where placements wait", "", "", 1, "cluster=member-2")
	p.shows("cluster.json", "Commits behind", "", "member-2", 1)
	p.shows("cluster.json", "Placements by state", "", "member-1", 1, "state=failed")
	p.waitForSeries("the alert", `ALERTS{alertname="GitfleetRolloutStopped"}`, []string{"fleet=" + d.name, "placement=crp/all", "cluster=member-1", "severity=critical"}, 1)

	d.edit("member-2", "one")
	d.waitForValues("broken good good")
	p.shows("cluster.json", "Drifts and repairs", "drifts", "member-2", positive)
	p.shows("cluster.json", "Drifts and repairs", "repairs", "member-2", positive)
	p.shows("cluster.json", "Drifts and repairs", "drifts", "member-1", 0)
	p.shows("fleet.json", "Drifts and repairs", "repairs", "", positive)

	f := fleet.Shared(t)
	if err := f.Stop("member-3"); err != nil {
		t.Fatal(err)
	}
	up := func() {
		if err := f.Start("member-3"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(up)
	p.shows("cluster.json", "Answers", "", "member-3", 0)
	p.shows("cluster.json", "Requests that are throttled or get no answer", "", "member-3", positive, "code=error")
	p.shows("fleet.json", "Clusters that answer", "up", "", 2)
	up()
	p.shows("cluster.json", "Answers", "", "member-3", 1)

	fixed := d.repo.Commit(t, "main", d.app("fixed"))
	d.waitForValues("fixed fixed fixed")
	d.waitForProven(fixed)
	p.shows("fleet.json", "Stopped rollouts", "", "", 0)
	p.shows("fleet.json", "Placements on clusters by state", "", "", 3, "state=available")
	p.shows("fleet.json", "From commit to cluster", "", "", positive, "stage=applied")
	p.shows("fleet.json", "From commit to cluster", "", "", positive, "stage=available")
	p.shows("rollout.json", "Lag", "", "", 0)
	p.shows("rollout.json", "Rollouts of the last day, all placements", "finished", "", positive)
	p.shows("rollout.json", "Rollouts of the last day, all placements", "stopped", "", positive)

	staged := d.app("staged")
	staged["placement.yaml"] = strings.Replace(yamlPlacement("all", d.name, pickAll+"  strategy: {type: External}\n"), "metadata:\n", "metadata:\n  annotations: {gitfleet.dev/staged-update-strategy: careful}\n", 1)
	staged["strategy.yaml"] = yamlCareful
	d.repo.Commit(t, "main", staged)
	d.waitForValues("staged fixed fixed")
	p.shows("rollout.json", "Run, stage and state", "", "", positive, "stage=canary", "reason=UpdateRunWaiting")
	p.shows("rollout.json", "Waits for an approval", "", "", positive, "stage=canary")

	for _, q := range p.panels {
		all, err := p.source.Now(t.Context(), strings.ReplaceAll(q.expr, "$cluster", "member-2"))
		if err != nil || len(all) == 0 {
			t.Errorf("%s: %s has no data: %v\n%s", q.page, q.panel, err, q.expr)
		}
		for _, s := range all {
			if math.IsNaN(s.Points[0].Value) {
				t.Errorf("%s: %s shows no number for %v\n%s", q.page, q.panel, s.Labels, q.expr)
			}
		}
	}
	if *pictures {
		time.Sleep(8 * time.Second) // so that the pictures show how it ends
	}
	p.draw(began, "crp/all", "member-2")
}

// Gates ask a real Prometheus: for a scalar, a vector, nothing, no number, and what is no query.
func TestGatesAskPrometheus(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "127.0.0.1:1", "none")
	p.waitForSeries("a scrape", `up{job="gitfleet"}`, nil, 0)
	answers := make(chan placement.GateAnswer, 10)
	asker := gate.New(gate.Config{Servers: []gate.Server{{URL: p.url}}, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- asker.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	want := map[string]string{
		`up{job="gitfleet"}`:     `Bad: the value of {__name__="up"`,
		`1 - up{job="gitfleet"}`: "Good: the value is 1, which is == 1",
		`vector(1)`:              "Good: the value is 1, which is == 1",
		`scalar(vector(1))`:      "Good: the value is 1, which is == 1",
		`up{job="nothing"}`:      "Unknown: the result of the query is empty",
		`vector(0) / 0`:          "Unknown: the value is not a number (NaN)",
		`up[5m]`:                 `Unknown: the result is a "matrix"`,
		`sum(`:                   "Unknown: the query fails: ",
	}
	var questions []placement.GateQuestion
	for query := range want {
		questions = append(questions, placement.GateQuestion{GateRound: placement.GateRound{Gate: query}, Spec: &api.RolloutGateSpec{Prometheus: &api.PrometheusGate{Address: p.url, Query: query, Condition: "== 1"}}})
	}
	asker.Set(questions, func(a placement.GateAnswer) { answers <- a })
	for range want {
		if a := <-answers; !strings.HasPrefix(string(a.Verdict)+": "+a.Text, want[a.Gate]) {
			t.Errorf("%s: %s: %s, want %s", a.Gate, a.Verdict, a.Text, want[a.Gate])
		}
	}
}
