package proposal

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/backoff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Forge is one repository on a forge; see [forge.Shared].
type Forge interface {
	ForgetList()
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	FindPullRequest(ctx context.Context, base, branch string) (*forge.PullRequest, error)
	OpenPullRequest(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPullRequest(ctx context.Context, number int64, body string) error
	ClosePullRequest(ctx context.Context, number int64, comment, body string) error
	ListIssues(ctx context.Context, label string, state forge.State) ([]forge.Issue, error)
	Issue(ctx context.Context, number int64) (*forge.Issue, error)
	OpenIssue(ctx context.Context, i forge.NewIssue) (forge.Issue, error)
	EditIssue(ctx context.Context, number int64, body string) error
	CloseIssue(ctx context.Context, number int64, comment, body string) error
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Branches are those of the repository; see [gitsource.Publisher].
type Branches interface {
	Publish(ctx context.Context, c gitsource.BranchCommit) (gitsource.BranchState, error)
	Remove(ctx context.Context, branch, marker string) error
}

// Config is what a Proposer is made of. All fields must be set, but for Forge and
// Branches: without them nothing is offered, and what an edit of Git could express stays as it
// is.
type Config struct {
	Forge    Forge
	Branches Branches
	// Fleet is the name of the fleet: pull requests of another are left alone.
	Fleet string
	// Base is the branch that is followed.
	Base string
	// Files returns the tree of a commit.
	Files func(ctx context.Context, commit string) (fs.FS, error)
	// Load understands a tree.
	Load func(fs.FS) (*hub.Snapshot, error)
	// Contains reports whether the history of a commit has another one.
	Contains func(ctx context.Context, head, commit string) (bool, error)
	// Resolve takes what was decided about all held drifts, by cluster. It never blocks.
	Resolve func(map[string]ledger.Resolutions)
	// MinAge is how long a change has to last before it is offered.
	MinAge time.Duration
	// Record notes in the history what people decided.
	Record func(...history.Entry)
	// MaxOpen is how many pull requests and issues of the fleet are open at once.
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
	// wakeSpacing is the least time between two looks at open pull requests, however often
	// the Proposer is woken.
	wakeSpacing = 5 * time.Second
	// editPause is the time between two passes while edits wait.
	editPause = 100 * time.Millisecond
)

// A Proposer offers held drifts to Git as pull requests: merged, Git has the change;
// closed, it is put back. What no edit of Git can express is offered as an issue. It remembers
// nothing that is not on the forge: the branch of a change, or the marker in an issue, follows
// from what the change is.
type Proposer struct {
	cfg       Config
	reports   chan *status.Report
	wake      chan struct{}
	collector collector
	troubles  atomic.Pointer[[]string]

	// What follows belongs to Run.
	report  *status.Report
	known   collected
	changes map[string]*change
	// open are the open pull requests and issues of the fleet when they were last listed, by
	// branch.
	open   map[string]forge.PullRequest
	listed time.Time
	// woken is set when they are to be listed again before the interval is over.
	woken bool
	// missing is since when an open pull request has no drift, by branch.
	missing map[string]time.Time
	// rejected are changes whose pull request was closed without merging, by hash.
	rejected map[string]*change
	// waitingList are the offers that the newest pull request lists, since waitingListed.
	waitingList   []*offer
	waitingListed time.Time
	// resolved is what was decided last.
	resolved resolutions
	// retry is when the forge is asked again that does not answer, issues when issues are listed
	// again that could not be.
	retry, issues backoff.Backoff
	// disabled is when the repository was last found to have no issues; zero if it has. missed
	// says that a change was put back because of that.
	disabled time.Time
	missed   bool
	// putBack names who has asked to put back a change that has no pull request, by hash.
	putBack map[string]string

	requests chan request
	// held is what Held returns.
	held atomic.Pointer[heldChanges]
}

// collected is what collect returned for some drifts at some commit.
type collected struct {
	key      string
	commit   string
	offers   []*offer
	limited  []limited
	verdicts []verdict
	// lost says that the ledger was lost and nothing is decided yet; unheard are the clusters
	// that have never answered, as far as is known, and may have any drift.
	lost    bool
	unheard []string
}

// limited is a held drift whose rule ends.
type limited struct {
	drift *status.Drift
	rule  api.DriftRule
}

// A change is what is known of one offer while it lasts.
type change struct {
	since time.Time
	// branch is that of the pull request, or stands for the issue; it is empty until the forge was
	// asked about the change. number is that of the pull request or issue.
	branch string
	number int64
	state  forge.State
	url    string
	// merge is the commit that merged it; lacksMerge is the commit in force that was last found
	// not to have it.
	merge, lacksMerge string
	// asked is set if somebody has asked to offer it without waiting.
	asked bool
	// manualSince is since when no edit of the files can express it; zero if one can.
	manualSince time.Time
	// hold is set while the pull request or issue has the label that keeps the object as it is.
	hold bool
	// recheck asks the forge once more about a pull request or an issue that is closed.
	recheck bool
	// published is the digest of the files that the branch was last found to have.
	published string
	// waits says why it was not offered yet.
	waits string
	// retry is when the change is tried again that could not be offered or followed.
	retry backoff.Backoff
}

// due is when the change has lasted long enough to be offered.
func (c *change) due(minAge time.Duration) time.Time {
	if c.manualSince.After(c.since) {
		return c.manualSince.Add(minAge)
	}
	return c.since.Add(minAge)
}

// found notes what the forge says of the pull request or issue.
func (c *change) found(pr forge.PullRequest) {
	c.number = pr.Number
	c.branch, c.state, c.url, c.waits, c.recheck = pr.Branch, pr.State, pr.URL, "", false
	c.merge = pr.MergeCommit
	c.hold = slices.Contains(pr.Labels, holdLabel)
}

// New returns a Proposer that does nothing until it runs.
func New(cfg Config) *Proposer {
	return &Proposer{cfg: cfg, collector: collector{fleet: cfg.Fleet, load: cfg.Load}, reports: make(chan *status.Report, 1), wake: make(chan struct{}, 1), changes: map[string]*change{}, missing: map[string]time.Time{}, rejected: map[string]*change{}, putBack: map[string]string{}, requests: make(chan request)}
}

// Observe takes a new report. It never blocks; only one goroutine may call it.
func (p *Proposer) Observe(r *status.Report) {
	select {
	case <-p.reports:
	default:
	}
	p.reports <- r
}

// Wake has the open pull requests looked at soon. It never blocks, and any goroutine may
// call it.
func (p *Proposer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Troubles says what cannot be done on the forge, since when and why; empty if all can. Any
// goroutine may call it.
func (p *Proposer) Troubles() []string {
	if list := p.troubles.Load(); list != nil {
		return *list
	}
	return nil
}

// Run works until ctx is done. A forge that fails is no error: it is logged, told with
// each drift, and tried again.
func (p *Proposer) Run(ctx context.Context) error {
	timer := time.NewTimer(p.cfg.Interval)
	defer timer.Stop()
	defer p.troubles.Store(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case p.report = <-p.reports:
		case <-p.wake:
			p.woken = true
		case r := <-p.requests:
			r.done <- p.handle(ctx, r, time.Now())
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
	if p.cfg.Forge != nil && p.retry.Wait(now) <= 0 {
		err := p.sync(ctx, now)
		if ctx.Err() == nil {
			p.answered(err, now)
		}
	}
	p.resolve(now)
	troubles := p.findTroubles()
	p.troubles.Store(&troubles)
	next := p.cfg.Interval
	waits := []time.Duration{p.retry.Wait(now)}
	if p.collector.next != "" && !p.collector.unreadable {
		waits = append(waits, editPause)
	}
	if p.woken {
		waits = append(waits, p.listed.Add(wakeSpacing).Sub(now))
	}
	for _, c := range p.changes {
		waits = append(waits, c.retry.Wait(now))
		if c.branch == "" {
			waits = append(waits, c.due(p.cfg.MinAge).Sub(now))
		}
	}
	for _, l := range p.known.limited {
		waits = append(waits, l.rule.Until.Sub(now))
	}
	for _, wait := range waits {
		if wait > 0 {
			next = min(next, wait)
		}
	}
	return next
}

// findTroubles says what cannot be done on the forge.
func (p *Proposer) findTroubles() []string {
	var out []string
	if p.retry.Failures() > 0 {
		out = append(out, "drift is not offered as pull requests "+p.retry.String())
	}
	manual := slices.ContainsFunc(p.known.offers, func(o *offer) bool { return o.reason != nil })
	if p.issues.Failures() > 0 && (manual || p.hasIssues()) {
		out = append(out, "issues of drift are not followed "+p.issues.String())
	}
	if p.missed {
		out = append(out, "drift that no edit of the files in Git can express is put back: issues, as which it would be offered, are disabled in the repository")
	}
	return out
}

// answered notes how the forge answered.
func (p *Proposer) answered(err error, now time.Time) {
	switch {
	case err != nil:
		if p.retry.Fail(err, now) {
			p.cfg.Log.Warn("drift is not offered as pull requests; trying again", "err", err)
		}
	case p.retry.Succeed():
		p.cfg.Log.Info("the forge answers again")
	}
}

// group groups the held drifts, if they are others than before.
func (p *Proposer) group(ctx context.Context) {
	p.known.lost, p.known.unheard = !p.report.Decided(), nil
	for _, m := range p.report.Clusters {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, api.Joined) {
			p.known.unheard = append(p.known.unheard, m.Name)
		}
	}
	var key strings.Builder
	for i := range p.report.Drifts {
		if d := &p.report.Drifts[i]; d.State == api.DriftHeld {
			fmt.Fprintln(&key, d.Cluster, d.Placement, d.Mode, d.ResourceIdentifier, ledger.Fingerprint(d.Paths), d.Count, d.LastSeen)
		}
	}
	if key.Len() > 0 { // the edits depend on the clusters that have no drift, too
		key.WriteString(p.report.PlacedDigest())
	}
	fmt.Fprintln(&key, p.report.Head.Commit.Hash)
	if key.String() == p.known.key {
		return
	}
	files, err := p.cfg.Files(ctx, p.report.Head.Commit.Hash)
	if err != nil {
		p.cfg.Log.Warn("files of the commit not read; trying again", "commit", p.report.Head.Commit.Hash, "err", err)
		p.collector.next = "" // no hurry: they are read again in the next pass
		return
	}
	p.known.limited = nil
	for i := range p.report.Drifts {
		d := &p.report.Drifts[i]
		if rule, err := api.ParseDriftRule(d.Mode); d.State == api.DriftHeld && err == nil && !rule.Until.IsZero() {
			p.known.limited = append(p.known.limited, limited{d, rule})
		}
	}
	p.known.key, p.known.commit = key.String(), p.report.Head.Commit.Hash
	p.known.offers, p.known.verdicts = p.collector.collect(p.report, files)
	if len(p.known.undecided()) > 0 {
		p.known.key = "" // the next report may say more
	}
}

// undecided are the hashes of the changes of which it is not known yet whether they can be
// offered.
func (k *collected) undecided() map[string]bool {
	out := map[string]bool{}
	for _, v := range k.verdicts {
		if v.undecided != "" {
			out[v.undecided] = true
		}
	}
	return out
}

// has reports whether a change is held.
func (k *collected) has(hash string) bool {
	return slices.ContainsFunc(k.offers, func(o *offer) bool { return o.hash == hash }) ||
		slices.ContainsFunc(k.verdicts, func(v verdict) bool { return v.of.hash == hash })
}

// track remembers since when each change lasts.
func (p *Proposer) track(now time.Time) {
	last := p.changes
	p.changes = map[string]*change{}
	keep := func(hash string) {
		c := cmp.Or(p.changes[hash], last[hash])
		if c == nil && p.rejected[hash] != nil {
			c = p.rejected[hash]
			c.recheck = true // it may have been labeled or opened again since
		}
		if c == nil {
			c = &change{since: now}
		}
		p.changes[hash] = c
	}
	for _, o := range p.known.offers {
		keep(o.hash)
		switch c := p.changes[o.hash]; {
		case o.reason == nil:
			c.manualSince = time.Time{}
		case c.manualSince.IsZero():
			c.manualSince = now
		}
	}
	for _, v := range p.known.verdicts {
		if c := last[v.of.hash]; c != nil && c.keeps() {
			keep(v.of.hash)
		}
	}
	maps.DeleteFunc(p.putBack, func(hash, _ string) bool { return !p.known.has(hash) })
	for hash := range p.known.undecided() {
		c := last[hash]
		for _, pr := range p.open {
			if c == nil && p.changeOf(pr) == hash { // opened before a restart
				c = &change{since: now}
				c.found(pr)
			}
		}
		if c != nil {
			p.changes[hash] = c
		}
	}
	for hash, c := range last {
		if c.state == forge.Closed && p.changes[hash] == nil && len(p.rejected) < mostRejected {
			p.rejected[hash] = c
		}
	}
}

// offersByAge are the offers, the oldest first.
func (p *Proposer) offersByAge() []*offer {
	return slices.SortedStableFunc(slices.Values(p.known.offers), func(a, b *offer) int {
		return p.changes[a.hash].since.Compare(p.changes[b.hash].since)
	})
}
