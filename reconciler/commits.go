package reconciler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// commits are the commits that the loop needs: the one in force, the newest, and those that clusters are still assigned to.
type commits struct {
	cfg     *Config
	loader  loader // its guard is set when Run starts
	running *sync.WaitGroup

	// inForce is the commit in force: the newest commit that has loaded. It is nil until one has. inForceSeenAt is when
	// its load began.
	inForce       *hub.Snapshot
	inForceSeenAt time.Time
	past          pastCommits
	history       historyRetry
	// source is what the report says about the repository. newestCrashed is set while the newest commit is refused
	// because loading it has crashed the process.
	source        status.Source
	newestCrashed bool
	// untraced is when a new commit came into force, until its trace is sent; zero afterwards.
	untraced time.Time
}

func newCommits(cfg *Config, running *sync.WaitGroup, l loader) commits {
	return commits{cfg: cfg, loader: l, running: running, past: newPastCommits()}
}

// putInForce puts a new commit in force. A commit that could not be loaded, or that would remove everything, is refused: it is only reported.
func (c *commits) putInForce(load loaded, l *ledger.Ledger, now time.Time) {
	if load.history {
		c.historyRead(load, now)
		return
	}
	if load.reloaded && c.source.Newest.Hash != load.commit.Hash {
		return
	}
	c.newestCrashed = errors.Is(load.err, crashguard.ErrFatal)
	c.setNewest(load)
	if load.waiting {
		c.cfg.Log.Info("commit waits for its remote bases and charts", "commit", load.commit.Hash, "fetches", c.source.Fetches)
		return
	}
	err := load.err
	if err == nil {
		if c.inForce != nil && c.inForce.Commit.Hash == load.commit.Hash {
			recordRefusal(l, "", "")
			if load.refetched { // overlays can be built now that could not be before
				c.inForce, c.past.snapshots[load.commit.Hash] = load.snapshot, load.snapshot
			}
			return
		}
		if why := cmp.Or(plan.RemovesEverything(load.snapshot, l), plan.StopsBuilding(load.snapshot, c.inForce), plan.Drops(load.snapshot, c.inForce)); why != "" && !load.resumed {
			c.source.LoadError, err = why, errors.New(why)
		}
	}
	if err != nil {
		c.refuse(load, err, l, now)
		return
	}
	was := ledger.RepositoryOf(l)
	c.inForce, c.inForceSeenAt = load.snapshot, load.seen
	if load.seen.After(now) { // the clock was set back
		c.inForceSeenAt = now
	}
	l.SetInForce(load.commit.Hash)
	if !load.resumed { // otherwise a newer one may be refused
		recordRefusal(l, "", "")
	}
	accepted := occurrence.OfCommit(load.commit, was, ledger.RepositoryOf(l))
	accepted.LoadTook, accepted.InForce = load.took, load.snapshot
	if accepted.Event != "" { // it was not merely loaded again after a restart
		c.untraced = now
	}
	addEvents(l, now, accepted)
	publish(c.cfg, accepted)
	l.Declare(load.commit.Hash, load.commit.Time, declared(load.snapshot))
	c.source.InForce, c.source.Since = load.commit, now
	c.past.snapshots[load.commit.Hash] = load.snapshot
}

// refuse records that the newest commit is refused.
func (c *commits) refuse(load loaded, err error, l *ledger.Ledger, now time.Time) {
	was := ledger.RepositoryOf(l)
	recordRefusal(l, load.commit.Hash, cmp.Or(c.source.LoadError, c.source.Problems.Summary()))
	refused := occurrence.OfCommit(load.commit, was, ledger.RepositoryOf(l))
	if c.inForce == nil { // the last one in force did not load after a restart
		refused.StaysInForce = ""
	}
	if refused.Event == "" {
		if !load.reloaded { // the log of a new process says why the newest commit is not in force
			c.cfg.Log.Warn("commit still refused", "commit", load.commit.Hash, "inForce", c.source.InForce.Hash, "err", err)
		}
		return
	}
	refused.Time, refused.LoadTook, refused.Refused = now, load.took, err
	addEvents(l, now, refused)
	publish(c.cfg, refused)
}

// recordRefusal records in the ledger which commit is refused and why in short; nothing is if both are empty.
func recordRefusal(l *ledger.Ledger, commit, why string) {
	is := ledger.RepositoryOf(l)
	is.Refused, is.Why = commit, why
	ledger.SetRepository(l, is)
}

// setNewest records the newest commit, and why it could not be loaded.
func (c *commits) setNewest(l loaded) {
	c.source.Newest, c.source.Problems, c.source.LoadError, c.source.Fetches = l.commit, nil, "", nil
	var bad *hub.LoadError
	switch {
	case l.waiting:
		for _, n := range l.needs {
			c.source.Fetches = append(c.source.Fetches, n.name)
		}
	case errors.As(l.err, &bad):
		c.source.Problems = bad.Problems.ErrorsFirst()
	case l.err != nil:
		c.source.LoadError = l.err.Error()
	}
}

