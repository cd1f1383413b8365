package overview

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The state of a placement is the first that applies, in the order of docs/reading-status.md.
func TestStateOfAPlacement(t *testing.T) {
	order := []struct {
		want string
		of   func(p *Placement)
	}{
		{"stopped", func(p *Placement) { p.Stopped = "east" }},
		{"failed", func(p *Placement) { p.Clusters[status.StateFailed] = 1 }},
		{"not scheduled", func(p *Placement) { p.ScheduleProblem = "too few clusters" }},
		{"deletions blocked", func(p *Placement) { p.Clusters[status.StateDeletionsBlocked] = 1 }},
		{"forbidden", func(p *Placement) { p.Clusters[status.StateForbidden] = 1 }},
		{"unreachable", func(p *Placement) { p.Clusters[status.StateUnreachable] = 1 }},
		{"rolling out", func(p *Placement) { p.Clusters[status.StateWaiting], p.Clusters[status.StateRolling] = 1, 1 }},
		{"applying", func(p *Placement) { p.Clusters[status.StateWaiting], p.Clusters[status.StateRolling] = 0, 1 }},
		{"progressing", func(p *Placement) { p.Clusters[status.StateRolling], p.Clusters[status.StateProgressing] = 0, 1 }},
		{"removing", func(p *Placement) { p.Clusters[status.StateProgressing], p.Clusters[status.StateRemoving] = 0, 1 }},
		{"available", func(p *Placement) { p.Clusters[status.StateRemoving], p.Clusters[status.StateAvailable] = 0, 1 }},
	}
	for i, test := range order {
		t.Run(test.want, func(t *testing.T) {
			p := &Placement{Clusters: map[State]int{}}
			for _, later := range slices.Backward(order[i:]) {
				later.of(p)
			}
			if got, _ := p.state(); got != test.want {
				t.Errorf("%s, want %s of %+v", got, test.want, p)
			}
		})
	}
	for want, clusters := range map[string]map[State]int{
		"nowhere": {}, "waiting": {status.StateWaiting: 1, status.StateAvailable: 3}, "rolling out": {status.StateWaiting: 1, status.StateProgressing: 1},
	} {
		if got, _ := (&Placement{Clusters: clusters}).state(); got != want {
			t.Errorf("%s, want %s of %v", got, want, clusters)
		}
	}
}

