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
	List(ctx context.Context, prefix string) ([]string, error)
}

// Config configures a Proposer. All fields must be set, except Forge and Branches: without them
// no pull request is opened, and drift that an edit of the files could express stays on the
// cluster.
type Config struct {
	Forge    Forge
	Branches Branches
	// Fleet is the name of the fleet. Pull requests of other fleets are left alone.
	Fleet string
	// Base is the tracked branch.
	Base string
	// Files returns the tree of a commit.
	Files func(ctx context.Context, commit string) (fs.FS, error)
	// Load loads the tree of a commit.
	Load func(fs.FS) (*hub.Snapshot, error)
	// Contains reports whether commit is head or an ancestor of head.
	Contains func(ctx context.Context, head, commit string) (bool, error)
	// Resolve receives the decisions about all held drift, by cluster. It never blocks.
	Resolve func(map[string]ledger.Resolutions)
	// MinAge is how long drift has to last before a pull request is opened for it.
	MinAge time.Duration
	// Record adds what people decided to the history.
	Record func(...history.Entry)
	// MaxOpen is the maximum number of pull requests and issues of the fleet that are open at
	// once.
	MaxOpen int
	// Interval is the time between two checks of the open pull requests.
	Interval time.Duration
	Log      *slog.Logger
}

// branchPrefix is the prefix of the names of all branches with changes.
const branchPrefix = "gitfleet/drift/"

const (
	// recoveryGrace is how long the drift has to be gone before its pull request is closed:
	// after a restart, the members have not reported their drift yet.
	recoveryGrace = time.Minute
	// mostRejected is the maximum number of rejected changes in memory. For others the forge is
	// asked again.
	mostRejected = 1000
	// wakeSpacing is the minimum time between two checks of the open pull requests, however
	// often Wake is called.
	wakeSpacing = 5 * time.Second
	// editPause is the time between two passes while edits remain to be computed.
	editPause = 100 * time.Millisecond
)

// A Proposer opens a pull request for each held drift. If it is merged, Git has the change; if
// it is closed, the change is reverted on the cluster. A change that no edit of the files can
// express is opened as an issue. All state is on the forge: the branch name or the marker in
// the issue is derived from the change.
type Proposer struct {
	cfg       Config
	reports   chan *status.Report
	wake      chan struct{}
	collector collector
	troubles  atomic.Pointer[[]string]

	// The fields below belong to Run's goroutine.
	report  *status.Report
	known   collected
	changes map[string]*change
	// open are the open pull requests and issues of the fleet as last listed, by branch.
	open   map[string]forge.PullRequest
	listed time.Time
	// listedIssues says that only issues were listed last.
	listedIssues bool
	// allIssues are the issues of the repository as they were listed for a change that is due; nil
	// if they are to be listed for the next one.
	allIssues *issueList
	// leftovers are the branches that may be left over from earlier; nil until they are listed.
	// leftoversAt is the time at which the forge was last asked about some.
	leftovers     []string
	leftoversAt   time.Time
	leftoverRetry backoff.Backoff
	// woken requests a new list before the interval is over.
	woken bool
	// missing has the time since when an open pull request has had no drift, by branch.
	missing map[string]time.Time
	// rejected are the changes whose pull request was closed without being merged, by hash.
	rejected map[string]*change
	// waitingList are the changes that the newest pull request lists as waiting, since
	// waitingListed.
	waitingList   []*offer
	waitingListed time.Time
	// resolved are the decisions that were last sent.
	resolved resolutions
	// retry is the backoff of a forge that does not answer, and issues that of the list of
	// issues.
	retry, issues backoff.Backoff
	// disabled is the time at which the repository was last found to have issues disabled; zero
	// if they are enabled. missed says that a change was reverted because no issue could be
	// opened for it.
	disabled time.Time
	missed   bool
	// putBack are the users who asked to revert a change that has no pull request, by hash.
	putBack map[string]string

	requests chan request
	// held is the result of Held.
	held atomic.Pointer[heldChanges]
}

// collected is the result of collect for the drifts at one commit.
type collected struct {
	key      string
	commit   string
	offers   []*offer
	verdicts []verdict
	// lost says that the ledger was lost, so that nothing is decided yet. unheard are the known
	// clusters that have never answered: they may have drift of any kind.
	lost    bool
	unheard []string
}

// A change is the state of one offer, kept while the drift lasts.
type change struct {
	since time.Time
	// branch is the branch of the pull request, or stands for the issue; it is empty until the
	// forge was asked about the change. number is the number of the pull request or issue.
	branch string
	number int64
	state  forge.State
	url    string
	// merge is the merge commit. lacksMerge is the commit in force that was last found not to
	// have it in its history.
	merge, lacksMerge string
	// asked says that a user requested the pull request without the minimum age. askedBy is that
	// user, and is empty again once the pull request is open.
	asked   bool
	askedBy string
	// neverOffered is set once the forge was asked about the change and had neither a pull request
	// nor an issue of it that counts.
	neverOffered bool
	// issueUnknown is set while it is not known whether an issue has offered the change before,
	// since issues cannot be listed.
	issueUnknown bool
	// manualSince is the time since when no edit of the files has been able to express the
	// change; zero if one can.
	manualSince time.Time
	// hold is set while the pull request or issue has the label that keeps the object as it is.
	hold bool
	// recheck requests one more query about a pull request or issue that is closed.
	recheck bool
	// published are the files that the branch was last found to have.
	published []FileChange
	// waits is the reason why no pull request was opened yet.
	waits string
	// retry is the backoff of a change whose pull request could not be opened or updated.
	retry backoff.Backoff
}

