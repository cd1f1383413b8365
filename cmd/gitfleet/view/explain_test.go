package view

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An explanation has the decision, and below it one line for each part that led to it.
func TestExplanationText(t *testing.T) {
	const head = "crp/web  (PickN, web.yaml:1)\nSchedulingPolicyFulfilled: found all clusters\n"
	for name, test := range map[string]struct {
		of   status.ExplainedCluster
		want string
	}{
		"selected":     {status.ExplainedCluster{Selected: true, Reason: "picked", How: "bound before"}, "\n+ east is selected\n  picked\n  how           bound before\n"},
		"waiting":      {status.ExplainedCluster{Selected: true, Reason: "picked", Waits: "waits for cluster west"}, "\n+ east is selected\n  picked\n  rollout       waits for cluster west\n"},
		"not selected": {status.ExplainedCluster{Reason: "tainted"}, "\n- east is not selected\n  tainted\n"},
		"filters": {status.ExplainedCluster{Reason: "no", Filters: []placement.Verdict{{Filter: "health", Passed: true}, {Filter: "taints", Reason: "has the taint a"}, {Filter: "labels", Passed: true}}},
			"\n- east is not selected\n  no\n  passes        health, labels\n  fails         taints: has the taint a\n"},
		"one required term": {status.ExplainedCluster{Reason: "no", Required: []placement.TermVerdict{{Parts: []placement.Comparison{{Demand: "label env in (prod)", Found: "test"}, {Demand: "label a exists", Found: "1", Holds: true}}}}},
			"\n- east is not selected\n  no\n  required      no   label env in (prod): test\n  required      yes  label a exists: 1\n"},
		"several required terms": {status.ExplainedCluster{Reason: "yes", Required: []placement.TermVerdict{{Matches: true}, {}}}, "\n- east is not selected\n  yes\n  required 1    yes  any cluster\n  required 2    no\n"},
		"scores": {status.ExplainedCluster{Reason: "no", Preferred: []placement.Contribution{{Preference: "100 · env in (prod)", Points: -20, Reason: "it matches"}}, Tie: "west has the same score", Change: []string{"remove the taint a", "set env=prod"}},
			"\n- east is not selected\n  no\n  preferred     -20  of 100 · env in (prod): it matches\n  tie           west has the same score\n  to change     remove the taint a\n  to change     set env=prod\n"},
	} {
		t.Run(name, func(t *testing.T) {
			test.of.Cluster = "east"
			e := &status.Explanation{Placement: "crp/web", PlacementType: api.PickN, Origin: "web.yaml:1", Scheduled: metav1.Condition{Reason: "SchedulingPolicyFulfilled", Message: "found all clusters"}, Clusters: []status.ExplainedCluster{test.of}}
			if got := explanationText(e, output.Page{}); got != head+test.want {
				t.Errorf("%s\nwant\n%s", got, head+test.want)
			}
		})
	}
	if got := explanationText(&status.Explanation{Problems: []string{"selects nothing"}}, output.Page{}); !strings.HasSuffix(got, "\nwarning: selects nothing\n") {
		t.Errorf("with a warning: %q", got)
	}
}

// A constraint says how the choice would change the distribution, unless the cluster is not counted.
func TestSpreadText(t *testing.T) {
	for want, of := range map[string]placement.SpreadVerdict{
		`-1  of zone: the cluster has no such label, and is not counted`:                              {Constraint: "zone", Score: -1},
		`+2  of zone: "a" has 1, the least is 0 and the most 3; one more would change the skew by -1`: {Constraint: "zone", Score: 2, Labeled: true, Domain: "a", Count: 1, High: 3, Delta: -1},
		`+0  of zone: "a" has 1, the least is 0 and the most 1; one more would be too uneven`:         {Constraint: "zone", Labeled: true, Domain: "a", Count: 1, High: 1, Delta: 1, Violated: true},
	} {
		if got := spreadText(of); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// The flags of a checkout are refused for the daemon, which has a state of its own.
func TestExplainOfTheDaemonTakesNoFleet(t *testing.T) {
	cmd := NewExplain()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"crp/web", "--clusters", "clusters.yaml"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "--clusters and --current need --path") {
		t.Error(err)
	}
}