// A sentence about a placement gives the most important reason: a failure, then what is not
// available, then what waits.
func TestSentence(t *testing.T) {
	because := func(why string) []Reason {
		return []Reason{{[]string{"east", "west"}, why}, {[]string{"north"}, "another"}}
	}
	const share = "crp/web: 1/3 of its clusters available"
	for name, test := range map[string]struct {
		of   Placement
		want string
	}{
		"nothing else":               {Placement{}, share},
		"failed":                     {Placement{Failed: because("denied"), Progressing: because("starting"), Waiting: because("later")}, share + "; failed: east, west: denied"},
		"progressing":                {Placement{Progressing: because("starting"), Waiting: because("later")}, share + "; progressing: east, west: starting"},
		"waiting":                    {Placement{Waiting: because("later"), ScheduleProblem: "too few"}, share + "; waiting: east, west: later; too few"},
		"not scheduled as it should": {Placement{ScheduleProblem: "too few"}, share + "; too few"},
	} {
		t.Run(name, func(t *testing.T) {
			test.of.Name, test.of.Clusters, test.of.Missing = "crp/web", map[State]int{status.StateAvailable: 1, status.StateFailed: 1}, 1
			if got := test.of.Sentence(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Clusters with the same reason are listed together.
func TestNewPlacement(t *testing.T) {
	s := &api.PlacementStatus{
		Conditions: []metav1.Condition{{Type: "ClusterResourcePlacement" + api.Scheduled, Status: metav1.ConditionFalse, Message: "could not find all clusters"}},
		PlacementStatuses: []api.PerClusterPlacementStatus{
			{ClusterName: "f"}, {ClusterName: "g"}, {}, {},
		},
	}
	d := &status.Detail{Placement: "crp/web", Origin: "web.yaml:1", Stopped: "a", Proven: "c0", Clusters: []status.ClusterDetail{
		{Cluster: "a", Commit: "c2", Failure: "denied"}, {Cluster: "b", Commit: "c2", Failure: "denied"}, {Cluster: "c", Commit: "c1", Waits: "waits for a"},
		{Cluster: "d", Commit: "c1", Waits: "waits for a"}, {Cluster: "e", Commit: "c1", Waits: "waits for b"},
		{Cluster: "f", Commit: "c2", Applied: true, Cause: "ConfigMap/web/one: starting"}, {Cluster: "g", Commit: "c2", Applied: true}, {Cluster: "h", Available: true, BlockedDeletions: []string{"ConfigMap/web/x: too much"}},
	}}
	members := status.MemberStates{}
	for _, c := range d.Clusters {
		members[c.Cluster] = status.StateAvailable
	}
	p := NewPlacement(d, s, members)
	reasons := func(all []Reason) string {
		var parts []string
		for _, r := range all {
			parts = append(parts, strings.Join(r.Clusters, ",")+": "+r.Reason)
		}
		return strings.Join(parts, " | ")
	}
	for what, test := range map[string]struct{ got, want string }{
		"failed":      {reasons(p.Failed), "a,b: denied"},
		"waiting":     {reasons(p.Waiting), "c,d: waits for a | e: waits for b"},
		"progressing": {reasons(p.Progressing), "f: ConfigMap/web/one: starting"},
		"held":        {reasons(p.BlockedDeletions), "h: " + BlockedText("crp/web", []string{"ConfigMap/web/x: too much"})},
		"commits":     {strings.Join(p.Commits, " "), "c2 c1"},
		"trouble":     {p.ScheduleProblem, "could not find all clusters"},
		"share":       {p.count(), "0/10"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", what, test.got, test.want)
		}
	}
	if gone := NewPlacement(d, nil, members); gone.Missing != 0 || gone.ScheduleProblem != "" {
		t.Errorf("removed from the repository: %+v", gone)
	}
	evicted := &status.Detail{Clusters: []status.ClusterDetail{{Cluster: "a"}, {Cluster: "b"}}, Absent: []status.Absence{{Cluster: "a", Reason: "the placement is being evicted from it"}, {Cluster: "c", Reason: "it is unreachable"}}}
	if p := NewPlacement(evicted, nil, members); p.count() != "0/3" || len(p.Absent) != 2 {
		t.Errorf("a cluster that a placement is evicted from is counted twice: %s, %+v", p.count(), p.Absent)
	}
}

func TestBlockedText(t *testing.T) {
	advice := "; " + conditions.DeletionAdvice("crp/web")
	for want, held := range map[string][]string{
		"1 deletion is blocked: ConfigMap/web/a: too much" + advice:                {"ConfigMap/web/a: too much"},
		"3 deletions are blocked: ConfigMap/web/a: too much (and 2 more)" + advice: {"ConfigMap/web/a: too much", "b", "c"},
	} {
		if got := BlockedText("crp/web", held); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The exit code of status is 1 for what a user has to see to, and not for what is in progress.
func TestNeedsAttention(t *testing.T) {
	for name, test := range map[string]struct {
		of   Overview
		want bool
	}{
		"nothing":                 {Overview{}, false},
		"a refused commit":        {Overview{Refused: &Refused{Problems: []string{"a.yaml:1: bad"}}}, true},
		"a commit being read":     {Overview{Waiting: &Waiting{}}, false},
		"no repository":           {Overview{Source: Source{Failures: 1}}, true},
		"a stopped rollout":       {Overview{Placements: []Placement{{}, {Stopped: "east"}}}, true},
		"a placement in progress": {Overview{Placements: []Placement{{Clusters: map[State]int{status.StateRolling: 1}}}}, false},
		"a placement in trouble":  {Overview{Placements: []Placement{{}, {NeedsAttention: true}}}, true},
		"held deletions":          {Overview{BlockedDeletions: []Deletions{{}}}, true},
		"refused deletions":       {Overview{FailedDeletions: []Deletions{{}}}, true},
		"deletions that linger":   {Overview{Lingering: []Deletions{{}}}, false},
		"an unreachable member":   {Overview{Members: Members{NotReady: []Member{{State: status.StateUnreachable}}}}, true},
		"a forbidden member":      {Overview{Members: Members{NotReady: []Member{{State: status.StateUnreachable}, {State: status.StateForbidden}}}}, true},
		"a foreign member":        {Overview{Members: Members{NotReady: []Member{{State: status.StateForeign}}}}, true},
		"outdated credentials":    {Overview{Members: Members{Outdated: []Member{{State: status.StateAvailable}}}}, true},
		"a forge that is down":    {Overview{Forge: []string{"no answer"}}, false},
		"drift":                   {Overview{Drifts: []Drift{{State: api.DriftContested}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.of.NeedsAttention(); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// Only differences that exist now are listed as drift.
func TestOverviewHasPresentDriftOnly(t *testing.T) {
	for state, want := range map[api.DriftState]bool{
		api.DriftStanding: true, api.DriftHeld: true, api.DriftContested: true, api.DriftForeign: true, api.DriftAltered: true,
		api.DriftRepaired: false, api.DriftIgnored: false, api.DriftEnded: false,
	} {
		d := status.Drift{Placement: "crp/web", Cluster: "east", State: state}
		if o := New(&status.Report{Drifts: []status.Drift{d}}); (len(o.Drifts) == 1) != want {
			t.Errorf("drift that is %s: %+v", state, o.Drifts)
		}
	}
	altered := NewDrift(&status.Drift{State: api.DriftAltered, By: nil})
	if !slices.Equal(altered.By, []string{"the API server or an admission webhook, at each apply"}) {
		t.Errorf("who alters an object: %q", altered.By)
	}
}

// A commit that is not in force is refused if there are problems, and being read otherwise.
func TestCommitsInTheSummary(t *testing.T) {
	now := reports.Noon
	first := hub.Commit{Hash: reports.FirstCommit, Author: "Ada Lovelace <ada@example.com>", Subject: "Bring the web", Time: now.Add(-time.Hour)}
	second := hub.Commit{Hash: reports.SecondCommit, Subject: "Break it", Time: now.Add(-time.Minute)}
	problems := func(n int) (all problem.List) {
		for i := range n {
			all = append(all, problem.Problem{Origin: api.Origin{Path: "a.yaml", Line: i + 1}, Message: "bad", Severity: problem.Error})
		}
		return all
	}
	for name, test := range map[string]struct {
		of   status.Source
		all  bool
		want []string
		not  string
	}{
		"none yet":      {status.Source{}, false, []string{"in force none yet"}, "refused"},
		"in force":      {status.Source{InForce: first, Newest: first, Since: now.Add(-2 * time.Minute)}, false, []string{"in force a1a1a1a1 Ada Lovelace, 60m ago, in force for 2m Bring the web"}, "ada@example.com"},
		"with warnings": {status.Source{InForce: first, Newest: first, Warnings: problems(1)}, false, []string{"warning: a.yaml:1: bad"}, "refused"},
		"being read":    {status.Source{InForce: first, Newest: second}, false, []string{"newest b2b2b2b2 unknown author, 60s ago, being read Break it"}, "refused"},
		"fetched":       {status.Source{InForce: first, Newest: second, Fetches: []string{"oci://charts/web:^1"}}, false, []string{"being read Break it it waits until its remote bases and charts are fetched: oci://charts/web:^1"}, "refused"},
		"refused":       {status.Source{InForce: first, Newest: second, Problems: problems(1)}, false, []string{"refused b2b2b2b2 unknown author, 60s ago Break it a.yaml:1: bad"}, "being read"},
		"not readable":  {status.Source{InForce: first, Newest: second, LoadError: "no such path"}, false, []string{"refused b2b2b2b2", "no such path"}, "being read"},
		"many problems": {status.Source{InForce: first, Newest: second, Problems: problems(7)}, false, []string{"a.yaml:5: bad and 2 more problems; see gitfleet status --all"}, "a.yaml:6"},
		"one too many":  {status.Source{InForce: first, Newest: second, Problems: problems(6)}, false, []string{"a.yaml:5: bad and 1 more problem; see gitfleet status --all"}, "a.yaml:6"},
		"all of them":   {status.Source{InForce: first, Newest: second, Problems: problems(7)}, true, []string{"a.yaml:7: bad"}, "more problems"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(strings.Fields(strings.Join(New(&status.Report{At: now, Source: test.of}).Text(output.Page{Width: 80}, now, test.all), "\n")), " ")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			if strings.Contains(text, test.not) {
				t.Errorf("%q is in %s", test.not, text)
			}
		})
	}
}

// The summary begins with the repository, the branch and the last poll, or with the error that
// prevents polling.
func TestRepositoryInTheSummary(t *testing.T) {
	now := reports.Noon
	for name, test := range map[string]struct {
		of   Overview
		want string
	}{
		"no repository":     {Overview{}, "no repository yet, polled never"},
		"a branch":          {Overview{Source: Source{URL: "https://git.example.com/fleet", Ref: "refs/heads/main", LastPoll: now.Add(-4 * time.Second)}}, "https://git.example.com/fleet branch main, polled 4s ago"},
		"a tag":             {Overview{Source: Source{URL: "https://git.example.com/fleet", Ref: "refs/tags/v1"}}, "https://git.example.com/fleet tag v1, polled never"},
		"another reference": {Overview{Source: Source{URL: "https://git.example.com/fleet", Ref: "commit 1a2b"}}, "https://git.example.com/fleet commit 1a2b, polled never"},
		"never read":        {Overview{Source: Source{Failures: 1, Error: "no such host"}}, "cannot be read: no such host (1 failed attempt, never read yet)"},
		"not read since":    {Overview{Source: Source{Failures: 3, Error: "no such host", LastSuccess: now}}, "cannot be read: no such host (3 failed attempts since 2026-03-01T12:00:00Z)"},
		"not accepted":      {Overview{Source: Source{Failures: 3, Error: "commit 1a2b: not signed", Refused: true}}, "not accepted: commit 1a2b: not signed"},
		"the forge":         {Overview{Forge: []string{"no answer for 5m"}}, "forge: no answer for 5m"},
	} {
		t.Run(name, func(t *testing.T) {
			if text := strings.Join(strings.Fields(strings.Join(test.of.Text(output.Page{Width: 200}, now, false), "\n")), " "); !strings.Contains(text, test.want) {
				t.Errorf("no %q in %s", test.want, text)
			}
		})
	}
}

// Deletions and suspensions have a line each, with the number of objects that are not named.
func TestDeletionsAndSuspensionsInTheSummary(t *testing.T) {
	one, three := Deletions{"crp/web", "east", []string{"ConfigMap/web/a: denied"}}, Deletions{"crp/web", "east", []string{"ConfigMap/web/a: denied", "b", "c"}}
	suspension := status.Suspension{Subject: "crp/web", By: "alice", Reason: "INC-1", Since: reports.Noon.Add(-time.Hour)}
	until := suspension
	until.Until = reports.Noon.Add(time.Hour)
	for name, test := range map[string]struct {
		of   Overview
		want string
	}{
		"held":             {Overview{BlockedDeletions: []Deletions{three}}, "Gitfleet-Allow-Delete: crp/web for 3 on east: ConfigMap/web/a: denied"},
		"refused":          {Overview{FailedDeletions: []Deletions{one}}, "they are retried crp/web on east: ConfigMap/web/a: denied"},
		"refused, several": {Overview{FailedDeletions: []Deletions{three}}, "crp/web on east: ConfigMap/web/a: denied (and 2 more; see gitfleet describe crp/web)"},
		"lingering":        {Overview{Lingering: []Deletions{one}}, "Deleted, and not gone yet crp/web on east"},
		"suspended":        {Overview{Suspended: []status.Suspension{suspension}}, "crp/web, for 60m by alice: INC-1"},
		"until":            {Overview{Suspended: []status.Suspension{until}}, "crp/web, for 60m until 2026-03-01 13:00 UTC by alice: INC-1"},
		"limited":          {Overview{Suspended: slices.Repeat([]status.Suspension{suspension}, 7)}, "and 2 more subjects; see gitfleet status --all"},
	} {
		t.Run(name, func(t *testing.T) {
			if text := strings.Join(strings.Fields(strings.Join(test.of.Text(output.Page{Width: 200}, reports.Noon, false), "\n")), " "); !strings.Contains(text, test.want) {
				t.Errorf("no %q in %s", test.want, text)
			}
		})
	}
}
