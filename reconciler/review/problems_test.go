package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A brokenForge fails for one pull request or one commit.
type brokenForge struct {
	*fakeForge
	comments int64
	statuses string
}

var errRefused = &forge.StatusError{Status: 422, Message: "no more of these"}

func (f *brokenForge) FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error) {
	if number == f.comments {
		return nil, errRefused
	}
	return f.fakeForge.FindComment(ctx, number, marker)
}

func (f *brokenForge) SetStatus(ctx context.Context, s forge.Status) error {
	if s.Commit == f.statuses {
		return errRefused
	}
	return f.fakeForge.SetStatus(ctx, s)
}

// planned returns a simulatedFleet with open pull requests, each of which adds an object.
func planned(t *testing.T, numbers ...int64) (*simulatedFleet, *fakeForge, fakeSource) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f, source := newForge(), fakeSource{merged: map[string]fs.FS{}, errs: map[string]error{}}
	for _, n := range numbers {
		head := fmt.Sprintf("%040d", n)
		f.Add(pullRequest(n, head))
		source.merged[head] = files(t, small+"configmap web/two v1\n")
	}
	return s, f, source
}

// The status says why the forge does not respond and since when. The forge gets no more
// requests than the backoff allows, and everything is written once it responds.
func TestFaultsOfTheForge(t *testing.T) {
	for name, err := range map[string]error{
		"revoked token":    &forge.StatusError{Status: 401, Message: "invalid token"},
		"repository moved": &forge.StatusError{Status: 301},
		"repository gone":  &forge.StatusError{Status: 404},
		"web page":         &forge.StatusError{Status: 200, Message: "a web page: Sign in"},
		"down":             &url.Error{Op: "Get", URL: "https://git.example.com", Err: errors.New("connection refused")},
		"overloaded":       &forge.StatusError{Status: 503},
		"rate limit":       &forge.StatusError{Status: 429, RetryAfter: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, f, source := planned(t, 1)
			v := newReviewer(f, source)
			f.err = err
			for range 20 { // twenty minutes
				s.step(v)
			}
			got := v.Problems()
			if len(got) != 2 || !strings.HasPrefix(got[0], "pull requests are not planned since ") || !strings.HasPrefix(got[1], "the rollout is not shown on commits since ") || !strings.Contains(got[0], forge.Reason(err)) {
				t.Errorf("status says %q", got)
			}
			if f.lists > 8 {
				t.Errorf("the forge was asked for its list %d times in twenty minutes", f.lists)
			}
			f.err = nil
			for range 12 {
				s.step(v)
			}
			if len(v.Problems()) > 0 || len(f.Comments[1]) != 1 {
				t.Errorf("status says %q, comments are %v", v.Problems(), f.Comments)
			}
		})
	}
}

// A status that could not be set is set later, also by another process: a comment with the plan
// does not count as the status.
func TestAStatusThatFailedIsSetLater(t *testing.T) {
	s, f, source := planned(t, 1)
	head := f.Pulls[0].Head
	s.step(newReviewer(&brokenForge{fakeForge: f, statuses: head}, source))
	if len(f.Comments[1]) > 0 {
		t.Error("the comment was written before the status")
	}
	s.step(newReviewer(f, source))
	f.Statuses = nil
	s.step(newReviewer(f, source))
	if got := f.of(head, planContext); len(got) != 1 || !strings.HasPrefix(got[0], "success") || f.writes != 1 {
		t.Errorf("after a restart: %d comments, statuses %q", f.writes, got)
	}
}

// If the forge refuses writes to one pull request or commit, others are still planned.
func TestOneBadPullRequestKeepsNoOther(t *testing.T) {
	s, f, source := planned(t, 1, 2, 3)
	f.Add(pullRequest(4, ""))
	v := newReviewer(&brokenForge{fakeForge: f, comments: 3, statuses: hash("b")}, source)
	for range 4 {
		s.step(v)
	}
	if len(f.Comments[1])+len(f.Comments[2]) != 2 {
		t.Errorf("comments are %v", f.Comments)
	}
	if len(f.Comments[3])+len(f.Comments[4]) > 0 {
		t.Errorf("comments are %v", f.Comments)
	}
}

// A temporary error is retried. It is shown in the log, and not on the forge.
func TestAPassingErrorIsTriedAgain(t *testing.T) {
	s, f, source := planned(t, 1)
	head := f.Pulls[0].Head
	source.errs[head] = errors.New("open /var/lib/secret: timeout")
	v := newReviewer(f, source)
	for range 3 {
		s.step(v)
	}
	delete(source.errs, head)
	for range 3 {
		s.step(v)
	}
	want := []string{"error: not planned: the reason is in the log of gitfleet; trying again", "success: 1 object on 3 clusters"}
	if got := f.of(head, planContext); !slices.Equal(got, want) {
		t.Errorf("statuses are %q", got)
	}
}

// A pull request that is too large is not fetched again and again.
func TestATooLargePullRequestIsPlannedOnce(t *testing.T) {
	s, f, source := planned(t, 1)
	head, tries := f.Pulls[0].Head, 0
	source.errs[head] = fmt.Errorf("fetch refs/pull/1/head: %w", gitsource.ErrTooLarge)
	v := newReviewer(f, source)
	v.cfg.Attempt = func(string) (func(), error) { tries++; return func() {}, nil }
	for range 4 {
		s.step(v)
	}
	if got := f.of(head, planContext); tries != 1 || len(got) != 1 || !strings.Contains(got[0], "exceeds the limits") {
		t.Errorf("%d tries, statuses %q", tries, got)
	}
}

