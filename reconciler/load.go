package reconciler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Commits are loaded in goroutines of their own, so that the loop waits for neither Git nor kustomize.

// loaded is the result of loading a commit.
type loaded struct {
	commit   hub.Commit
	snapshot *hub.Snapshot
	err      error
	// past says that it was loaded because clusters are assigned to it, resumed that it was in force before a restart,
	// and reloaded that it is not loaded for the first time, so that there may be a newer commit.
	past, resumed, reloaded bool
	// history reports whether only the history of the commit in force was read again.
	history bool
	// waiting says that the commit waits until its needs are fetched, and refetched that an attempt has ended.
	waiting, refetched bool
	needs              []need
	// seen is when the load began, and took its duration.
	seen time.Time
	took time.Duration
}

// The delays before another attempt to load a past commit, to fetch what the newest one lacks, or to read a Git history.
const firstLoadRetry, lastLoadRetry = 30 * time.Second, 10 * time.Minute

// A loader loads commits.
type loader struct {
	cfg *Config
	// add receives what was loaded, or why it could not be; it never blocks.
	add   func(loaded)
	guard *crashguard.Guard
	// lostRuns says that the ledger, which was empty at the start, still lacks runs: the commits in which they appeared are then read from
	// the Git history.
	lostRuns *atomic.Bool
}

// newLoader returns a loader without a guard.
func newLoader(cfg *Config, add func(loaded)) loader {
	return loader{cfg: cfg, add: add, lostRuns: new(atomic.Bool)}
}

// pass passes on what was loaded. If ctx is done, an error says nothing of the commit.
func (r *loader) pass(ctx context.Context, l loaded) {
	if l.err == nil || ctx.Err() == nil {
		r.add(l)
	}
}

// loadCommit loads the files of a commit with one of the loaders of the configuration.
func (r *loader) loadCommit(ctx context.Context, with *hub.Loader, c gitsource.Commit) (l loaded) {
	start := time.Now()
	l = loaded{seen: r.cfg.Now(), commit: commitOf(c)}
	defer func() { r.cfg.Metrics.loaded(l.took, l.err) }()
	end, err := r.guard.Begin(c.Hash)
	if err != nil {
		l.err = err
		return l
	}
	defer end()
	files, err := r.cfg.Source.Files(ctx, c.Hash)
	if err == nil {
		l.snapshot, err = with.Load(l.commit, files)
	}
	if err == nil {
		r.addSigners(ctx, l.snapshot)
		r.addRunHistory(ctx, l.snapshot)
	}
	l.err, l.took = err, time.Since(start)
	return l
}

func commitOf(c gitsource.Commit) hub.Commit {
	return hub.Commit{Hash: c.Hash, Author: c.Author, Signer: c.Signer, Subject: c.Subject, Time: c.Time, Message: c.Message}
}

// addSigners records who signed the commits that last changed the approval requests of a commit.
func (r *loader) addSigners(ctx context.Context, s *hub.Snapshot) {
	var paths []string
	for _, run := range s.Runs {
		for _, m := range run.Requests {
			paths = append(paths, m.Origin.Path)
		}
	}
	if r.cfg.LastChanges == nil || len(paths) == 0 {
		return
	}
	slices.Sort(paths)
	changes, err := r.cfg.LastChanges(ctx, s.Commit.Hash, slices.Compact(paths))
	if err != nil {
		r.cfg.Log.Warn("the commits that last changed approval requests are not known", "commit", s.Commit.Hash, "err", err)
	}
	s.Signed = map[string]hub.Commit{}
	for path, c := range changes {
		if c.Signer != "" {
			s.Signed[path] = commitOf(c)
		}
	}
}

// addRunHistory records in which commits the runs of a commit appeared and were started, as long as that is needed.
func (r *loader) addRunHistory(ctx context.Context, s *hub.Snapshot) {
	if !r.lostRuns.Load() || r.cfg.Since == nil {
		return
	}
	var parts []gitsource.FilePart
	for _, run := range s.Runs {
		if run.Manifest != nil {
			p := runPart(run)
			parts = append(parts, p, gitsource.FilePart{Path: p.Path, Name: p.Name + hub.Started})
		}
	}
	since, err := r.cfg.Since(ctx, s.Commit.Hash, parts, hub.RunsInFile)
	if err != nil {
		s.RunHistoryErr = err
		r.cfg.Log.Warn("the Git history of update runs could not be read; retrying", "commit", s.Commit.Hash, "err", err)
		return
	}
	s.RunHistory, s.RunHistoryErr = map[api.ID]hub.RunHistory{}, nil
	for _, run := range s.Runs {
		if run.Manifest != nil {
			p := runPart(run)
			s.RunHistory[run.Manifest.ID] = hub.RunHistory{Appeared: commitOf(since[p]), Started: commitOf(since[gitsource.FilePart{Path: p.Path, Name: p.Name + hub.Started}])}
		}
	}
}

func runPart(run *hub.StagedRun) gitsource.FilePart {
	return gitsource.FilePart{Path: run.Origin.Path, Name: run.Manifest.ID.Kind + " " + run.Manifest.ID.Name}
}

// hasLostRuns reports whether a placement of the ledger has runs that were recorded in one that was lost.
func hasLostRuns(l *ledger.Ledger) bool {
	return slices.ContainsFunc(l.Placements(), func(key api.PlacementKey) bool { return len(l.Placement(key).LostRuns) > 0 })
}

