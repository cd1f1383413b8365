package review

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/test/golden"
)

const small = "clusters a b c\nnamespace web\nconfigmap web/one v1\nplace web of web\n"

// Each file in testdata has two hubs and the resulting comment. The files base and merged are
// manifests of the hubs, and files that begin with base: or merged: are added to one of them
// unchanged.
func TestComments(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		sides := map[string]fstest.MapFS{}
		for _, f := range archive.Files {
			if f.Name == "base" || f.Name == "merged" {
				sides[f.Name] = files(t, string(f.Data))
			}
		}
		for _, f := range archive.Files {
			if side, name, raw := strings.Cut(f.Name, ":"); raw {
				sides[side][name] = &fstest.MapFile{Data: f.Data}
			}
		}
		s := newSimulatedFleet(t)
		s.commit(hash("b"), sides["base"])
		f := newForge(pullRequest(17, hash("1")))
		s.step(newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): sides["merged"]}}))
		if len(f.Comments[17]) != 1 {
			t.Fatalf("%d comments, statuses %v", len(f.Comments[17]), f.Statuses)
		}
		_, body, _ := strings.Cut(f.Comments[17][0].Body, "###")
		golden.Answer(t, archive, "comment", "###"+body)
		golden.Answer(t, archive, "status", strings.Join(f.of(hash("1"), planContext), "\n")+"\n")
	})
}

// A plan is written once. When the base changes it is marked as stale, and then replaced in the
// same comment.
func TestAPlanIsOfNow(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge(pullRequest(1, hash("1")))
	source := fakeSource{merged: map[string]fs.FS{hash("1"): files(t, small+"configmap web/two v1\n")}}
	v := newReviewer(f, source)
	s.step(v)
	s.step(v)
	if f.writes != 1 {
		t.Errorf("%d writes", f.writes)
	}
	first := f.Comments[1][0].Body
	s.commit(hash("c"), files(t, small+"namespace other\n"))
	s.step(v)
	want := []string{"success: 1 object on 3 clusters", "pending: stale: main or the fleet has changed since; planned again soon", "success: 1 object on 3 clusters"}
	if got := f.of(hash("1"), planContext); !slices.Equal(got, want) {
		t.Errorf("statuses\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(f.Comments[1]) != 1 || f.Comments[1][0].Body == first {
		t.Errorf("comments are %v", f.Comments[1])
	}
	writes := f.writes
	s.step(newReviewer(f, source)) // after a restart
	if f.writes != writes {
		t.Errorf("a restart wrote %d comments", f.writes-writes)
	}
}

// A pull request from a fork is planned only with the label, and one that gitfleet opened gets
// no comment.
func TestWhichPullRequestsArePlanned(t *testing.T) {
	fork, labeled, own, person := pullRequest(1, hash("1")), pullRequest(2, hash("2")), pullRequest(3, hash("3")), pullRequest(4, hash("4"))
	fork.Fork, labeled.Fork, own.Branch = true, true, "gitfleet/drift/1"
	for label, want := range map[string][]int64{"": {4}, "plan": {2, 4}} {
		s := newSimulatedFleet(t)
		s.commit(hash("b"), files(t, small))
		f := newForge(fork, labeled, own, person)
		merged := files(t, small+"configmap web/two v1\n")
		v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): merged, hash("2"): merged, hash("3"): merged, hash("4"): merged}})
		v.cfg.ForksLabel = label
		s.step(v)
		f.Pulls[1].Labels = []string{"plan"}
		for range 4 {
			s.step(v)
		}
		var got []int64
		for number := range int64(5) {
			if len(f.Comments[number]) > 0 {
				got = append(got, number)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("with the label %q %v are planned, want %v", label, got, want)
		}
	}
}

// If two daemons comment at the same time, one comment remains.
func TestTwoDaemonsLeaveOnePlan(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge(pullRequest(1, hash("1")))
	f.raced = marker("prod") + "\nthe other"
	s.step(newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, small+"configmap web/two v1\n")}}))
	plans := 0
	for _, c := range f.Comments[1] {
		plans += strings.Count(c.Body, "### gitfleet plan")
	}
	if plans != 1 || !strings.Contains(f.Comments[1][0].Body, "### gitfleet plan") {
		t.Errorf("comments are %v", f.Comments[1])
	}
}

