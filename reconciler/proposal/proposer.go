package proposal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Forge is one repository on a forge.
type Forge interface {
	// ListOpen lists the open ones to a base branch, those of people and of forks too.
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	// FindPullRequest returns that of a branch in whatever state; nil if there is none.
	FindPullRequest(ctx context.Context, base, branch string) (*forge.PullRequest, error)
	HasBranch(ctx context.Context, branch string) (bool, error)
	Commit(ctx context.Context, c forge.Commit) error
	OpenPullRequest(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPullRequest(ctx context.Context, number int64, body string) error
	ClosePullRequest(ctx context.Context, number int64, comment, body string) error
	DeleteBranch(ctx context.Context, branch string) error
}

// Config is what a Proposer is made of. All fields must be set.
type Config struct {
	Forge Forge
	// Fleet is the name of the fleet: pull requests of another are left alone.
	Fleet string
	// Base is the branch that is followed.
	Base string
	// Files returns the tree of a commit.
	Files func(ctx context.Context, commit string) (fs.FS, error)
	// Load understands a tree.
	Load func(fs.FS) (*hub.Snapshot, error)
	// Resolve takes what was decided about all held drifts, by cluster. It never blocks.
	Resolve func(map[string]ledger.Resolutions)
	// MinAge is how long a change has to last before it is offered.
	MinAge time.Duration
	// MaxOpen is how many pull requests of the fleet are open at once.
	MaxOpen int
	// Interval is the time between two looks at open pull requests.
	Interval time.Duration
	Log      *slog.Logger
}

// branchPrefix is that of the branches of every change.
const branchPrefix = "gitfleet/drift/"

const (
	// recoveryGrace is how long a change has to be gone before its pull request is
	// closed: after a restart the members have to be heard first.
	recoveryGrace = time.Minute
	// mostRejected bounds the changes that are remembered to have been rejected. Of others
	// the forge is asked again.
	mostRejected = 1000
	// The bounds of the time between two tries after an error of the forge.
	firstRetry, lastRetry = 10 * time.Second, 10 * time.Minute
)

// A Proposer offers held drifts to Git as pull requests: merged, Git has the change;
// closed, it is put back. It remembers nothing that is not on the forge: the branch of a
// change follows from what the change is.
type Proposer struct {
	cfg       Config
	reports   chan *status.Report
	collector collector

	// What follows belongs to Run.
	report  *status.Report
	known   collected
	changes map[string]*change
	// open are the open pull requests of the fleet when they were last listed.
	open   map[string]forge.PullRequest
	listed time.Time
	// missing is since when an open pull request has no drift, by branch.
	missing map[string]time.Time
	// rejected are changes whose pull request was closed without merging, by hash.
	rejected map[string]*change
	// retry is when the forge is asked again after an error; problem is that error.
	retry    time.Time
	failures int
	problem  string
	since    time.Time
}

// collected is what collect returned for some drifts at some commit.
type collected struct {
	key      string
	offers   []*offer
	verdicts []verdict
}

// A change is what is known of one offer while it lasts.
type change struct {
	since time.Time
	// branch is empty until the forge was asked about the change.
	branch string
	state  forge.State
	url    string
	// waits says why it was not offered yet.
	waits string
}

// New returns a Proposer that does nothing until it runs.
func New(cfg Config) *Proposer {
	return &Proposer{cfg: cfg, collector: collector{fleet: cfg.Fleet, load: cfg.Load}, reports: make(chan *status.Report, 1), changes: map[string]*change{}, missing: map[string]time.Time{}, rejected: map[string]*change{}}
}

// Observe takes a new report. It never blocks; only one goroutine may call it.
func (p *Proposer) Observe(r *status.Report) {
	select {
	case <-p.reports:
	default:
	}
	p.reports <- r
}

// Run works until ctx is done. A forge that fails is no error: it is logged, told with
// each drift, and tried again.
func (p *Proposer) Run(ctx context.Context) error {
	timer := time.NewTimer(p.cfg.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case p.report = <-p.reports:
		case <-timer.C:
		}
		if p.report != nil && p.report.Head != nil {
			timer.Reset(p.pass(ctx))
		}
	}
}

// pass brings the forge and the members up to date, and returns when to look again.
func (p *Proposer) pass(ctx context.Context) time.Duration {
	now := time.Now()
	p.group(ctx)
	return p.advance(ctx, now)
}

