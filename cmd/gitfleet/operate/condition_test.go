package operate

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The state is one that can be waited for, and an abbreviated hash is long enough to be unique.
func TestConditionIsValidated(t *testing.T) {
	for name, test := range map[string]struct {
		of   condition
		want string
	}{
		"available":     {condition{state: "available"}, ""},
		"applied":       {condition{state: "applied", commit: "A1B2C3D"}, ""},
		"another state": {condition{state: "ready"}, "--for=ready: use applied or available"},
		"too short":     {condition{state: "applied", commit: "a1b2c3"}, "--commit a1b2c3: needs at least 7 digits of the hash"},
		"of no state":   {condition{}, "--for=: use applied or available"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := test.of.validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	upper := condition{state: "applied", commit: "A1B2C3D"}
	if upper.validate(); upper.commit != "a1b2c3d" {
		t.Errorf("the commit is %s", upper.commit)
	}
}

// A commit is waited for while it may still come into force. The wait ends when it is refused, or
// when it was in force and is no longer in the history.
func TestEvaluateCommit(t *testing.T) {
	const wanted = "a1a1a1a1"
	commit := func(hash string) hub.Commit { return hub.Commit{Hash: hash} }
	bad := problem.List{{Origin: api.Origin{Path: "a.yaml", Line: 1}, Message: "bad", Severity: problem.Error}}
	for name, test := range map[string]struct {
		before          bool // the commit was in force before
		source          status.Source
		inForce, newest bool
		want            outcome
		message         string
	}{
		"in force":            {false, status.Source{InForce: commit(reports.FirstCommit)}, true, true, met, ""},
		"not pushed yet":      {false, status.Source{InForce: commit("0123456789")}, false, false, pending, "commit a1a1a1a1 is not in force yet: 01234567 is"},
		"no commit yet":       {false, status.Source{}, false, false, pending, "commit a1a1a1a1 is not in force yet: <none> is"},
		"after a restart":     {true, status.Source{}, false, false, pending, "no commit is in force yet"},
		"rewritten history":   {true, status.Source{InForce: commit(reports.BadCommit)}, false, false, impossible, "commit a1a1a1a1 is no longer in force: c3c3c3c3 is, which does not descend from it"},
		"refused":             {false, status.Source{InForce: commit("0123456789"), Newest: commit(reports.FirstCommit), Problems: bad}, false, true, impossible, "commit a1a1a1a1 is refused: a.yaml:1: bad"},
		"a later one refused": {false, status.Source{InForce: commit("0123456789"), Newest: commit(reports.BadCommit), Problems: bad}, false, true, pending, "commit c3c3c3c3 came after a1a1a1a1 and is refused: a.yaml:1: bad"},
		"another one refused": {false, status.Source{InForce: commit("0123456789"), Newest: commit(reports.BadCommit), Problems: bad}, false, false, pending, "commit a1a1a1a1 is not in force yet: 01234567 is"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &condition{commit: wanted, inForce: test.before}
			v, message := w.evaluateCommit(&waitReport{Report: &status.Report{Source: test.source}, inForce: test.inForce, newest: test.newest})
			if v != test.want || message != test.message {
				t.Errorf("%d: %q\nwant %d: %q", v, message, test.want, test.message)
			}
			if test.inForce && !w.inForce {
				t.Error("it is not remembered that the commit was in force")
			}
		})
	}
	any := &condition{}
	if v, message := any.evaluateCommit(&waitReport{Report: &status.Report{}}); v != pending || message != "no commit is in force yet" {
		t.Errorf("without --commit and without a commit: %d: %q", v, message)
	}
}

// A placement has what is waited for if its condition is true. It cannot have it while deletions
// are held, or if only permissions are missing.
func TestEvaluatePlacement(t *testing.T) {
	settled := func(s *reports.Fleet) { s.SaysAll() }
	for name, test := range map[string]struct {
		placement, state string
		happens          func(*reports.Fleet)
		want             outcome
		message          string
	}{
		"available":                    {"crp/web", "available", settled, met, "crp/web is available on 4 clusters at commit b2b2b2b2"},
		"applied":                      {"crp/web", "applied", settled, met, "crp/web is applied on 4 clusters at commit b2b2b2b2"},
		"too few clusters":             {"crp/spare", "available", settled, impossible, "crp/spare is not available: could not find all clusters needed"},
		"several":                      {"crp/web crp/tools", "applied", settled, met, "crp/web is applied on 4 clusters at commit b2b2b2b2"},
		"several, one of which cannot": {"crp/web crp/spare", "available", settled, impossible, "crp/spare is not available: could not find all"},
		"all":                          {"", "available", settled, impossible, "crp/spare is not available: could not find all"},
		"a member is gone":             {"crp/web", "available", func(s *reports.Fleet) { s.SaysAll(); s.Down("dal", "connection refused"); s.Turn(time.Second) }, pending, "crp/web: 3/4 of its clusters available; unreachable: dal: connection refused"},
		"under way":                    {"crp/web", "available", func(s *reports.Fleet) { s.Turn(time.Second) }, pending, "crp/web: 0/4 of its clusters available; waiting: "},
		"an unknown one":               {"crp/wbe", "available", settled, invalid, "there is no placement crp/wbe at commit b2b2b2b2"},
		"applied only": {"crp/web", "applied", func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
			s.Turn(time.Second)
		}, met, "crp/web is applied on 4 clusters"},
		"not available yet": {"crp/web", "available", func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
			s.Turn(time.Second)
		}, pending, "crp/web: 3/4 of its clusters available; progressing: dal: ConfigMap/web/one: 0 of 2 replicas available"},
		"deletions held": {"crp/web", "available", func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.BlockedDeletion("old", "too much"))
			s.Turn(time.Second)
		}, impossible, "crp/web is not available: on ber: 1 deletion is blocked: ConfigMap/web/old: too much"},
		"permissions missing":                    {"crp/web", "available", func(s *reports.Fleet) { *s = *reports.Away(t, false) }, impossible, "crp/web is not available: on dal: permissions are missing: list configmaps"},
		"permissions missing, and a member away": {"crp/web", "available", func(s *reports.Fleet) { *s = *reports.Away(t, true) }, pending, "; forbidden: dal: permissions are missing: list configmaps"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reports.Revised(t)
			test.happens(s)
			w := &condition{placements: strings.Fields(test.placement), state: test.state}
			v, message := w.evaluate(&waitReport{Report: s.Report, inForce: true, newest: true})
			if v != test.want || !strings.Contains(message, test.message) {
				t.Errorf("%d: %s\nwant %d: %s", v, message, test.want, test.message)
			}
		})
	}
	s := reports.Revised(t)
	s.SaysAll()
	later := &condition{placements: []string{"crp/web"}, state: "available", commit: "a1a1a1a"}
	if _, message := later.evaluate(&waitReport{Report: s.Report, inForce: true, newest: true}); message != "crp/web is available on 4 clusters at commit b2b2b2b2, which came after a1a1a1a" {
		t.Errorf("of a later commit: %s", message)
	}
	unplanned := *s.Report
	unplanned.Details = nil
	if v, message := later.evaluate(&waitReport{Report: &unplanned, inForce: true, newest: true}); v != pending || message != "crp/web is not planned yet" {
		t.Errorf("before it is planned: %d: %s", v, message)
	}
}