// If a pull request cannot be planned, the comment says why. It is not tried again until it
// changes, and others are planned.
func TestWhatCannotBePlanned(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge(pullRequest(1, hash("1")), pullRequest(2, hash("2")), pullRequest(3, hash("3")), pullRequest(4, hash("4")))
	source := fakeSource{
		merged: map[string]fs.FS{hash("3"): files(t, "clusters a b c\n"), hash("4"): fstest.MapFS{}},
		errs:   map[string]error{hash("1"): &gitsource.ConflictError{Paths: []string{"x.yaml"}}, hash("2"): gitsource.ErrTooLarge},
	}
	source.merged[hash("4")] = files(t, small)
	source.merged[hash("4")].(fstest.MapFS)["bad.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: web}\n")}
	v := newReviewer(f, source)
	for range 8 {
		s.step(v)
	}
	for digit, want := range map[string]string{
		"1": "failure: cannot be merged: both sides have changed x.yaml",
		"2": "error: not planned: it exceeds the limits of gitfleet; see its log",
		"3": "failure: the merge would be refused: the commit has no placement left",
		"4": "failure: 1 problem",
	} {
		if got := withoutAwaited(f.of(hash(digit), planContext)); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: statuses %q, want %q", digit, got, want)
		}
	}
	if body := f.Comments[1][0].Body; !strings.Contains(body, "for the fleet `prod`:") {
		t.Errorf("the comment on what cannot be merged is\n%s", body)
	}
	if !strings.Contains(f.Comments[4][0].Body, "bad.yaml:") {
		t.Errorf("the comment is\n%s", f.Comments[4][0].Body)
	}
}

// After an error, no request is sent to the forge for a while. Everything is written once it
// responds again.
func TestAForgeThatFails(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge(pullRequest(1, hash("1")))
	f.err = &forge.StatusError{Status: 503}
	v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, small+"configmap web/two v1\n")}})
	v.report = s.report
	if wait := v.pass(t.Context(), s.now); wait != poll.First {
		t.Errorf("tried again in %s", wait)
	}
	f.err = nil
	if v.pass(t.Context(), s.now.Add(poll.First/2)); len(f.Statuses) > 0 {
		t.Error("the forge was asked too early")
	}
	v.pass(t.Context(), s.now.Add(poll.First))
	if len(f.Comments[1]) != 1 {
		t.Errorf("statuses are %v", f.Statuses)
	}
}

// However large the changes are, a comment stays within the limit of the forge.
func TestACommentIsBounded(t *testing.T) {
	var clusters, merged strings.Builder
	for i := range 60 {
		fmt.Fprintf(&clusters, " %s-%02d", strings.Repeat("c", 40), i)
	}
	base := "clusters" + clusters.String() + "\nnamespace web\nplace web of web unavailable 100%\n"
	merged.WriteString(base)
	for i := range 300 {
		fmt.Fprintf(&merged, "configmap web/%s-%03d %s\n", strings.Repeat("x", 50), i, strings.Repeat("`@all ", 100))
	}
	for i := range 60 {
		name := fmt.Sprintf("%s-%02d", strings.Repeat("p", 40), i)
		fmt.Fprintf(&merged, "namespace %s\nplace %s on %s-%02d\n", name, name, strings.Repeat("c", 40), i)
	}
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, base))
	f := newForge(pullRequest(1, hash("1")))
	s.step(newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, merged.String())}}))
	body := f.Comments[1][0].Body
	if len(body) > 65_536 || !strings.Contains(body, "gitfleet plan --pr 1") || !strings.Contains(body, "more") {
		t.Errorf("%d bytes:\n%.2000s", len(body), body)
	}
}

// showsThreeRollouts expects the rollout statuses of commits b, which was rolled out, c, which was
// superseded, and d, which is under way.
func (f *fakeForge) showsThreeRollouts(t *testing.T) {
	t.Helper()
	for digit, want := range map[string][]string{
		"b": {"success: 3 of 3 clusters"},
		"c": {"pending: 0 of 3 clusters", "error: superseded by dddddddddddd at 0 of 3 clusters"},
		"d": {"pending: 0 of 3 clusters"},
	} {
		if got := f.of(hash(digit), rolloutContext); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", digit, got, want)
		}
	}
}

// The commit in force is shown with how far its rollout is, and what was said last of the one
// before stays.
func TestRolloutStatus(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge()
	v := newReviewer(f, fakeSource{})
	s.step(v)
	s.begin(hash("c"), files(t, strings.Replace(small, "v1", "v2", 1)))
	s.turn()
	s.step(v)
	s.begin(hash("d"), files(t, strings.Replace(small, "v1", "v3", 1)))
	s.turn()
	s.step(v)
	f.showsThreeRollouts(t)
}

