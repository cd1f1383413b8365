package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// The answer to a gate is recorded in the run that has asked for it, also after a restart, and only in that: one about other content, or
// about a placement that is gone, changes nothing. An answer that cannot be evaluated is recorded once, so that an outage saves nothing
// again and again.
func TestGateAnswersAreRecorded(t *testing.T) {
	web, at := api.PlacementKey{Name: "web"}, time.Unix(1000, 0)
	gate := placement.RunGate{Name: "errors", Spec: api.RolloutGateSpec{Prometheus: &api.PrometheusGate{}}}
	stage := placement.RunStage{StageConfig: api.StageConfig{Name: "canary"}, Clusters: []string{"a"}, Updated: at, Gates: []placement.RunGate{gate}}
	run := placement.Run{Name: "web-1", Content: placement.Revision{Hash: "1"}, Started: at, Stages: []placement.RunStage{stage}}
	store, l := ledger.Memory(), ledger.New()
	l.SetPlacement(web, ledger.Placement{Runs: []placement.Run{run}})
	p := &plan.Plan{Placements: sharedlist.Of(&plan.Placement{Key: web}, &plan.Placement{Key: api.PlacementKey{Name: "new"}})}
	questions := gateQuestions(l, p)
	if len(questions) != 1 || !questions[0].Last.IsZero() {
		t.Fatalf("asked is %+v", questions)
	}
	answer := func(v placement.GateVerdict, change func(*placement.GateAnswer)) bool {
		a := placement.GateAnswer{GateRound: questions[0].GateRound, Verdict: v, Text: string(v), At: at}
		change(&a)
		return foldGateAnswers(l, []placement.GateAnswer{a})
	}
	same := func(*placement.GateAnswer) {}
	for _, step := range []struct {
		name    string
		verdict placement.GateVerdict
		change  func(*placement.GateAnswer)
		changed bool
	}{
		{"other content", placement.GateGood, func(a *placement.GateAnswer) { a.Content = "2" }, false},
		{"another run", placement.GateGood, func(a *placement.GateAnswer) { a.Run = "web-0" }, false},
		{"another gate", placement.GateGood, func(a *placement.GateAnswer) { a.Gate = "latency" }, false},
		{"an earlier time", placement.GateGood, func(a *placement.GateAnswer) { a.Updated-- }, false},
		{"another placement", placement.GateGood, func(a *placement.GateAnswer) { a.Placement.Name = "gone" }, false},
		{"an outage", placement.GateUnknown, same, true},
		{"that goes on", placement.GateUnknown, func(a *placement.GateAnswer) { a.At = at.Add(time.Minute) }, false},
		{"a good answer", placement.GateGood, same, true},
	} {
		if got := answer(step.verdict, step.change); got != step.changed {
			t.Errorf("%s: it changes something: %v", step.name, got)
		}
	}
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	again := gateQuestions(l, p)
	if len(again) != 1 || again[0].GateRound != questions[0].GateRound || !again[0].Last.Equal(at) {
		t.Errorf("after a restart, asked is %+v", again)
	}
	if got := l.Placement(web).Runs[0].Stages[0].Gates[0].Asked; got.Verdict != placement.GateGood || got.Text != "Good" {
		t.Errorf("recorded is %+v", got)
	}
}

// A gate looks at the objects that the placement has on the clusters of the stage, as the works of the plan have them. Of a cluster whose
// objects may not be what Git says, nothing can be said.
func TestGatesLookAtWhatIsPlaced(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	id := api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}
	web := &work.Manifest{Object: &api.Object{ID: id}}
	other := &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "Service", Namespace: "web", Name: "web"}}}
	bound := func(name string) *plan.OnCluster { return &plan.OnCluster{Binding: &placement.Binding{Cluster: name}} }
	holds := func() *work.Work { return &work.Work{Placement: key, Manifests: []*work.Manifest{web, other}} }
	for name, test := range map[string]struct {
		change func(on *plan.OnCluster, w *work.Work)
		want   string
	}{
		"as in Git": {func(*plan.OnCluster, *work.Work) {}, "a at ctx: 1 "},
		"leaving":   {func(on *plan.OnCluster, _ *work.Work) { on.Binding.Unscheduled = true }, ""},
		"not known": {func(_ *plan.OnCluster, w *work.Work) { w.Keep, w.Manifests = true, nil }, "a at ctx: 0 its content is not known"},
		"suspended": {func(_ *plan.OnCluster, w *work.Work) { w.Suspended = "maintenance" }, "a at ctx: 1 Deployment.apps/web/web is suspended"},
		"encrypted": {func(_ *plan.OnCluster, w *work.Work) {
			w.Manifests = []*work.Manifest{{Object: web.Object, Encrypted: &api.Ciphertext{}}}
		}, "a at ctx: 1 Deployment.apps/web/web is encrypted"},
		"changed":       {func(on *plan.OnCluster, _ *work.Work) { on.Entry = drifted(id, api.DriftHeld) }, "a at ctx: 1 Deployment.apps/web/web has been changed on the cluster (held)"},
		"repaired":      {func(on *plan.OnCluster, _ *work.Work) { on.Entry = drifted(id, api.DriftRepaired) }, "a at ctx: 1 "},
		"another one":   {func(on *plan.OnCluster, _ *work.Work) { on.Entry = drifted(other.ID, api.DriftHeld) }, "a at ctx: 1 "},
		"by the server": {func(on *plan.OnCluster, _ *work.Work) { on.Entry = drifted(id, api.DriftAltered) }, "a at ctx: 1 "},
	} {
		on, w := bound("a"), holds()
		test.change(on, w)
		p := &plan.Plan{
			Members: []*hub.Cluster{{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{api.ContextAnnotation: "ctx"}}}}},
			Works:   map[string][]*work.Work{"a": {{Placement: api.PlacementKey{Name: "api"}}, w}, "b": {holds()}},
		}
		var got []string
		for _, t := range gateTargets(p, &plan.Placement{Key: key, Clusters: []*plan.OnCluster{on, bound("b")}}, []string{"a"}, &api.ObjectsGate{APIVersion: "apps/v1beta1", Kind: "Deployment"}) {
			got = append(got, fmt.Sprintf("%s at %s: %d %s", t.Cluster, t.Context, len(t.Objects), t.Unknown))
		}
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, test.want) || test.want == "" && all != "" || strings.HasSuffix(test.want, " ") && all != test.want {
			t.Errorf("%s: %q, want %q", name, all, test.want)
		}
	}
}

