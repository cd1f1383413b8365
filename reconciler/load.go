package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Commits are loaded in goroutines of their own, so that the loop waits for neither Git nor kustomize.

// loaded is the result of loading a commit.
type loaded struct {
	commit   hub.Commit
	snapshot *hub.Snapshot
	err      error
	// past says that it was loaded because clusters are assigned to it, resumed that it was in force before a restart,
	// and reloaded that a user requested it, so that there may be a newer commit.
	past, resumed, reloaded bool
	// seen is when the load began, and took its duration.
	seen time.Time
	took time.Duration
}

func (r *Reconciler) load(ctx context.Context, loader *hub.Loader, c gitsource.Commit) (l loaded) {
	start := time.Now()
	l = loaded{seen: r.cfg.Now(), commit: hub.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message}}
	defer func() { r.cfg.Metrics.loaded(l) }()
	end, err := r.guard.Begin(c.Hash)
	if err != nil {
		l.err = err
		return l
	}
	defer end()
	files, err := r.cfg.Source.Files(ctx, c.Hash)
	if err == nil {
		l.snapshot, err = loader.Load(l.commit, files)
	}
	l.err, l.took = err, time.Since(start)
	return l
}

// runSource runs the source, and loads the new commits.
func (r *Reconciler) runSource(ctx context.Context) error {
	err := r.cfg.Source.Run(ctx, func(c gitsource.Commit) { r.events.addLoaded(r.load(ctx, r.cfg.Loader, c)) })
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow the repository: %w", err)
	}
	return nil
}

// loadLastInForce loads the commit that was in force before a restart, since newer ones may be refused.
func (r *Reconciler) loadLastInForce(ctx context.Context, hash string) {
	if hash == "" {
		return
	}
	c, err := r.cfg.Source.Commit(ctx, hash)
	if err != nil {
		r.cfg.Log.Warn("last commit in force cannot be read; waiting for the newest", "commit", hash, "err", err)
		return
	}
	l := r.load(ctx, r.cfg.Loader, c)
	if l.err != nil {
		r.cfg.Log.Warn("last commit in force does not load; waiting for the newest", "commit", hash, "err", l.err)
		return
	}
	l.resumed = true
	r.events.addLoaded(l)
}

// loadAgain loads the newest commit although loading it has crashed the process before.
func (r *Reconciler) loadAgain(ctx context.Context) {
	r.guard.reset()
	c := r.source.Newest
	r.source.LoadError, r.newestFatal = "", false
	r.cfg.Log.Info("loading a commit again that ended the daemon", "commit", c.Hash)
	r.running.Go(func() {
		l := r.load(ctx, r.cfg.Loader, gitsource.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message})
		l.reloaded = true
		r.events.addLoaded(l)
	})
}

// The delays before another attempt to load a commit that clusters are assigned to.
const firstPastRetry, lastPastRetry = 30 * time.Second, 10 * time.Minute

// pastCommits are the commits that clusters are assigned to, and the commit in force.
type pastCommits struct {
	snapshots map[string]*hub.Snapshot
	// lost are the commits that cannot be loaded, and retries their next attempts.
	lost    map[string]error
	retries map[string]pastRetry
	// loading is the commit that is being loaded; empty if none is.
	loading string
}

// A pastRetry is the time of the next attempt to load a past commit, and the number of failures.
type pastRetry struct {
	failures int
	at       time.Time
}

func newPastCommits() pastCommits {
	return pastCommits{snapshots: map[string]*hub.Snapshot{}, lost: map[string]error{}, retries: map[string]pastRetry{}}
}

// pastLoaded adds a loaded commit that clusters are still assigned to.
func (r *Reconciler) pastLoaded(l loaded, now time.Time) {
	past, hash := &r.past, l.commit.Hash
	past.loading = ""
	if l.err == nil {
		if past.lost[hash] != nil {
			r.cfg.Log.Info("commit of assigned content loaded after a failure", "commit", hash)
		}
		delete(past.lost, hash)
		delete(past.retries, hash)
		past.snapshots[hash] = l.snapshot
		return
	}
	failures := past.retries[hash].failures
	if failures == 0 {
		r.cfg.Log.Warn("commit of assigned content could not be loaded; its clusters are left as they are until the rollout reaches them, and loading is retried",
			"commit", hash, "err", l.err)
		past.lost[hash] = l.err
	}
	past.retries[hash] = pastRetry{failures + 1, now.Add(min(lastPastRetry, firstPastRetry<<min(failures, 10)))}
}

// updatePast drops the commits that nothing needs any more, and loads one that is missing.
func (r *Reconciler) updatePast(ctx context.Context, p *plan.Plan, now time.Time) {
	maps.DeleteFunc(r.past.snapshots, func(hash string, _ *hub.Snapshot) bool {
		return !p.Commits[hash] && hash != r.inForce.Commit.Hash && hash != r.source.Newest.Hash // which the leader of a standby may put in force
	})
	for hash := range r.past.lost {
		if !p.Commits[hash] {
			delete(r.past.lost, hash)
			delete(r.past.retries, hash)
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(p.Commits)) {
		r.loadPast(ctx, hash, now)
	}
}

// loadPast loads a commit, unless it is loaded or its next retry is not due. One is loaded at a time; afterwards there
// is another turn.
func (r *Reconciler) loadPast(ctx context.Context, hash string, now time.Time) {
	if r.past.loading != "" || r.past.snapshots[hash] != nil || now.Before(r.past.retries[hash].at) {
		return
	}
	r.past.loading = hash
	r.running.Go(func() {
		c, err := r.cfg.Source.Commit(ctx, hash)
		l := loaded{commit: hub.Commit{Hash: hash}, err: err}
		if err == nil {
			l = r.load(ctx, r.cfg.Past, c)
		}
		l.past = true
		r.events.addLoaded(l)
	})
}

// setNewest records the newest commit, and why it could not be loaded.
func (r *Reconciler) setNewest(l loaded) {
	r.source.Newest, r.source.Problems, r.source.LoadError = l.commit, nil, ""
	var bad *hub.LoadError
	switch {
	case errors.As(l.err, &bad):
		r.source.Problems = bad.Problems.ErrorsFirst()
	case l.err != nil:
		r.source.LoadError = l.err.Error()
	}
}
