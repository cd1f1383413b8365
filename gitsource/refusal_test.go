package gitsource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A commit that is refused is checked once, and again when the keys of signers have changed.
func TestARefusedCommitIsCheckedOnce(t *testing.T) {
	s := newSignedRepo(t, "ada", "bob")
	s.sign("ada", file{"infra/x": "1"})
	cfg := s.config(t)
	checks := 0
	cfg.Hooks.Fetching = func(string) (func(), error) {
		checks++
		return func() {}, nil
	}
	r := start(t, cfg)
	r.next()
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	s.sign("bob", file{"infra/x": "2"})
	first := r.again()
	wantError(t, first, "signed by bob", "may not change infra/x")
	if !r.Status().Refused {
		t.Error("the status does not say that it is refused")
	}
	checked := checks
	for range 3 {
		if err := r.again(); err == nil || err.Error() != first.Error() {
			t.Errorf("another time: %v", err)
		}
	}
	if checks != checked {
		t.Errorf("it was checked %d times more", checks-checked)
	}
	s.allow("ada" + read(t, s.allowed)[3:] + "# a comment\n")
	wantError(t, r.again(), "signed by bob")
	if checks == checked {
		t.Error("it was not checked although the keys have changed")
	}
	s.Git("reset", "-q", "--hard", "HEAD~1")
	good := s.sign("ada", file{"infra/x": "3"})
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(good)
	if r.Status().Refused {
		t.Error("the status of a commit that is accepted says that it is refused")
	}
}

// What exceeds a limit is tried again ever more rarely, another commit a little sooner, and both at once when somebody asks for it.
func TestWhatExceedsALimitIsTriedRarely(t *testing.T) {
	for name, test := range map[string]struct {
		tooMuch bool
		says    string
	}{
		"fetched": {true, "limits.unpackedBytes"},
		"checked": {false, "limits.fetchTime"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			large := g.Commit("large", map[string]string{"a": gitrepo.Noise(20_000)})
			cfg := config(t, g.Dir)
			if test.tooMuch {
				cfg.Limits.UnpackedBytes = 10_000
			}
			tries := map[string]int{}
			cfg.Hooks.Fetching = func(object string) (func(), error) {
				if tries[object]++; object == large && !test.tooMuch && tries[object] > 1 {
					return nil, fmt.Errorf("%w: limits.fetchTime", ErrTooLarge)
				}
				return func() {}, nil
			}
			r := start(t, cfg)
			first := r.poll()
			wantError(t, first, test.says, large, "gitfleet sync")
			before := tries[large]
			for range 3 {
				if err := r.again(); err == nil || err.Error() != first.Error() {
					t.Errorf("another time: %v", err)
				}
			}
			if tries[large] != before || r.Status().Refused {
				t.Errorf("it was tried %d times more; refused: %t", tries[large]-before, r.Status().Refused)
			}
			r.Retry()
			if wantError(t, r.poll(), test.says); tries[large] != before+1 {
				t.Errorf("somebody has asked, and it was tried %d times", tries[large]-before)
			}
			g.Git("checkout", "-q", "--orphan", "small")
			g.Git("rm", "-q", "-r", "--cached", ".")
			small := g.Commit("small", map[string]string{"a": "1"})
			g.Git("branch", "-q", "-f", "main", small)
			if wantError(t, r.again(), test.says, small, "gitfleet sync"); tries[small] != 0 {
				t.Error("another commit was tried at once")
			}
			r.exceeded.at = r.exceeded.at.Add(-othersWait)
			if err := r.again(); err != nil {
				t.Fatal(err)
			}
			r.wantHead(small)
			if r.exceeded.times != 0 {
				t.Errorf("after a success, %d failures are remembered", r.exceeded.times)
			}
		})
	}
}

// A remote that names another object at each poll does not have each fetched at once.
func TestOtherObjectsWaitToo(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a, b := plumbing.NewHash("aa"), plumbing.NewHash("bb")
	for times, want := range map[int]struct{ same, other time.Duration }{
		0:  {0, 0},
		1:  {time.Minute, time.Minute},
		3:  {4 * time.Minute, 4 * time.Minute},
		6:  {32 * time.Minute, 10 * time.Minute},
		99: {time.Hour, 10 * time.Minute},
	} {
		e := exceeded{object: a, times: times, at: at}
		if same, other := e.until(a).Sub(at), e.until(b).Sub(at); same != want.same || other != want.other {
			t.Errorf("after %d times: %s, and %s for others", times, same, other)
		}
	}
}

// A refusal holds for an hour, and for the same commit, keys and history only.
func TestRefusalsEnd(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := refusal{object: plumbing.NewHash("aa"), base: plumbing.NewHash("bb"), keys: "k", at: at, err: errors.New("not signed")}
	for name, test := range map[string]struct {
		change func(f *refusal)
		want   bool
	}{
		"the same":            {func(*refusal) {}, true},
		"soon after":          {func(f *refusal) { f.at = at.Add(refusalLasts - 1) }, true},
		"an hour after":       {func(f *refusal) { f.at = at.Add(refusalLasts) }, false},
		"the clock went back": {func(f *refusal) { f.at = at.Add(-1) }, false},
		"another commit":      {func(f *refusal) { f.object = plumbing.ZeroHash }, false},
		"another base":        {func(f *refusal) { f.base = plumbing.ZeroHash }, false},
		"other keys":          {func(f *refusal) { f.keys = "l" }, false},
	} {
		found := f
		found.err = nil
		test.change(&found)
		if got := f.holds(found); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (refusal{}).holds(refusal{}) {
		t.Error("nothing was refused")
	}
}

// A panic while data of a remote is processed, for example in the Git library, makes the poll fail, and the object is not retried
// at once.
func TestPanicsDoNotEndPolling(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("one", map[string]string{"a.yaml": "a: 1\n"})
	cfg := config(t, serveGit(t, g).URL)
	var fetched atomic.Int32
	cfg.Hooks.Fetching = func(string) (func(), error) {
		if fetched.Add(1) == 1 {
			panic("index out of range")
		}
		return func() {}, nil
	}
	r := start(t, cfg)
	for n := range 2 {
		if n > 0 {
			r.RequestPoll()
		}
		if err := r.poll(); !errors.Is(err, errPanicked) || !strings.Contains(err.Error(), "is not tried again before") || fetched.Load() != 1 {
			t.Errorf("after %d attempts: %v", fetched.Load(), err)
		}
	}
	g.Commit("two", map[string]string{"a.yaml": "a: 2\n"})
	r.Retry()
	if err := r.poll(); err != nil {
		t.Error(err)
	}
}

// A panickingRemote panics when it is asked for its references.
type panickingRemote struct{ remote.Remote }

func (p panickingRemote) Session(context.Context) (remote.Session, error) {
	return panickingSession{}, nil
}

type panickingSession struct{ remote.Session }

func (panickingSession) List(context.Context) (*packp.AdvRefs, error) { panic("index out of range") }

func (panickingSession) Close() error { return nil }

func TestPanicsAboutReferencesFailThePoll(t *testing.T) {
	r := open(t, config(t, gitrepo.New(t).Dir))
	r.remote = panickingRemote{r.remote}
	if _, err := r.poll(t.Context()); !errors.Is(err, errPanicked) {
		t.Error(err)
	}
}