// trace sends the trace of the commit in force, once its first plan is made; start is when planning began.
func (c *commits) trace(start time.Time) {
	if !c.untraced.IsZero() {
		traceInForce(c.cfg.Traces, c.inForce, c.inForceSeenAt, c.untraced, start, c.cfg.Now())
		c.untraced = time.Time{}
	}
}

// loadAgain loads the newest commit although loading it has crashed the process before.
func (c *commits) loadAgain(ctx context.Context, l *ledger.Ledger) {
	recordRefusal(l, "", "")
	c.loader.guard.Reset()
	newest := c.source.Newest
	c.source.LoadError, c.newestCrashed = "", false
	c.cfg.Log.Info("loading a commit again that ended the daemon", "commit", newest.Hash)
	c.running.Go(func() {
		l := c.loader.loadCommit(ctx, c.cfg.Loader, gitsource.Commit{Hash: newest.Hash, Author: newest.Author, Signer: newest.Signer, Subject: newest.Subject, Time: newest.Time, Message: newest.Message})
		l.reloaded = true
		c.loader.pass(ctx, l)
	})
}

// updatePast drops the commits that nothing needs any more, and loads one that is missing.
func (c *commits) updatePast(ctx context.Context, p *plan.Plan, now time.Time) {
	c.past.keep(p.Commits, c.inForce.Commit.Hash)
	for _, hash := range slices.Sorted(maps.Keys(p.Commits)) {
		c.requestPast(ctx, hash, now)
	}
}

// requestPast loads a commit, unless it is loaded or its next retry is not due. One is loaded at a time; afterwards
// there is another turn.
func (c *commits) requestPast(ctx context.Context, hash string, now time.Time) {
	if c.past.loading == "" && c.past.snapshots[hash] == nil && !now.Before(c.past.retries[hash].at) {
		c.past.loading = hash
		c.running.Go(func() { c.loader.loadPast(ctx, hash) })
	}
}

// pastCommits are the commits that clusters are assigned to, and the commit in force.
type pastCommits struct {
	snapshots map[string]*hub.Snapshot
	// lost are the commits that cannot be loaded, and retries their next attempts.
	lost    map[string]error
	retries map[string]loadRetry
	// loading is the commit that is being loaded; empty if none is.
	loading string
}

// A loadRetry is the time of the next attempt to load a past commit or a Git history, and the number of failures.
type loadRetry struct {
	failures int
	at       time.Time
}

func newPastCommits() pastCommits {
	return pastCommits{snapshots: map[string]*hub.Snapshot{}, lost: map[string]error{}, retries: map[string]loadRetry{}}
}

// add adds a commit that was loaded because clusters are assigned to it.
func (p *pastCommits) add(l loaded, now time.Time, log *slog.Logger) {
	hash := l.commit.Hash
	p.loading = ""
	if l.err == nil {
		if p.lost[hash] != nil {
			log.Info("commit of assigned content loaded after a failure", "commit", hash)
		}
		delete(p.lost, hash)
		delete(p.retries, hash)
		p.snapshots[hash] = l.snapshot
		return
	}
	failures := p.retries[hash].failures
	if failures == 0 {
		log.Warn("commit of assigned content could not be loaded; its clusters are left as they are until the rollout reaches them, and loading is retried",
			"commit", hash, "err", l.err)
		p.lost[hash] = l.err
	}
	p.retries[hash] = loadRetry{failures + 1, now.Add(retryafter.Failures(failures+1, firstLoadRetry, lastLoadRetry))}
}

// keep removes all commits but the one in force and those that are assigned to a cluster.
func (p *pastCommits) keep(assigned map[string]bool, inForce string) {
	maps.DeleteFunc(p.snapshots, func(hash string, _ *hub.Snapshot) bool { return !assigned[hash] && hash != inForce })
	for hash := range p.lost {
		if !assigned[hash] {
			delete(p.lost, hash)
			delete(p.retries, hash)
		}
	}
}

// A historyRetry says whether the Git history of the commit in force is being read, and when to try again after a failure.
type historyRetry struct {
	reading bool
	loadRetry
}

// readHistory begins to read the Git history of the commit in force, if that is needed and due.
func (c *commits) readHistory(ctx context.Context, now time.Time) {
	h := &c.history
	if c.inForce.RunHistoryErr == nil || !c.loader.lostRuns.Load() || h.reading || now.Before(h.at) {
		return
	}
	h.reading = true
	s := *c.inForce
	c.running.Go(func() {
		c.loader.addRunHistory(ctx, &s)
		c.loader.add(loaded{commit: s.Commit, snapshot: &s, history: true, err: s.RunHistoryErr})
	})
}

// historyRead adds the history that was read to the commit in force, unless that is another one now.
func (c *commits) historyRead(l loaded, now time.Time) {
	h := &c.history
	h.reading = false
	switch {
	case c.inForce.Commit.Hash != l.commit.Hash:
	case l.err != nil:
		h.loadRetry = loadRetry{h.failures + 1, now.Add(retryafter.Failures(h.failures+1, firstLoadRetry, lastLoadRetry))}
	default:
		s := *c.inForce
		s.RunHistory, s.RunHistoryErr = l.snapshot.RunHistory, nil
		h.loadRetry, c.inForce, c.past.snapshots[l.commit.Hash] = loadRetry{}, &s, &s
	}
}
