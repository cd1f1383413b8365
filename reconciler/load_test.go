package reconciler

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

func assigned(commits ...string) *plan.Plan {
	p := &plan.Plan{Commits: map[string]bool{}}
	for _, c := range commits {
		p.Commits[c] = true
	}
	return p
}

func loadedPast(hash string, err error) loaded {
	l := loaded{commit: hub.Commit{Hash: hash}, past: true, err: err}
	if err == nil {
		l.snapshot = &hub.Snapshot{Commit: l.commit}
	}
	return l
}

// The delay before a commit is loaded again doubles from 30 seconds to 10 minutes, and begins
// anew after a success.
func TestLoadingAssignedCommitsIsRetriedWithBackoff(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c2", "clusters east")
	c.cfg.Source = &stuckSource{}
	broken := errors.New("no such commit")
	load := func(now time.Time) {
		t.Helper()
		if c.commits.updatePast(t.Context(), assigned("c1"), now); c.commits.past.loading != "c1" {
			t.Fatal("the commit is not loaded")
		}
	}
	attempts := func() (delays []time.Duration) {
		now := c.now
		for range 7 {
			load(now)
			c.commits.past.add(loadedPast("c1", broken), now, c.cfg.Log)
			if c.commits.past.lost["c1"] == nil {
				t.Fatal("the commit is not lost")
			}
			next := c.commits.past.retries["c1"].at
			delays = append(delays, next.Sub(now))
			if c.commits.updatePast(t.Context(), assigned("c1"), next.Add(-time.Nanosecond)); c.commits.past.loading != "" {
				t.Fatal("the commit is loaded again too early")
			}
			now = next
		}
		load(now)
		c.commits.past.add(loadedPast("c1", nil), now, c.cfg.Log)
		return delays
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	for range 2 {
		if got := attempts(); !slices.Equal(got, want) {
			t.Errorf("delays %v, want %v", got, want)
		}
		if c.commits.past.snapshots["c1"] == nil || c.commits.past.lost["c1"] != nil {
			t.Error("the commit is still lost after it was loaded")
		}
		delete(c.commits.past.snapshots, "c1")
	}
}

func TestOneAssignedCommitIsLoadedAtATime(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c9", "clusters east")
	c.cfg.Source = &stuckSource{}
	for _, want := range []string{"c1", "c2", ""} {
		for range 2 {
			if c.commits.updatePast(t.Context(), assigned("c1", "c2", "c9"), c.now); c.commits.past.loading != want {
				t.Errorf("%q is loaded, want %q", c.commits.past.loading, want)
			}
		}
		c.commits.past.add(loadedPast(cmp.Or(want, "c1"), nil), c.now, c.cfg.Log)
	}
}

// A commit that no cluster is assigned to is dropped, loaded or not; the commit in force is kept.
func TestUnassignedCommitsAreDropped(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c9", "clusters east")
	for hash, err := range map[string]error{"c1": nil, "c2": nil, "c3": errors.New("gone"), "c4": errors.New("gone")} {
		c.commits.past.add(loadedPast(hash, err), c.now, c.cfg.Log)
	}
	c.cfg.Source = &stuckSource{}
	c.commits.updatePast(t.Context(), assigned("c2", "c4"), c.now)
	if got := slices.Sorted(maps.Keys(c.commits.past.snapshots)); !slices.Equal(got, []string{"c2", "c9"}) {
		t.Errorf("kept %v", got)
	}
	if got := slices.Sorted(maps.Keys(c.commits.past.lost)); !slices.Equal(got, []string{"c4"}) || len(c.commits.past.retries) != 1 {
		t.Errorf("lost %v, %v", got, c.commits.past.retries)
	}
}

// If the history of a commit cannot be read after the ledger was lost, it is read again, after the same delays as a commit that cannot be loaded.
// A history that is not needed is not read.
func TestAHistoryThatCannotBeReadIsReadAgain(t *testing.T) {
	c := newHistoryScene(t)
	c.cfg.Source = &stuckSource{}
	broken, reads := errors.New("no such object"), 0
	c.cfg.Since = func(context.Context, string, []gitsource.FilePart, func(string, []byte) map[string]string) (map[gitsource.FilePart]gitsource.Commit, error) {
		if reads++; reads < 4 {
			return nil, broken
		}
		return nil, nil
	}
	l := c.loadedCommit("c2", "", "clusters east\nnamespace web\nplace web external\nstrategy slow canary/name=east\nrun web-a of web by slow")
	if c.commits.loader.addRunHistory(t.Context(), l.snapshot); reads != 0 || l.snapshot.RunHistory != nil {
		t.Errorf("the history is read %d times although the ledger was not lost", reads)
	}
	c.commits.loader.lostRuns.Store(true)
	if c.commits.loader.addRunHistory(t.Context(), l.snapshot); l.snapshot.RunHistoryErr != broken {
		t.Errorf("error %v", l.snapshot.RunHistoryErr)
	}
	c.commits.putInForce(l, c.ledger, c.now)
	for _, wait := range []time.Duration{0, firstLoadRetry, 2 * firstLoadRetry, 0} {
		if c.commits.readHistory(t.Context(), c.now.Add(wait-time.Nanosecond)); c.commits.history.reading && wait > 0 {
			t.Errorf("the history is read again before %s", wait)
		}
		c.now = c.now.Add(wait)
		c.commits.readHistory(t.Context(), c.now)
		c.running.Wait()
		c.drainEvents(t.Context(), c.now)
	}
	if s := c.commits.inForce; reads != 4 || s.RunHistoryErr != nil || len(s.RunHistory) != 1 || c.commits.past.snapshots["c2"] != s {
		t.Errorf("%d attempts, %v, %v", reads, s.RunHistoryErr, s.RunHistory)
	}
}

// The history is needed until the runs that Git had when the ledger was lost are recorded again, or are gone.
func TestHistoriesAreReadAsLongAsRunsAreLost(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	c := newHistoryScene(t)
	c.commits.loader.lostRuns.Store(true)
	c.ledger.SetPlacement(api.PlacementKey{Name: "shop"}, ledger.Placement{})
	c.ledger.SetPlacement(web, ledger.Placement{LostRuns: []string{"web-1"}})
	if c.commits.loader.runsRecorded(c.ledger); !c.commits.loader.lostRuns.Load() {
		t.Error("no history is read although a run is lost")
	}
	c.ledger.SetPlacement(web, ledger.Placement{})
	if c.commits.loader.runsRecorded(c.ledger); c.commits.loader.lostRuns.Load() {
		t.Error("histories are read although no run is lost")
	}
}

// An interruptedSource is interrupted while its commit is loaded.
type interruptedSource struct {
	Source
	interrupt func()
}

func (s interruptedSource) Run(_ context.Context, head func(gitsource.Commit)) error {
	head(gitsource.Commit{Hash: "c1"})
	return nil
}

func (s interruptedSource) Files(ctx context.Context, _ string) (fs.FS, error) {
	s.interrupt()
	return nil, ctx.Err()
}

// A commit is not refused because the process ends, or because a newer one is there, while it is loaded.
func TestAnInterruptedLoadRefusesNothing(t *testing.T) {
	for name, load := range map[string]func(context.Context, *historyScene){
		"for the first time": func(ctx context.Context, c *historyScene) { _ = c.commits.loader.followSource(ctx) },
		"once more, since a user asks": func(ctx context.Context, c *historyScene) {
			c.commits.loadAgain(ctx, c.ledger)
			c.running.Wait()
		},
		"with what was fetched": func(ctx context.Context, c *historyScene) {
			c.cfg.FetchBase = func(context.Context, string, string) error { return nil }
			c.commits.loader.fetchMissing(ctx, gitsource.Commit{Hash: "c1"}, loaded{needs: []need{{what: "remote base", commit: "b1"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := newHistoryScene(t)
			c.commits.loader.guard = &crashguard.Guard{}
			c.cfg.Source = interruptedSource{interrupt: cancel}
			load(ctx, c)
			if got := c.inbox.drain().commits; len(got) > 0 {
				t.Errorf("the loop gets %+v", got)
			}
		})
	}
}
