package review

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The status of a rollout counts the clusters that the commit changes, and those that have all of it.
func TestProgressOfARollout(t *testing.T) {
	detail := func(clusters ...status.ClusterDetail) *status.Detail {
		return &status.Detail{Placement: "crp/web", Clusters: clusters}
	}
	absent := func(rollout *status.Rollout, clusters ...string) *status.Detail {
		d := &status.Detail{Placement: "crp/web", Rollout: rollout}
		for _, name := range clusters {
			d.Absent = append(d.Absent, status.Absence{Cluster: name, Reason: "it has not answered yet"})
		}
		return d
	}
	done := status.ClusterDetail{Cluster: "a", Commit: "new", Applied: true, Available: true}
	with := func(change func(*status.ClusterDetail)) status.ClusterDetail {
		c := done
		change(&c)
		return c
	}
	other := with(func(c *status.ClusterDetail) { c.Cluster = "b" })
	for name, test := range map[string]struct {
		details []*status.Detail
		want    string
	}{
		"no placement":              {nil, "success: no cluster changes"},
		"of another commit":         {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Commit = "old" }))}, "success: no cluster changes"},
		"available":                 {[]*status.Detail{detail(done, other)}, "success: 2 of 2 clusters"},
		"not available yet":         {[]*status.Detail{detail(other, with(func(c *status.ClusterDetail) { c.Available = false }))}, "pending: 1 of 2 clusters"},
		"behind":                    {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Commit, c.Behind = "old", 1 }))}, "pending: 0 of 1 cluster"},
		"waiting for its turn":      {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Commit, c.Waits = "old", "maxUnavailable" }))}, "pending: 0 of 1 cluster"},
		"being removed":             {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Commit, c.Removing = "old", true }))}, "pending: 0 of 1 cluster"},
		"one of two placements":     {[]*status.Detail{detail(done), detail(with(func(c *status.ClusterDetail) { c.Available = false }))}, "pending: 0 of 1 cluster"},
		"the other of two":          {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Available = false })), detail(done)}, "pending: 0 of 1 cluster"},
		"suspended, and has it":     {[]*status.Detail{detail(other, with(func(c *status.ClusterDetail) { c.Suspended = "by its annotation" }))}, "success: 2 of 2 clusters"},
		"suspended, and has it not": {[]*status.Detail{detail(other, with(func(c *status.ClusterDetail) { c.Suspended, c.Available = "x", false }))}, "pending: 1 of 2 clusters, 1 suspended"},
		"suspended for two":         {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Suspended, c.Waits = "x", "x" })), detail(with(func(c *status.ClusterDetail) { c.Suspended, c.Waits = "x", "x" }))}, "pending: 0 of 1 cluster, 1 suspended"},
		"does not answer":           {[]*status.Detail{detail(other, with(func(c *status.ClusterDetail) { c.Cluster = "gone" }))}, "pending: 1 of 2 clusters"},
		"no member has answered":    {[]*status.Detail{absent(&status.Rollout{}, "c", "d")}, "pending: 0 of 2 clusters; crp/web: not on c: it has not answered yet"},
		"one has not answered":      {[]*status.Detail{detail(done), absent(&status.Rollout{}, "c")}, "pending: 1 of 2 clusters; crp/web: not on c: it has not answered yet"},
		"absent since before":       {[]*status.Detail{absent(&status.Rollout{Finished: reports.Noon}, "c")}, "success: no cluster changes"},
		"no members":                {[]*status.Detail{{Placement: "crp/web", NoMembers: true, Rollout: &status.Rollout{}}}, "pending: 0 of 0 clusters; crp/web: the commit has no MemberCluster, so that nothing can be placed anywhere"},
		"deletions are held":        {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.BlockedDeletions = []string{"Namespace/web: x", "Namespace/db: x"} }))}, "pending: 1 of 1 cluster; 2 deletions blocked until a commit allows them"},
		"held of an earlier commit": {[]*status.Detail{detail(with(func(c *status.ClusterDetail) { c.Commit, c.BlockedDeletions = "old", []string{"Namespace/web: x"} }))}, "pending: 0 of 0 clusters; 1 deletion blocked until a commit allows them"},
		"failed": {[]*status.Detail{detail(other, with(func(c *status.ClusterDetail) { c.Available, c.Failure = false, "image not found\nthe second line" })), detail(with(func(c *status.ClusterDetail) { c.Failure = "another" }))},
			"failure: 1 of 2 clusters; crp/web on a: image not found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout{cfg: &Config{}}
			report := &status.Report{Details: test.details}
			for _, name := range []string{"a", "b"} {
				report.Clusters = append(report.Clusters, reports.MemberCluster(name, true))
			}
			s := r.status(report, "new")
			if got := string(s.State) + ": " + s.Description; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// What fulfilment does not count as done is no success, although no cluster changes: nothing is decided while inventories are
// awaited, or selectors are invalid.
func TestUndecidedPlacementsAreNoSuccess(t *testing.T) {
	before := status.ClusterDetail{Cluster: "a", Commit: "old", Applied: true, Available: true}
	finished := &status.Rollout{Finished: reports.Noon}
	for name, test := range map[string]struct {
		scheduled metav1.ConditionStatus
		detail    status.Detail
		want      string
	}{
		"inventories are awaited":        {metav1.ConditionUnknown, status.Detail{}, "pending: 0 of 0 clusters; crp/web: the reason"},
		"a selector is invalid":          {metav1.ConditionFalse, status.Detail{Rollout: finished, Clusters: []status.ClusterDetail{before}}, "pending: 0 of 0 clusters; crp/web: the reason"},
		"one of a new placement is":      {metav1.ConditionFalse, status.Detail{}, "pending: 0 of 0 clusters; crp/web: the reason"},
		"scheduled and as it was":        {metav1.ConditionTrue, status.Detail{Rollout: finished, Clusters: []status.ClusterDetail{before}}, "success: no cluster changes"},
		"scheduled, and asks for none":   {metav1.ConditionTrue, status.Detail{}, "success: no cluster changes"},
		"never there, and cannot be yet": {metav1.ConditionTrue, status.Detail{Absent: []status.Absence{{Cluster: "b", Reason: "it does not answer"}}}, "pending: 0 of 1 cluster; crp/web: not on b: it does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout{cfg: &Config{}}
			test.detail.Placement = "crp/web"
			web := &api.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			web.Status.Conditions = []metav1.Condition{{Type: "ClusterResourcePlacement" + api.Scheduled, Status: test.scheduled, Message: "the reason"}}
			s := r.status(&status.Report{
				Details: []*status.Detail{&test.detail}, Placements: []*api.ClusterResourcePlacement{web},
				Clusters: []*api.MemberCluster{reports.MemberCluster("a", true)},
			}, "new")
			if got := string(s.State) + ": " + s.Description; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A placement that was short of clusters before does not keep a commit pending that does not change it.
func TestAnUnrelatedPlacementKeepsNoCommitPending(t *testing.T) {
	on := func(placement, cluster, commit string) *status.Detail {
		return &status.Detail{Placement: placement, Short: 1, Rollout: &status.Rollout{}, Clusters: []status.ClusterDetail{{Cluster: cluster, Commit: commit, Applied: true, Available: true}}}
	}
	for name, test := range map[string]struct {
		short *status.Detail
		since time.Duration // from when the commit came into force
		want  string
	}{
		"short before":                    {on("crp/web", "a", "old"), -time.Hour, "success: 1 of 1 cluster"},
		"short before, and nowhere":       {&status.Detail{Placement: "crp/web", Short: 3}, -time.Hour, "success: 1 of 1 cluster"},
		"short before, changed by it":     {on("crp/web", "a", "new"), -time.Hour, "pending: 2 of 2 clusters; crp/web: found 1 of 2"},
		"short since, by it or a cluster": {on("crp/web", "a", "old"), 0, "pending: 1 of 1 cluster; crp/web: found 1 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			since := reports.Noon.Add(300 * time.Millisecond)
			report := &status.Report{Source: status.Source{Since: since}, Details: []*status.Detail{test.short, on("crp/db", "b", "new")}}
			for _, d := range []string{"web", "db"} {
				p := &api.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: d}}
				c := metav1.Condition{Type: "ClusterResourcePlacement" + api.Scheduled, Status: metav1.ConditionTrue}
				if d == "web" {
					c.Status, c.Message, c.LastTransitionTime = metav1.ConditionFalse, "found 1 of 2", metav1.NewTime(since.Add(test.since).Truncate(time.Second))
				}
				p.Status.Conditions = []metav1.Condition{c}
				report.Placements = append(report.Placements, p)
			}
			report.Details[1].Short = 0
			for _, name := range []string{"a", "b"} {
				report.Clusters = append(report.Clusters, reports.MemberCluster(name, true))
			}
			s := (&rollout{cfg: &Config{}}).status(report, "new")
			if got := string(s.State) + ": " + s.Description; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A commit that is refused has the reason, beside the status of the commit in force.
func TestARefusedCommitIsShown(t *testing.T) {
	for name, test := range map[string]struct {
		problems  problem.List
		loadError string
		want      string
	}{
		"problems":       {problem.List{{Severity: problem.Error, Message: "broken"}}, "", "failure: refused: broken"},
		"not loaded":     {nil, "too many files", "failure: refused: too many files"},
		"not loaded yet": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulatedFleet(t)
			s.commit(hash("b"), files(t, small))
			f := newForge()
			s.report.Source.Newest.Hash, s.report.Source.Problems, s.report.Source.LoadError = hash("c"), test.problems, test.loadError
			v := newReviewer(f, fakeSource{})
			s.step(v)
			s.step(v) // it is set once
			if got := strings.Join(f.of(hash("c"), rolloutContext), ", "); got != test.want {
				t.Errorf("the status is %q, want %q", got, test.want)
			}
			if got := f.of(hash("b"), rolloutContext); len(got) != 1 || got[0] != "success: 3 of 3 clusters" {
				t.Errorf("that of the commit in force is %q", got)
			}
		})
	}
}

// With only plans or only rollouts switched on, the forge gets no requests about the other.
func TestPlansAndRolloutsAreSwitchedOnApart(t *testing.T) {
	for name, test := range map[string]struct {
		plans, rollouts bool
		wantPlan        int
		wantRollout     int
	}{
		"both": {true, true, 1, 1}, "plans": {true, false, 1, 0}, "rollouts": {false, true, 0, 1}, "neither": {false, false, 0, 0},
	} {
		s, f, source := planned(t, 1)
		v := newReviewer(f, source)
		v.cfg.Plans, v.cfg.Rollouts = test.plans, test.rollouts
		s.step(v)
		if got := len(f.of(f.Pulls[0].Head, planContext)); got != test.wantPlan || f.writes != test.wantPlan || f.lists != test.wantPlan {
			t.Errorf("%s: %d statuses, %d comments, %d lists", name, got, f.writes, f.lists)
		}
		if got := len(f.of(hash("b"), rolloutContext)); got != test.wantRollout {
			t.Errorf("%s: %d rollout statuses", name, got)
		}
	}
}

// Between two plans there is the configured pause, and new heads are planned before older ones.
func TestPlansAreSpacedOut(t *testing.T) {
	s, f, source := planned(t, 1, 2)
	v := newReviewer(f, source)
	v.cfg.Pause, v.cfg.Rollouts, v.report = 5*time.Second, false, s.report
	if wait := v.pass(t.Context(), s.now); wait != v.cfg.Pause || len(f.Comments[2]) != 1 || len(f.Comments[1]) != 0 {
		t.Errorf("after the first plan the next pass is in %s; comments are %v", wait, f.Comments)
	}
	if wait := v.pass(t.Context(), s.now.Add(2*time.Second)); wait != 3*time.Second || len(f.Comments[1]) != 0 {
		t.Errorf("during the pause the next pass is in %s; comments are %v", wait, f.Comments)
	}
	if wait := v.pass(t.Context(), s.now.Add(5*time.Second)); wait != v.cfg.Interval || len(f.Comments[1]) != 1 {
		t.Errorf("after the last plan the next pass is in %s; comments are %v", wait, f.Comments)
	}
}

// panickingOnce is a file system that panics when its first file is opened.
type panickingOnce struct {
	fs.FS
	panicked *bool
}

func (p panickingOnce) Open(name string) (fs.File, error) {
	if !*p.panicked {
		*p.panicked = true
		panic("index out of range")
	}
	return p.FS.Open(name)
}

// A panic while a pull request is planned fails its plan only, and is not published.
func TestAPanicFailsOnePlan(t *testing.T) {
	s, f, source := planned(t, 1, 2)
	v := newReviewer(f, source)
	v.cfg.Attempt = func(commit string) (func(), error) {
		return func() {}, map[bool]error{true: errors.New("it crashed gitfleet before")}[commit == f.Pulls[0].Head]
	}
	source.merged[f.Pulls[1].Head] = panickingOnce{source.merged[f.Pulls[1].Head], new(bool)}
	for range 4 {
		s.step(v)
	}
	for i, want := range []string{"error: not planned: it crashed gitfleet before", "error: not planned: internal error of gitfleet; see its log"} {
		if got := withoutAwaited(f.of(f.Pulls[i].Head, planContext)); len(got) != 1 || got[0] != want {
			t.Errorf("number %d has %q, want %q", i+1, got, want)
		}
	}
}

// Only an open pull request to the tracked branch has a preview.
func TestWhichPullRequestsHaveAPreview(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*forge.PullRequest)
		want   string
	}{
		"merged":            {func(pr *forge.PullRequest) { pr.State = forge.Merged }, "pull request 1 is merged"},
		"closed":            {func(pr *forge.PullRequest) { pr.State = forge.Closed }, "pull request 1 is closed"},
		"to another branch": {func(pr *forge.PullRequest) { pr.Base = "release" }, "pull request 1 is to the branch release; only pull requests to main are planned"},
	} {
		s, f, source := planned(t, 1)
		test.change(f.Pulls[0])
		v := newReviewer(f, source)
		v.report = s.report
		if _, _, err := v.previewOf(t.Context(), 1); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