// due is the time at which the change has lasted long enough for a pull request.
func (c *change) due(minAge time.Duration) time.Time {
	if c.manualSince.After(c.since) {
		return c.manualSince.Add(minAge)
	}
	return c.since.Add(minAge)
}

// found records the state of the pull request or issue on the forge.
func (c *change) found(pr forge.PullRequest) {
	c.number = pr.Number
	c.branch, c.state, c.url, c.waits, c.recheck = pr.Branch, pr.State, pr.URL, "", false
	c.merge = pr.MergeCommit
	c.hold = slices.Contains(pr.Labels, holdLabel)
}

// offerAnew makes the change be offered again after gitfleet has closed its pull request or issue.
func (c *change) offerAnew() { *c = change{since: c.since, asked: c.asked, askedBy: c.askedBy} }

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

// Wake causes a check of the open pull requests soon. It never blocks, and any goroutine may
// call it.
func (p *Proposer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Troubles lists what cannot be done on the forge, since when and why. Any goroutine may call
// it.
func (p *Proposer) Troubles() []string {
	if list := p.troubles.Load(); list != nil {
		return *list
	}
	return nil
}

// Run works until ctx is done. An error of the forge does not end it: the error is logged,
// reported with each drift, and the request is tried again.
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
			now := time.Now()
			p.group(ctx)
			timer.Reset(p.advance(ctx, now))
		}
	}
}

// advance updates the forge and the members for the drift that is held now, and returns the time
// until it is to be called again.
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
	for _, o := range p.known.all() {
		for _, d := range o.drifts {
			waits = append(waits, driftRule(d).Until.Sub(now))
		}
	}
	for _, wait := range waits {
		if wait > 0 {
			next = min(next, wait)
		}
	}
	return next
}

// findTroubles lists what cannot be done on the forge.
func (p *Proposer) findTroubles() []string {
	var out []string
	if p.retry.Failures() > 0 {
		out = append(out, "drift is not offered as pull requests "+p.retry.String())
	}
	manual := slices.ContainsFunc(p.known.offers, func(o *offer) bool { return o.reason != nil })
	if p.issues.Failures() > 0 && (manual || p.follows(isIssue)) {
		out = append(out, "issues of drift are not followed "+p.issues.String())
	}
	if p.missed {
		out = append(out, "drift that no edit of the files in Git can express is put back: issues, as which it would be offered, are disabled in the repository")
	}
	return out
}

// answered records the result of a request to the forge.
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

// group groups the held drifts, unless they are the same as before.
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
			fmt.Fprintln(&key, d.Cluster, d.Placement, d.Mode, d.ResourceIdentifier, ledger.Fingerprint(d.Paths, d.Digest), d.Count, d.LastSeen)
		}
	}
	if key.Len() > 0 { // the edits also depend on the clusters without drift
		key.WriteString(p.report.PlacedDigest())
	}
	fmt.Fprintln(&key, p.report.Head.Commit.Hash)
	if key.String() == p.known.key {
		return
	}
	files, err := p.cfg.Files(ctx, p.report.Head.Commit.Hash)
	if err != nil {
		p.cfg.Log.Warn("files of the commit not read; trying again", "commit", p.report.Head.Commit.Hash, "err", err)
		p.collector.next = "" // the files are read again in the next pass
		return
	}
	p.known.key, p.known.commit = key.String(), p.report.Head.Commit.Hash
	p.known.offers, p.known.verdicts = p.collector.collect(p.report, files)
	if len(p.known.undecided()) > 0 {
		p.known.key = "" // the next report may have more drift
	}
}

// all returns all held changes.
func (k *collected) all() []*offer {
	out := slices.Clone(k.offers)
	for _, v := range k.verdicts {
		out = append(out, v.of)
	}
	return out
}

// undecided are the hashes of the changes for which it is not known yet whether a pull request
// can be opened.
func (k *collected) undecided() map[string]bool {
	out := map[string]bool{}
	for _, v := range k.verdicts {
		if v.undecided {
			out[v.of.hash] = true
		}
	}
	return out
}

// track records the time since when each change has lasted.
func (p *Proposer) track(now time.Time) {
	last := p.changes
	p.changes = map[string]*change{}
	keep := func(hash string) {
		c := cmp.Or(p.changes[hash], last[hash])
		if c == nil && p.rejected[hash] != nil {
			c = p.rejected[hash]
			c.recheck = true // it may have been labeled or reopened since
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
	all := p.known.all()
	maps.DeleteFunc(p.putBack, func(hash, _ string) bool {
		return !slices.ContainsFunc(all, func(o *offer) bool { return o.hash == hash })
	})
	for hash := range p.known.undecided() {
		c := last[hash]
		for branch, pr := range p.open {
			if c == nil && changeHash(branch) == hash { // opened before a restart
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
