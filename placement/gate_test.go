package placement

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A gate asks for the same Job again and again, for another one after a failure, and for another one for each fleet, placement, run, stage,
// gate and content. It is marked, ends by itself, and is deleted some time later.
func TestJobsOfGates(t *testing.T) {
	question := func(change func(q *GateQuestion, target *GateTarget)) map[string]any {
		template := `{"metadata": {"labels": {"team": "web"}}, "spec": {"backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never"}}}}`
		q := GateQuestion{
			GateRound: GateRound{Placement: api.PlacementKey{Name: "web"}, Run: "web-1", Stage: "canary", Gate: "smoke.of.web", Content: "c1", Updated: 1},
			Fleet:     "ours", Spec: &api.RolloutGateSpec{Job: &api.JobGate{Namespace: "checks", Template: json.RawMessage(template), Timeout: "90s"}},
		}
		target := GateTarget{Cluster: "a"}
		change(&q, &target)
		return q.Job(target).Object
	}
	first := question(func(*GateQuestion, *GateTarget) {})
	name := func(o map[string]any) string { return o["metadata"].(map[string]any)["name"].(string) }
	if !strings.HasPrefix(name(first), "smoke-of-web-") {
		t.Errorf("the name is %s", name(first))
	}
	delete(first["metadata"].(map[string]any), "name")
	const want = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"gitfleet.dev/fleet-id":"ours","gitfleet.dev/placement":"crp/web","gitfleet.dev/update-run":"web-1"},` +
		`"labels":{"gitfleet.dev/rollout-gate":"smoke.of.web","team":"web"},"namespace":"checks"},` +
		`"spec":{"activeDeadlineSeconds":90,"backoffLimit":1,"template":{"spec":{"restartPolicy":"Never"}},"ttlSecondsAfterFinished":86400}}`
	if got, _ := json.Marshal(first); string(got) != want {
		t.Errorf("the Job is %s\nwant %s", got, want)
	}
	names := map[string]string{}
	for what, test := range map[string]struct {
		change func(q *GateQuestion, target *GateTarget)
		same   bool
	}{
		"again":             {func(*GateQuestion, *GateTarget) {}, true},
		"a cluster joined":  {func(q *GateQuestion, _ *GateTarget) { q.Updated++ }, true},
		"another cluster":   {func(_ *GateQuestion, t *GateTarget) { t.Cluster = "b" }, true},
		"one has failed":    {func(_ *GateQuestion, t *GateTarget) { t.Job.Failed = 1 }, false},
		"another fleet":     {func(q *GateQuestion, _ *GateTarget) { q.Fleet = "theirs" }, false},
		"another placement": {func(q *GateQuestion, _ *GateTarget) { q.Placement.Name = "api" }, false},
		"another run":       {func(q *GateQuestion, _ *GateTarget) { q.Run = "web-2" }, false},
		"another stage":     {func(q *GateQuestion, _ *GateTarget) { q.Stage = "prod" }, false},
		"another gate":      {func(q *GateQuestion, _ *GateTarget) { q.Gate = "smoke" }, false},
		"other content":     {func(q *GateQuestion, _ *GateTarget) { q.Content = "c2" }, false},
		"a long name":       {func(q *GateQuestion, _ *GateTarget) { q.Gate = strings.Repeat("smoke-", 10) }, false},
	} {
		got := name(question(test.change))
		if other, known := names[got]; known && !test.same || len(got) > 63 {
			t.Errorf("%s: %s, as %s", what, got, other)
		}
		if names[got] = what; test.same && got != name(question(func(*GateQuestion, *GateTarget) {})) {
			t.Errorf("%s: the name is another one", what)
		}
	}
}

// A gate is due when it could have passed: a Job that still runs within its timeout is not late, and neither is the one after a failed one.
func TestGatesAreDue(t *testing.T) {
	updated := time.Unix(1_800_000_000, 0)
	job := api.RolloutGateSpec{Job: &api.JobGate{Timeout: "3h"}}
	for what, test := range map[string]struct {
		gate RunGate
		want time.Duration
	}{
		"a soak":                    {RunGate{Spec: api.RolloutGateSpec{Soak: &api.SoakGate{Duration: "2h"}}}, 2 * time.Hour},
		"answers for a time":        {RunGate{Spec: api.RolloutGateSpec{HTTP: &api.HTTPGate{GateSchedule: api.GateSchedule{Duration: "15m"}}}}, 15 * time.Minute},
		"one answer":                {RunGate{Spec: api.RolloutGateSpec{HTTP: &api.HTTPGate{}}}, 0},
		"a Job":                     {RunGate{Spec: job}, 3 * time.Hour},
		"a Job, after a failed one": {RunGate{Spec: job, Asked: GateAnswers{Jobs: []GateJob{{Cluster: "a", Failed: 1}, {Cluster: "b"}}}}, 6 * time.Hour},
	} {
		stage := RunStage{Updated: updated}
		if got := stage.Due(&test.gate).Sub(updated); got != test.want {
			t.Errorf("%s: due after %s, want %s", what, got, test.want)
		}
	}
}

// A record of a newer version may have a gate of a kind that this one does not know. It never passes, and is not late.
func TestAGateOfAKindThatIsNotKnown(t *testing.T) {
	stage, gate := RunStage{Updated: time.Unix(1_800_000_000, 0)}, RunGate{Name: "new"}
	if due, state := stage.Due(&gate), gate.State(); !due.IsZero() || state != GateStateUnknown {
		t.Errorf("%s, due at %v", state, due)
	}
}
