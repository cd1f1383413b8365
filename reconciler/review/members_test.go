package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// fakeMembers are members with given results of trials, by cluster.
type fakeMembers struct {
	mu      sync.Mutex
	asked   []Trial
	answers map[string][]member.Change
	silent  map[string]bool
}

func (f *fakeMembers) try(_ context.Context, t Trial) ([]member.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, t)
	if f.silent[t.Cluster.Name] {
		return nil, errors.New("dial tcp 10.0.0.1:6443: no route to host")
	}
	return f.answers[t.Cluster.Name], nil
}

// stepTwice makes a reviewer plan, and write the plan again when the trials have finished.
func (s *simulatedFleet) stepTwice(v *Reviewer) {
	s.t.Helper()
	s.step(v)
	if !v.trying {
		s.t.Fatal("no member is asked")
	}
	v.recordAnswers(<-v.tried)
	s.step(v)
}

// The results of trials are added to the same comment, and decide the status. They are written
// once.
func TestMembersAnswerAfterTheComment(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, "clusters a b c\nnamespace web\nconfigmap web/one v1\nplace web of web\n"))
	merged := files(t, "clusters a b c\nnamespace web\nconfigmap web/one v2\nconfigmap web/two v1\nplace web of web\n")
	web := api.PlacementKey{Name: "web"}
	one, two := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, api.ID{Kind: "ConfigMap", Namespace: "web", Name: "two"}
	denied := member.Change{ID: two, Placement: web, Effect: member.Fails, Message: "denied by @policy"}
	members := &fakeMembers{
		answers: map[string][]member.Change{
			"a": {{ID: one, Placement: web, Effect: member.Changes, Diffs: []api.Difference{
				{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInHub: "v2", ValueInMember: "theirs-1"}, By: []api.Actor{{Manager: "kubectl", Operation: "Update"}}},
			}}, denied},
			"b": {denied},
		},
		silent: map[string]bool{"c": true},
	}
	f := newForge(pullRequest(1, hash("1")))
	source := fakeSource{merged: map[string]fs.FS{hash("1"): merged}}
	v := newReviewer(f, source)
	v.cfg.Try = members.try
	s.step(v)
	if body := f.Comments[1][0].Body; !strings.Contains(body, "**On the members** (server-side dry run)\n\nThe dry run is in progress; its results will be here.\n") {
		t.Errorf("at first the comment is\n%s", body)
	}
	v.recordAnswers(<-v.tried)
	s.step(v)
	want := `**On the members** (server-side dry run)

4 objects tried on 2 clusters: 2 refused, 1 with fields of others. No answer from c.

- ` + "`ConfigMap/web/two` of `crp/web` on `a`, `b`: the API server refuses it: `denied by @policy`" + `
- ` + "`ConfigMap/web/one` of `crp/web` on `a`: it sets fields that others own: `/data/value of kubectl (Update)`" + `
`
	if body := f.Comments[1][0].Body; !strings.Contains(body, want) || strings.Contains(body, "theirs-1") || strings.Contains(body, "10.0.0.1") || f.writes != 2 {
		t.Errorf("after %d writes the comment is\n%s", f.writes, body)
	}
	statuses := []string{"pending: 2 objects on 3 clusters; asking members", "failure: 2 objects refused on the members"}
	if got := f.of(hash("1"), planContext); !slices.Equal(got, statuses) {
		t.Errorf("statuses are %q, want %q", got, statuses)
	}
	for _, asked := range members.asked {
		if len(asked.Works) != 1 || len(asked.Works[0].Manifests) != 3 || len(asked.Targets) != 2 {
			t.Errorf("%s is asked about %v", asked.Cluster.Name, asked.Targets)
		}
	}

	v = newReviewer(f, source) // after a restart
	v.cfg.Try = members.try
	s.stepTwice(v)
	if got := f.of(hash("1"), planContext); f.writes != 2 || !slices.Equal(got, append(statuses, statuses[1])) {
		t.Errorf("after a restart there are %d writes and the statuses %q", f.writes, got)
	}
}

// A plan that is outdated when its trials finish is not written.
func TestAnswersToAnOutdatedPlan(t *testing.T) {
	s, f, source := planned(t, 1)
	v := newReviewer(f, source)
	v.cfg.Try = (&fakeMembers{}).try
	s.step(v)
	s.commit(hash("c"), files(t, small+"namespace other\n"))
	s.step(v)
	v.recordAnswers(<-v.tried)
	s.stepTwice(v)
	want := []string{"pending: 1 object on 3 clusters; asking members", "pending: stale: main or the fleet has changed since; planned again soon", "pending: 1 object on 3 clusters; asking members", "success: 1 object on 3 clusters"}
	if got := f.of(f.Pulls[0].Head, planContext); !slices.Equal(got, want) {
		t.Errorf("statuses\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// No trials are run for pull requests from forks, nor for plans that only delete.
func TestWhatMembersAreNotAsked(t *testing.T) {
	for name, test := range map[string]struct {
		fork   bool
		merged string
	}{
		"a fork":         {true, small + "configmap web/two v1\n"},
		"only deletions": {false, "clusters a b c\nnamespace web\nplace web of web\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulatedFleet(t)
			s.commit(hash("b"), files(t, small))
			pr := pullRequest(1, hash("1"))
			pr.Fork = test.fork
			f := newForge(pr)
			members := &fakeMembers{}
			v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, test.merged)}})
			v.cfg.ForksLabel, v.cfg.Try = "plan", members.try
			s.step(v)
			f.Pulls[0].Labels = []string{"plan"}
			s.step(v)
			if v.trying || len(members.asked) > 0 || len(f.Comments[1]) != 1 || strings.Contains(f.Comments[1][0].Body, "On the members") {
				t.Errorf("%d members are asked; comments are %v", len(members.asked), f.Comments[1])
			}
		})
	}
}