// advance acts on what is held now.
func (p *Proposer) advance(ctx context.Context, now time.Time) time.Duration {
	p.track(now)
	if !now.Before(p.retry) {
		err := p.sync(ctx, now)
		if ctx.Err() == nil {
			p.answered(err, now)
		}
	}
	p.resolve(now)
	next := p.cfg.Interval
	for _, c := range p.changes {
		if due := c.since.Add(p.cfg.MinAge).Sub(now); c.branch == "" && due > 0 {
			next = min(next, due)
		}
	}
	if wait := p.retry.Sub(now); wait > 0 {
		next = min(next, wait)
	}
	return next
}

// answered notes how the forge answered.
func (p *Proposer) answered(err error, now time.Time) {
	if err == nil {
		if p.problem != "" {
			p.cfg.Log.Info("the forge answers again")
		}
		p.problem, p.failures, p.retry = "", 0, time.Time{}
		return
	}
	wait := min(lastRetry, firstRetry<<min(p.failures, 10))
	if answer, ok := errors.AsType[*forge.StatusError](err); ok {
		wait = max(wait, answer.RetryAfter)
	}
	p.failures++
	p.retry = now.Add(wait)
	if p.problem == "" {
		p.since = now
	}
	if p.problem != err.Error() {
		p.cfg.Log.Warn("drift is not offered as pull requests; trying again", "err", err)
	}
	p.problem = err.Error()
}

// group groups the held drifts, if they are others than before.
func (p *Proposer) group(ctx context.Context) {
	var key strings.Builder
	fmt.Fprintln(&key, p.report.Head.Commit.Hash)
	for i := range p.report.Drifts {
		if d := &p.report.Drifts[i]; d.State == api.DriftHeld {
			fmt.Fprintln(&key, d.Cluster, d.Placement, d.ResourceIdentifier, ledger.Fingerprint(d.Paths), d.Count, d.LastSeen)
		}
	}
	if key.String() == p.known.key {
		return
	}
	files, err := p.cfg.Files(ctx, p.report.Head.Commit.Hash)
	if err != nil {
		p.cfg.Log.Warn("files of the commit not read; trying again", "commit", p.report.Head.Commit.Hash, "err", err)
		return
	}
	p.known.key = key.String()
	p.known.offers, p.known.verdicts = p.collector.collect(p.report, files)
}

// track remembers since when each change lasts.
func (p *Proposer) track(now time.Time) {
	last := p.changes
	p.changes = map[string]*change{}
	for _, o := range p.known.offers {
		c := last[o.hash]
		if c == nil {
			c = p.rejected[o.hash]
		}
		if c == nil {
			c = &change{since: now}
		}
		p.changes[o.hash] = c
	}
	for hash, c := range last {
		if c.state == forge.Closed && p.changes[hash] == nil && len(p.rejected) < mostRejected {
			p.rejected[hash] = c
		}
	}
}

// resolve says what was decided about every held drift.
func (p *Proposer) resolve(now time.Time) {
	all := resolutions{}
	for _, v := range p.known.verdicts {
		all.add(v.drift, v.putBack, v.message)
	}
	for _, o := range p.known.offers {
		c := p.changes[o.hash]
		if c == nil {
			continue
		}
		putBack, message := c.decision(p.cfg.MinAge)
		if p.problem != "" && c.branch == "" {
			message = fmt.Sprintf("left as it is; not offered as a pull request since %s: %s", p.since.UTC().Format(time.RFC3339), p.problem)
		}
		for _, d := range o.drifts {
			all.add(d, putBack, message)
		}
	}
	p.cfg.Resolve(all)
}

// decision is what was decided about a change.
func (c *change) decision(minAge time.Duration) (putBack bool, message string) {
	switch c.state {
	case forge.Open:
		return false, "left as it is; offered as " + c.url
	case forge.Merged:
		return false, "left as it is; " + c.url + " was merged, and its commit is not in force here yet"
	case forge.Closed:
		return true, c.url + " was closed without merging"
	}
	if c.waits != "" {
		return false, "left as it is; " + c.waits
	}
	return false, fmt.Sprintf("left as it is; offered as a pull request once it has lasted for %s", minAge)
}

// offersByAge are the offers, the oldest first.
func (p *Proposer) offersByAge() []*offer {
	return slices.SortedStableFunc(slices.Values(p.known.offers), func(a, b *offer) int {
		return p.changes[a.hash].since.Compare(p.changes[b.hash].since)
	})
}
