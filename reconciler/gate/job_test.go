package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A gate that runs a Job waits for it on each cluster. A failure on one counts whatever cannot be told of others, what cannot be told
// blocks, and where one has completed the Job is not asked for again.
func TestJobsAreJudged(t *testing.T) {
	condition := func(typ, status, reason, message string) string {
		return fmt.Sprintf("{startTime: '2026-01-01T00:00:00Z', conditions: [{type: %s, status: '%s', reason: %s, message: %s}]}", typ, status, reason, message)
	}
	const started = "{startTime: '2026-01-01T00:00:00Z'}"
	completed := condition("Complete", "True", "CompletionsReached", "Reached expected number of succeeded pods")
	failed := condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	for name, test := range map[string]struct {
		a, b string // the status of the Job on the clusters; or why that is not known
		want placement.GateVerdict
		text string
		jobs string
	}{
		"new":               {"{}", completed, placement.GateWaiting, "cluster a: the Job checks/", "[{a 0 false} {b 0 true}]"},
		"running":           {started, completed, placement.GateWaiting, " runs since 2026-01-01T00:00:00Z; Jobs completed: 1 of 2", "[{a 0 false} {b 0 true}]"},
		"completed":         {completed, completed, placement.GateGood, "Jobs completed: 2 of 2", "[{a 0 true} {b 0 true}]"},
		"failed":            {failed, started, placement.GateBad, " has failed: BackoffLimitExceeded: Job has reached the specified backoff limit; Jobs completed: 0 of 2", "[{a 1 false} {b 0 false}]"},
		"both":              {failed, failed, placement.GateBad, "cluster a: the Job checks/", "[{a 1 false} {b 1 false}]"},
		"too slow":          {condition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline"), completed, placement.GateBad, "DeadlineExceeded", "[{a 1 false} {b 0 true}]"},
		"will complete":     {condition("SuccessCriteriaMet", "True", "CompletionsReached", "a"), completed, placement.GateWaiting, "runs since", "[{a 0 false} {b 0 true}]"},
		"not true":          {condition("Complete", "False", "CompletionsReached", "a"), completed, placement.GateWaiting, "runs since", "[{a 0 false} {b 0 true}]"},
		"not known":         {"refused", completed, placement.GateUnknown, "cluster a: refused; Jobs completed: 1 of 2", "[{a 0 false} {b 0 true}]"},
		"failed, not known": {"refused", failed, placement.GateBad, "cluster b: the Job checks/", "[{a 0 false} {b 1 false}]"},
	} {
		got := runs(t, func(cluster string) (string, error) {
			status := map[string]string{"a": test.a, "b": test.b}[cluster]
			if !strings.HasPrefix(status, "{") {
				return "", errors.New(status)
			}
			return "{status: " + status + "}", nil
		}, placement.GateTarget{Cluster: "a"}, placement.GateTarget{Cluster: "b"})
		if jobs := fmt.Sprint(got.Jobs); got.Verdict != test.want || !strings.Contains(got.Text, test.text) || jobs != test.jobs {
			t.Errorf("%s: %s: %q, %s; want %s: %q, %s", name, got.Verdict, got.Text, jobs, test.want, test.text, test.jobs)
		}
	}
}

// runs asks once about a Job, with a function that returns the status and spec.suspend of the Job on a cluster.
func runs(t *testing.T, live func(cluster string) (string, error), targets ...placement.GateTarget) placement.GateAnswer {
	t.Helper()
	for i := range targets {
		targets[i].Job.Cluster = targets[i].Cluster
	}
	a := New(Config{Log: slog.New(slog.DiscardHandler), RunJob: func(_ context.Context, cluster string, job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		text, err := live(cluster)
		if err != nil {
			return nil, err
		}
		for field, value := range manifest(t, text).Object {
			job.Object[field] = value
		}
		return job, nil
	}})
	spec := &api.RolloutGateSpec{Job: &api.JobGate{Namespace: "checks", Template: json.RawMessage(`{"spec": {}}`)}}
	return a.ask(t.Context(), placement.GateQuestion{GateRound: placement.GateRound{Gate: "smoke"}, Spec: spec, Targets: targets})
}

// A Job is not run on a cluster on which it has completed, or of which is known that nothing can be written there.
func TestJobsThatAreNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		targets []placement.GateTarget
		want    placement.GateVerdict
		text    string
		asked   string
	}{
		"no cluster":    {nil, placement.GateUnknown, "the stage has no cluster with the placement", ""},
		"completed":     {[]placement.GateTarget{{Cluster: "a", Job: placement.GateJob{Failed: 1, Completed: true}}}, placement.GateGood, "Jobs completed: 1 of 1", ""},
		"unreachable":   {[]placement.GateTarget{{Cluster: "a", Unknown: "it is not reachable"}}, placement.GateUnknown, "cluster a: it is not reachable", ""},
		"one of them":   {[]placement.GateTarget{{Cluster: "a", Job: placement.GateJob{Completed: true}}, {Cluster: "b"}}, placement.GateWaiting, "has not started yet; Jobs completed: 1 of 2", "b"},
		"being deleted": {[]placement.GateTarget{{Cluster: "c"}}, placement.GateWaiting, "is being deleted, and is created again then", "c"},
		"suspended":     {[]placement.GateTarget{{Cluster: "d"}}, placement.GateWaiting, "is suspended", "d"},
	} {
		asked := ""
		got := runs(t, func(cluster string) (string, error) {
			asked += cluster
			return map[string]string{"b": "{}", "c": "{metadata: {namespace: checks, name: smoke, deletionTimestamp: '2026-01-01T00:00:00Z'}}", "d": "{spec: {suspend: true}}"}[cluster], nil
		}, test.targets...)
		if got.Verdict != test.want || !strings.Contains(got.Text, test.text) || asked != test.asked {
			t.Errorf("%s: %s: %q, asked %q; want %s: %q, asked %q", name, got.Verdict, got.Text, asked, test.want, test.text, test.asked)
		}
	}
}