// A rollout that was in progress when the daemon was killed does not stay pending once another
// commit is in force, whether or not there were commits in between.
func TestARolloutStatusSurvivesARestart(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge()
	source := fakeSource{parents: map[string]string{hash("d"): hash("9"), hash("9"): hash("c"), hash("c"): hash("b")}}
	s.step(newReviewer(f, source))
	s.begin(hash("c"), files(t, strings.Replace(small, "v1", "v2", 1)))
	s.turn()
	s.step(newReviewer(f, source))
	s.step(newReviewer(f, source)) // restarted while nothing happens
	s.begin(hash("d"), files(t, strings.Replace(small, "v1", "v3", 1)))
	s.turn()
	s.step(newReviewer(f, source))
	f.showsThreeRollouts(t)
}

// Fleets that use the same repository have different statuses.
func TestStatusesOfSeveralFleets(t *testing.T) {
	s, f, source := planned(t, 1)
	for _, fleet := range []string{"", "prod", "test"} {
		v := newReviewer(f, source)
		v.cfg.StatusFleet = fleet
		s.step(v)
	}
	for _, name := range []string{"gitfleet/plan", "gitfleet/prod/plan", "gitfleet/test/plan"} {
		if got := f.of(f.Pulls[0].Head, name); len(got) != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"gitfleet/rollout", "gitfleet/prod/rollout", "gitfleet/test/rollout"} {
		if got := f.of(s.report.Source.InForce.Hash, name); len(got) != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The preview of a pull request from a fork says why there is none, and names the label only if
// the label would help.
func TestAPreviewOfAForkNeedsTheLabel(t *testing.T) {
	for name, test := range map[string]struct {
		label string
		open  bool
		want  string
	}{
		"no label set": {"", false, "pull request 1 is from a fork, and no pull request from a fork is planned unless pullRequests.forksLabel is set"},
		"another":      {"plan", false, `pull request 1 is from a fork, and does not have the label "plan", with which a maintainer has it planned`},
		"Gitea":        {"", true, "pull request 1 is from a fork, and no pull request from a fork is planned on this forge, where its author can set its labels"},
		"allowed":      {"ready", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, f, source := planned(t, 1)
			f.Pulls[0].Fork = true
			v := newReviewer(f, source)
			v.cfg.ForksLabel, v.cfg.AuthorSetsLabels, v.report = test.label, test.open, s.report
			for _, labels := range [][]string{nil, {"ready"}} {
				f.Pulls[0].Labels = labels
				if err := v.list(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if _, _, err := v.previewOf(t.Context(), 1); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("says %q, want %q", got, test.want)
			}
		})
	}
}

// A preview has the whole plan and writes nothing.
func TestAPreviewWritesNothing(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge(pullRequest(1, hash("1")))
	v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, small+"configmap web/two v1\n")}})
	if _, _, err := v.previewOf(t.Context(), 1); err == nil {
		t.Error("there is a preview before there is a plan")
	}
	v.report = s.report
	p, _, err := v.previewOf(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, text := p.Status(); text != "1 object on 3 clusters" || p.Head != hash("1") || p.Base != hash("b") {
		t.Errorf("%s of %s and %s", text, p.Base, p.Head)
	}
	f.Pulls[0].Base = "other"
	if _, _, err := v.previewOf(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "to the branch other") {
		t.Errorf("to another branch: %v", err)
	}
	if f.writes+len(f.Statuses) > 0 {
		t.Errorf("%d comments and %v were written", f.writes, f.Statuses)
	}
}

// Requests for previews do not prevent comments from being written.
func TestPreviewsDoNotHoldUpPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, source := planned(t, 1)
		v := newReviewer(f, source)
		v.report = s.report
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		if _, err := v.Preview(ctx, 1); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || f.writes != 1 {
			t.Errorf("%d comments, %v", f.writes, err)
		}
	})
}

// A webhook causes a new pull request to be planned before the next list is due.
func TestWakeListsPullRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulatedFleet(t)
		s.commit(hash("b"), files(t, small))
		f := newForge()
		v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): files(t, small)}})
		v.cfg.Interval = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		v.Observe(s.report)
		synctest.Wait()
		f.Add(pullRequest(1, hash("1")))
		v.Observe(s.report)
		synctest.Wait()
		if f.writes > 0 {
			t.Error("planned before it was listed")
		}
		v.Wake()
		synctest.Wait()
		woken := time.Now()
		time.Sleep(poll.Spacing)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || f.writes != 1 {
			t.Errorf("%d comments, %v", f.writes, err)
		}
		if f.forgotten != 2 {
			t.Errorf("%d lists as new as the request, want that of the first fleet and that of the webhook", f.forgotten)
		}
		if !v.planned.After(woken) {
			t.Error("listed twice in less than poll.Spacing")
		}
	})
}