// runsRecorded ends the reading of histories once the ledger has no lost runs any more.
func (r *loader) runsRecorded(l *ledger.Ledger) {
	if r.lostRuns.Load() && !hasLostRuns(l) {
		r.lostRuns.Store(false)
	}
}

// A need is a remote base or a chart that a commit needs and that was not fetched.
type need struct {
	what, name string
	// url and commit are those of a base.
	url, commit string
	chart       hub.RemoteChart
}

// missing are the needs of the commit that can be fetched.
func (r *loader) missing(l loaded) []need {
	bases, charts := hub.Missing(l.snapshot, l.err)
	var all []need
	for _, b := range bases {
		if r.cfg.FetchBase != nil {
			all = append(all, need{what: "remote base", name: b.String(), url: b.URL, commit: b.Commit})
		}
	}
	for _, c := range charts {
		if r.cfg.FetchChart != nil {
			all = append(all, need{what: "chart", name: c.String(), chart: c})
		}
	}
	return all
}

func (r *loader) followSource(ctx context.Context) error {
	var fetches sync.WaitGroup
	stop := func() {}
	err := r.cfg.Source.Run(ctx, func(c gitsource.Commit) {
		stop() // fetches for the commit before
		l := r.loadCommit(ctx, r.cfg.Loader, c)
		l.needs = r.missing(l)
		l.waiting = len(l.needs) > 0
		r.pass(ctx, l) // before what comes of the fetches, which may end at once
		if l.waiting {
			var fetching context.Context
			fetching, stop = context.WithCancel(ctx)
			fetches.Go(func() { r.fetchMissing(fetching, c, l) })
		}
	})
	stop()
	fetches.Wait()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow the repository: %w", err)
	}
	return nil
}

// longestFetchWait is how long a commit waits for what it needs. A server that does not answer then delays its own charts and bases
// only.
const longestFetchWait = 10 * time.Second

// fetchMissing fetches what the newest commit needs and loads it again, until it has all of it.
func (r *loader) fetchMissing(ctx context.Context, c gitsource.Commit, first loaded) {
	missing := first.needs
	for attempt := 0; len(missing) > 0; attempt++ {
		var fetched int
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			fetched = r.fetch(ctx, missing)
		}()
		if attempt == 0 {
			select {
			case <-ended:
			case <-time.After(longestFetchWait):
				first.waiting, first.reloaded = false, true
				r.pass(ctx, first)
			}
		}
		<-ended
		if ctx.Err() != nil {
			return
		}
		if fetched > 0 || attempt == 0 {
			l := r.loadCommit(ctx, r.cfg.Loader, c)
			l.reloaded, l.refetched = true, true
			before := missing
			missing = r.missing(l)
			r.pass(ctx, l)
			if !slices.Equal(missing, before) { // what was fetched may have others
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryafter.Failures(attempt+1, firstLoadRetry, lastLoadRetry)):
		}
	}
}

// fetch fetches what is missing at the same time, since hosts may be slow, and returns how much it has fetched.
func (r *loader) fetch(ctx context.Context, missing []need) int {
	var fetches sync.WaitGroup
	var succeeded atomic.Int32
	for _, n := range missing {
		fetches.Go(func() {
			err := r.fetchNeed(ctx, n)
			if err == nil {
				succeeded.Add(1)
				r.cfg.Log.Info(n.what+" fetched", "name", n.name, "commit", n.commit, "digest", n.chart.Digest)
			} else if ctx.Err() == nil {
				r.cfg.Log.Warn(n.what+" not fetched; fetching it is retried", "name", n.name, "commit", n.commit, "digest", n.chart.Digest, "err", err)
			}
		})
	}
	fetches.Wait()
	return int(succeeded.Load())
}

func (r *loader) fetchNeed(ctx context.Context, n need) error {
	if n.commit != "" {
		return r.cfg.FetchBase(ctx, n.url, n.commit)
	}
	return r.cfg.FetchChart(ctx, n.chart)
}

// loadLastInForce loads the commit that was in force before a restart, since newer ones may be refused.
func (r *loader) loadLastInForce(ctx context.Context, hash string) {
	if hash == "" {
		return
	}
	c, err := r.cfg.Source.Commit(ctx, hash)
	if err != nil {
		r.cfg.Log.Warn("last commit in force cannot be read; waiting for the newest", "commit", hash, "err", err)
		return
	}
	l := r.loadCommit(ctx, r.cfg.Loader, c)
	if l.err != nil {
		r.cfg.Log.Warn("last commit in force does not load; waiting for the newest", "commit", hash, "err", l.err)
		return
	}
	l.resumed = true
	r.add(l)
}

func (r *loader) loadPast(ctx context.Context, hash string) {
	c, err := r.cfg.Source.Commit(ctx, hash)
	l := loaded{commit: hub.Commit{Hash: hash}, err: err}
	if err == nil {
		l = r.loadCommit(ctx, r.cfg.Past, c)
		if missing := r.missing(l); len(missing) > 0 && r.fetch(ctx, missing) > 0 {
			l = r.loadCommit(ctx, r.cfg.Past, c)
		}
	}
	l.past = true
	r.add(l)
}
