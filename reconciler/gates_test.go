package reconciler

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
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
	p := &plan.Plan{Placements: []*plan.Placement{{Key: web}, {Key: api.PlacementKey{Name: "new"}}}}
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
		news    bool
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
		if got := answer(step.verdict, step.change); got != step.news {
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