// The Job of a gate runs on the first clusters of the stage that the placement is on, in the order of the stage. How Jobs there have ended
// is known from earlier answers, and nothing is written where gitfleet may not write.
func TestGatesRunJobsOnTheirClusters(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	run := func(clusters int) []string {
		l := ledger.New()
		l.SetFleet(protocol.Fleet{Name: "prod", ID: "ours"})
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.Fold(protocol.ClusterSeen{Cluster: name, At: time.Unix(900, 0), Healthy: name != "e"})
		}
		gate := placement.RunGate{
			Name: "smoke", Spec: api.RolloutGateSpec{Job: &api.JobGate{Clusters: clusters}},
			Asked: placement.GateAnswers{Jobs: []placement.GateJob{{Cluster: "a", Completed: true}, {Cluster: "d", Failed: 1}}},
		}
		stage := placement.RunStage{StageConfig: api.StageConfig{Name: "canary"}, Clusters: []string{"d", "c", "b", "a", "e"}, Updated: time.Unix(1000, 0), Gates: []placement.RunGate{gate}}
		l.SetPlacement(web, ledger.Placement{Runs: []placement.Run{{Name: "web-1", Started: time.Unix(900, 0), Stages: []placement.RunStage{stage}}}})
		pl := &plan.Placement{Key: web}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			pl.Clusters = append(pl.Clusters, &plan.OnCluster{Binding: &placement.Binding{Cluster: name, Unscheduled: name == "c"}})
		}
		pl.Clusters[1].Circumstances = &plan.Circumstances{Suspended: "suspended by sam"}
		var got []string
		for _, q := range gateQuestions(l, &plan.Plan{Placements: sharedlist.Of(pl)}) {
			for _, t := range q.Targets {
				got = append(got, fmt.Sprint(q.Fleet, " ", t.Cluster, " ", t.Job, " ", t.Unknown))
			}
		}
		return got
	}
	all := []string{"ours d {d 1 false} ", "ours b {b 0 false} it is suspended by sam", "ours a {a 0 true} ", "ours e {e 0 false} it is not reachable"}
	for clusters, want := range map[int][]string{0: all, 1: all[:1], 3: all[:3], 9: all} {
		if got := run(clusters); !slices.Equal(got, want) {
			t.Errorf("clusters %d: %q, want %q", clusters, got, want)
		}
	}
}

// A gate asks no cluster that its stage does not wait for, such as an unreachable one.
func TestGatesLeaveOutClustersThatAreNotAwaited(t *testing.T) {
	web, at := api.PlacementKey{Name: "web"}, time.Unix(1000, 0)
	for name, test := range map[string]struct {
		spec       api.RolloutGateSpec
		notAwaited []string
		inForce    string
		want       []string
	}{
		"objects":              {api.RolloutGateSpec{Objects: &api.ObjectsGate{}}, []string{"a"}, "web-1", []string{"b", "c"}},
		"Jobs":                 {api.RolloutGateSpec{Job: &api.JobGate{}}, []string{"a"}, "web-1", []string{"b", "c"}},
		"a Job on one cluster": {api.RolloutGateSpec{Job: &api.JobGate{Clusters: 1}}, []string{"a"}, "web-1", []string{"b"}},
		"all are awaited":      {api.RolloutGateSpec{Objects: &api.ObjectsGate{}}, nil, "web-1", []string{"a", "b", "c"}},
		"none is":              {api.RolloutGateSpec{Job: &api.JobGate{}}, []string{"a", "b", "c"}, "web-1", nil},
		"that of another run":  {api.RolloutGateSpec{Job: &api.JobGate{}}, []string{"a"}, "web-0", []string{"a", "b", "c"}},
	} {
		stage := placement.RunStage{StageConfig: api.StageConfig{Name: "canary"}, Clusters: []string{"a", "b", "c"}, Updated: at, Gates: []placement.RunGate{{Name: "smoke", Spec: test.spec}}}
		l := ledger.New()
		l.SetPlacement(web, ledger.Placement{Runs: []placement.Run{{Name: "web-1", Started: at, Stages: []placement.RunStage{stage}}}})
		pl := &plan.Placement{Key: web, Rollout: rollout.Plan{Run: &placement.Run{Name: test.inForce}, Progress: &rollout.RunProgress{NotAwaited: test.notAwaited}}}
		for _, cluster := range stage.Clusters {
			pl.Clusters = append(pl.Clusters, &plan.OnCluster{Binding: &placement.Binding{Cluster: cluster}})
		}
		var got []string
		for _, q := range gateQuestions(l, &plan.Plan{Placements: sharedlist.Of(pl)}) {
			for _, t := range q.Targets {
				got = append(got, t.Cluster)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: asked are %v, want %v", name, got, test.want)
		}
	}
}

func drifted(id api.ID, state api.DriftState) *ledger.Entry {
	return &ledger.Entry{Seen: &protocol.WorkState{Incidents: &protocol.Incidents{Drifts: []protocol.Drift{{ID: id, State: state}}}}}
}