// The reason is the first object that fails, or the first condition that is not true.
func TestProblemOf(t *testing.T) {
	untrue := reports.Conditions("Scheduled", "!Applied")
	for name, test := range map[string]struct {
		of    *api.PerClusterPlacementStatus
		cause string
		want  string
	}{
		"no status":      {nil, "", "not applied yet"},
		"all true":       {&api.PerClusterPlacementStatus{Conditions: reports.Conditions("Scheduled")}, "", "not applied yet"},
		"a condition":    {&api.PerClusterPlacementStatus{Conditions: untrue}, "", "Applied is not true yet"},
		"without a text": {&api.PerClusterPlacementStatus{Conditions: []metav1.Condition{{Status: metav1.ConditionUnknown}}}, "", "not applied yet"},
		"an object":      {&api.PerClusterPlacementStatus{Conditions: untrue}, "ConfigMap/one: denied", "ConfigMap/one: denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemOf(&status.ClusterDetail{Cause: test.cause}, test.of); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// While several placements are under way, the progress is about the first and counts the others.
func TestProgressCountsPlacements(t *testing.T) {
	s := reports.Revised(t)
	s.Commit(reports.SecondCommit, "Grace Hopper", "Say two", reports.WithValue(reports.Manifests, "2")+"place zeal of tools\n")
	s.Turn(time.Second)
	_, _, now := progressOf(s.Report, nil, reports.SecondCommit)
	if !strings.HasPrefix(now, "crp/web: ") && !strings.HasPrefix(now, "crp/spare: ") || !strings.Contains(now, "more placements") {
		t.Errorf("progress: %s", now)
	}
	s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Error: "connection refused"})
	s.Turn(time.Second)
	if _, _, now := progressOf(s.Report, []string{"crp/web"}, reports.SecondCommit); !strings.HasSuffix(now, "; unreachable: dal: connection refused") {
		t.Errorf("progress with a member away: %s", now)
	}
}