// Trials are limited to few clusters and few objects: first one cluster of each group, and none
// that the pull request adds or connects differently.
func TestTrialsAreBounded(t *testing.T) {
	base := "clusters a b c d e\nnamespace web\nnamespace docks\nnamespace mill\nplace web of web\nplace docks of docks on d\nplace mill of mill on e\n"
	var merged strings.Builder
	merged.WriteString("clusters a b c d e new\nnamespace web\nnamespace docks\nnamespace mill\nconfigmap docks/one v1\nconfigmap mill/two v1\nplace web of web\nplace docks of docks on d\nplace mill of mill on e\n")
	for i := range maxTrialObjects + 5 {
		fmt.Fprintf(&merged, "configmap web/c%02d v1\n", i)
	}
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, base))
	after := files(t, merged.String())
	f := newForge(pullRequest(1, hash("1")))
	members := &fakeMembers{}
	v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): after}})
	v.cfg.Try = members.try
	s.stepTwice(v)
	var got []string
	for _, t := range members.asked {
		got = append(got, fmt.Sprintf("%s %d", t.Cluster.Name, len(t.Targets)))
	}
	slices.Sort(got)
	if want := []string{"a 50", "d 50", "e 50"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if body := f.Comments[1][0].Body; !strings.Contains(body, "150 objects tried on 3 clusters: 0 refused. 1") || !strings.Contains(body, " objects not tried.") {
		t.Errorf("the comment is\n%s", body[:min(len(body), 1000)])
	}
}

// No trials are run on clusters that do not answer according to the report. Another cluster
// with the same changes is used, if there is one.
func TestUnhealthyMembersAreNotAsked(t *testing.T) {
	s, f, source := planned(t, 1)
	s.ledger.Fold(protocol.ClusterSeen{Cluster: "a", At: s.now, Error: "no route to host"})
	s.report = status.Build(status.Input{Plan: s.report.Plan(), InForce: s.report.InForce, Ledger: s.ledger, Now: s.now, Source: s.report.Source})
	members := &fakeMembers{}
	v := newReviewer(f, source)
	v.cfg.Try = members.try
	s.stepTwice(v)
	var got []string
	for _, t := range members.asked {
		got = append(got, t.Cluster.Name)
	}
	slices.Sort(got)
	if want := []string{"b", "c"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if body := f.Comments[1][0].Body; !strings.Contains(body, "2 objects tried on 2 clusters: 0 refused. 1 object not tried.") {
		t.Errorf("the comment is\n%s", body)
	}
}

// A member that has not finished at the end of the time counts as not answering. The results of
// the others are used.
func TestAskingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newReviewer(newForge(), fakeSource{})
		hang := make(chan struct{})
		v.cfg.Try = func(_ context.Context, t Trial) ([]member.Change, error) {
			if t.Cluster.Name == "a" {
				<-hang
			}
			return nil, nil
		}
		r := &Result{}
		for _, name := range []string{"a", "b"} {
			r.trials = append(r.trials, Trial{Cluster: &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}}, Targets: make([]member.Target, 1)})
		}
		a := v.runTrials(t.Context(), r)
		if got := a.Summary(); got != "1 object tried on 1 cluster: 0 refused. No answer from a." {
			t.Errorf("the answers are %q", got)
		}
		close(hang)
	})
}

// An answer that comes together with the end of the time is used.
func TestAnAnswerAtTheEndOfTheTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		answer := make(chan Answer, 1)
		answer <- Answer{Cluster: "a"}
		if m, ok := receive(ctx, answer); !ok || m.Cluster != "a" {
			t.Fatal("the answer is lost")
		}
	}
}

// A slow member delays neither the reviewer, which stops it when it ends, nor previews, which
// run trials as well.
func TestMembersDoNotHoldUpTheReviewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, source := planned(t, 1)
		v := newReviewer(f, source)
		v.report = s.report
		v.cfg.Try = func(ctx context.Context, _ Trial) ([]member.Change, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		v.Observe(s.report)
		synctest.Wait()
		if f.writes != 1 {
			t.Errorf("%d comments while the members are asked", f.writes)
		}
		p, err := v.Preview(ctx, 1)
		if err != nil || p.Answers == nil || p.Answers.Summary() != "No answer from a, b, c." {
			t.Errorf("the preview has %+v, %v", p, err)
		}
		synctest.Wait()
		if got := f.of(f.Pulls[0].Head, planContext); len(got) != 2 || got[1] != "success: 1 object on 3 clusters" {
			t.Errorf("in the end the statuses are %q", got)
		}
		s.commit(hash("c"), files(t, small+"namespace other\n"))
		v.Observe(s.report)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || v.trying {
			t.Errorf("it ends with %v", err)
		}
	})
}