// After a restart, plans of another state of the fleet are marked as stale before they are
// planned again, only a few in one pass.
func TestStaleAfterARestart(t *testing.T) {
	numbers := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	s, f, source := planned(t, numbers...)
	v := newReviewer(f, source)
	for range numbers {
		s.step(v)
	}
	s.commit(hash("c"), files(t, small+"namespace other\n"))
	f.Statuses = nil
	restarted := newReviewer(f, source)
	restarted.cfg.Rollouts = false
	s.step(restarted)
	stale := 0
	for _, status := range f.Statuses {
		if strings.HasPrefix(status.Description, "stale: ") {
			stale++
		}
	}
	if stale != maxMarks {
		t.Errorf("%d are stale", stale)
	}
	s.step(restarted)
	if got := f.of(f.Pulls[0].Head, planContext); len(got) == 0 || !strings.HasPrefix(got[0], "pending: stale: ") {
		t.Errorf("the last has %q", got)
	}
}

// If the fleet returns to an earlier state, the plan for that state is no longer marked as
// stale.
func TestAPlanThatWasStaleIsShownAgain(t *testing.T) {
	s, f, source := planned(t, 1, 2)
	v := newReviewer(f, source)
	v.cfg.Pause = time.Hour
	s.step(v)
	s.now = s.now.Add(time.Hour)
	s.step(v)
	before := s.report
	s.commit(hash("c"), files(t, small+"namespace other\n"))
	s.step(v)
	s.report = before
	for range 4 {
		s.now = s.now.Add(2 * time.Hour)
		s.step(v)
	}
	for _, pr := range f.Pulls {
		if got := f.of(pr.Head, planContext); !strings.HasPrefix(got[len(got)-1], "success: ") {
			t.Errorf("%d: statuses are %q", pr.Number, got)
		}
	}
}

// Pull requests that gitfleet opened get the status, which may be required, and no comment.
func TestPullRequestsOfGitfleetGetAStatus(t *testing.T) {
	s, f, source := planned(t, 1)
	f.Pulls[0].Branch = "gitfleet/drift/1"
	s.step(newReviewer(f, source))
	if got := f.of(f.Pulls[0].Head, planContext); len(got) != 1 || !strings.HasPrefix(got[0], "success: ") || f.writes > 0 {
		t.Errorf("%d comments, statuses %q", f.writes, got)
	}
}

// Pods that become unavailable and available again do not cause a status each time, and success
// is not revoked.
func TestRolloutStatusesAreBounded(t *testing.T) {
	status := func(state forge.StatusState, text string) forge.Status {
		return forge.Status{Commit: hash("c"), Context: rolloutContext, State: state, Description: text}
	}
	one, two, all, failed := status(forge.StatusPending, "1 of 3"), status(forge.StatusPending, "2 of 3"), status(forge.StatusSuccess, "3 of 3"), status(forge.StatusFailure, "broken")
	r := rollout{inForce: one, lastSet: noon, timesSet: 1}
	for name, test := range map[string]struct {
		last, next forge.Status
		at         bool
	}{
		"pending changes":  {one, two, false},
		"success at once":  {one, all, true},
		"failure at once":  {one, failed, true},
		"failure passes":   {failed, one, false},
		"success, failure": {all, failed, true},
	} {
		if r.inForce = test.last; !r.due(test.next).After(noon) != test.at {
			t.Errorf("%s: due at %s", name, r.due(test.next))
		}
	}
	r = rollout{inForce: one, lastSet: noon, timesSet: 1000}
	if due := r.due(two); due.Sub(noon) < 20*time.Minute {
		t.Errorf("after 1,000 statuses the next is due at %s", due)
	}
	r.inForce = all
	if !r.keepsSuccess(two) || r.keepsSuccess(failed) {
		t.Error("success is final unless something fails")
	}
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	f := newForge()
	v := newReviewer(f, fakeSource{})
	s.begin(hash("c"), files(t, strings.Replace(small, "v1", "v2", 1)))
	s.turn()
	v.report = s.report
	v.pass(t.Context(), s.now)
	v.rollout.inForce.Description = "1 of 3 clusters"
	if wait := v.pass(t.Context(), s.now); wait <= 0 || wait > rolloutSpacing*2 || len(f.Statuses) != 1 {
		t.Errorf("next in %s, statuses %v", wait, f.Statuses)
	}
}

// In a burst each pull request is shown as awaited at once. The newest is planned first, then the others, the oldest first, and
// none starves although the base moves before all are planned.
func TestABurstOfPullRequests(t *testing.T) {
	numbers := []int64{1, 2, 3, 4, 5, 6}
	s, f, source := planned(t, numbers...)
	f.Pulls[2].Branch = "gitfleet/drift/3"
	v := newReviewer(f, source)
	v.cfg.Rollouts = false
	s.step(v)
	for _, pr := range f.Pulls[:5] {
		if got := f.of(pr.Head, planContext); len(got) != 1 || got[0] != "pending: not planned yet: other pull requests come first" {
			t.Errorf("%d has %q", pr.Number, got)
		}
	}
	order := func() (numbers []int64) {
		for _, status := range f.Statuses {
			for _, pr := range f.Pulls {
				if pr.Head == status.Commit && status.State != forge.StatusPending {
					numbers = append(numbers, pr.Number)
				}
			}
		}
		return numbers
	}
	s.step(v)
	s.step(v)
	if got := order(); !slices.Equal(got, []int64{6, 1, 2}) {
		t.Errorf("planned in the order %d", got)
	}
	for i := range 6 { // the base moves after every second plan
		if i%2 == 0 {
			s.commit(hash(string(rune('c'+i))), files(t, small+fmt.Sprintf("namespace other%d\n", i)))
		}
		s.step(v)
	}
	if got := order(); !slices.Equal(got, []int64{6, 1, 2, 3, 4, 5, 6, 1, 2}) {
		t.Errorf("while the base moves they are planned in the order %d", got)
	}
}
