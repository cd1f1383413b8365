// Package proposal decides what becomes of held drift, and offers it as changes of the repository.
//
// In each pass, a [Proposer]
//   - groups the held drifts of the newest report: the same change of one object counts as one,
//     on however many clusters it is;
//   - has an [edit.Editor] find the edit of the files that makes the change;
//   - opens a branch and a pull request for each change that has lasted long enough, or an issue if no
//     edit makes the change;
//   - follows what people decide: a merge, a close, or the label that keeps the object as it is;
//   - closes the pull requests and issues whose drift is over;
//   - sends the decisions to the members: leave the object as it is, revert the change, or compare
//     the object again.
//
// It stores nothing. The name of a branch and the marker in a body are derived from the change, the
// record in a body has what was written last, and the forge has what was decided about it.
package proposal

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Forge is one repository on a forge; see [forge.Shared].
type Forge interface {
	ForgetList()
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	FindPullRequest(ctx context.Context, base, branch string) (*forge.PullRequest, error)
	OpenPullRequest(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error)
	Edit(ctx context.Context, t forge.Thread, e forge.Edit) error
	Close(ctx context.Context, t forge.Thread, comment, body string) error
	ListIssues(ctx context.Context, label string, state forge.State) ([]forge.Thread, error)
	Issue(ctx context.Context, number int64) (*forge.Thread, error)
	OpenIssue(ctx context.Context, i forge.NewIssue) (forge.Thread, error)
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
	RequestReviewers(ctx context.Context, number int64, names []string) (refused []string, err error)
	EnsureLabels(ctx context.Context, labels []forge.Label) error
	LineURL(commit, path string, line int) string
}

// Branches are those of the repository; see [gitsource.Publisher].
type Branches interface {
	Publish(ctx context.Context, c gitsource.BranchCommit) (gitsource.BranchState, error)
	Remove(ctx context.Context, branch, marker string) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// Config configures a Proposer. All fields must be set, except Reviewers, OwnersFiles and Undo, and Forge and Branches: without these
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
	// Undo returns what undoing all changes after one commit up to another does to the files of head. If it is nil, nothing is
	// offered to undo content that has failed in an update run.
	Undo func(ctx context.Context, head, later, earlier string) (*gitsource.Undone, error)
	// Contains reports whether commit is head or an ancestor of head.
	Contains func(ctx context.Context, head, commit string) (bool, error)
	// SetDriftDecisions receives the decisions about all held drift, by cluster. It never blocks.
	SetDriftDecisions func(map[string]protocol.DriftDecisions)
	// MinAge is how long drift has to last before a pull request is opened for it.
	MinAge time.Duration
	// ExpireAfter is how long a pull request or an issue waits for a decision before it is closed, and the object stays as it
	// is; zero if it waits for ever.
	ExpireAfter time.Duration
	// ByPlacement makes one pull request have all changes of a placement, instead of one change each.
	ByPlacement bool
	// Record adds what people decided to the history.
	Record func(...history.Entry)
	// Opened, if set, is called after a pull request was opened. It never blocks.
	Opened func()
	// Reviewers are the users and teams whose reviews of pull requests are requested, besides the owners of the changed files
	// in the first of OwnersFiles that the repository has.
	Reviewers, OwnersFiles []string
	// MaxOpen is the maximum number of pull requests and issues of the fleet that are open at
	// once.
	MaxOpen int
	// Interval is the time between two checks of the open pull requests.
	Interval time.Duration
	Log      *slog.Logger
}

// ownPrefix is the prefix of the names of all branches with changes, and branchPrefix that of those with drift.
const (
	ownPrefix    = "gitfleet/"
	branchPrefix = ownPrefix + "drift/"
)

const (
	// recoveryGrace is how long the drift has to be gone before its pull request is closed:
	// after a restart, the members have not reported their drift yet.
	recoveryGrace = time.Minute
	// mostRejected is the maximum number of rejected changes in memory. For others the forge is
	// asked again.
	mostRejected = 1000
	// editPause is the time between two passes while edits remain to be computed.
	editPause = 100 * time.Millisecond
)

// A Proposer opens a pull request or an issue for each held change. If the pull request is merged, Git
// has the change; if it is closed, the change is reverted on the clusters.
type Proposer struct {
	reports  chan *status.Report
	wake     poll.Loop
	problems poll.Problems

	requests chan request
	// held is the result of Held.
	held atomic.Pointer[heldChanges]

	// The fields below belong to Run's goroutine.
	follower  follower
	collector collector
	report    *status.Report
	// lastSent are the decisions that were last sent.
	lastSent decisions
}

// collected is the result of collect for the drifts at one commit.
type collected struct {
	key        string
	commit     string
	offers     []*change
	notOffered []notOffered
	// files and head are the tree of the commit and what load returns for it; files is nil if they are not known.
	files fs.FS
	head  *hub.Snapshot
	load  func(fs.FS) (*hub.Snapshot, error)
	// lost says that the ledger was lost, so that nothing is decided yet. unheard are the known
	// clusters that have never answered: they may have drift of any kind.
	lost    bool
	unheard []string
}

// New returns a Proposer that does nothing until it runs.
func New(cfg Config) *Proposer {
	return &Proposer{
		reports: make(chan *status.Report, 1), wake: poll.NewLoop(), requests: make(chan request), collector: collector{fleet: cfg.Fleet, load: cfg.Load},
		follower: follower{tracker: tracker{cfg: cfg}, grouper: newGrouper(), written: map[string]written{}, states: map[string]*offerState{}, missing: map[string]time.Time{}, ending: map[string]*poll.Backoff{}, rejected: map[string]*offerState{}, putBack: map[string]string{}},
	}
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
func (p *Proposer) Wake() { p.wake.Wake() }

// Problems lists what cannot be done on the forge, since when and why. Any goroutine may call
// it.
func (p *Proposer) Problems() []string { return p.problems.List() }

// Run works until ctx is done. An error of the forge does not end it: the error is logged,
// reported with each drift, and the request is tried again.
func (p *Proposer) Run(ctx context.Context) error {
	timer := time.NewTimer(p.follower.tracker.cfg.Interval)
	defer timer.Stop()
	defer p.problems.Set(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case p.report = <-p.reports:
		case <-p.wake:
			p.follower.woken = true
		case r := <-p.requests:
			r.done <- p.handle(ctx, r, time.Now())
		case <-timer.C:
		}
		if p.report != nil && p.report.InForce != nil {
			now := time.Now()
			p.group(ctx)
			timer.Reset(p.advance(ctx, now))
		}
	}
}

// advance updates the forge and the members for the drift that is held now, and returns the time
// until it is to be called again.
func (p *Proposer) advance(ctx context.Context, now time.Time) time.Duration {
	p.follower.track(now)
	if p.follower.tracker.cfg.Forge != nil && p.follower.tracker.retry.Wait(now) <= 0 {
		p.recordForgeResult(ctx, p.follower.sync(ctx, now), now)
	}
	p.sendDecisions(now)
	p.problems.Set(p.findProblems())
	next := p.follower.tracker.cfg.Interval
	waits := []time.Duration{p.follower.tracker.retry.Wait(now)}
	if p.collector.next != "" && !p.collector.unreadable || p.follower.unfinished {
		waits = append(waits, editPause)
	}
	if p.follower.woken {
		waits = append(waits, p.follower.listed.Add(poll.Spacing).Sub(now))
	}
	for _, s := range p.follower.states {
		waits = append(waits, s.retry.Wait(now))
		if s.name == "" {
			waits = append(waits, s.due(p.follower.tracker.cfg.MinAge).Sub(now))
		}
	}
	for _, c := range p.follower.known.all() {
		for _, d := range c.drifts {
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

// findProblems lists what cannot be done on the forge.
func (p *Proposer) findProblems() []string {
	var out []string
	if p.follower.tracker.retry.Failures() > 0 {
		out = append(out, "drift is not offered as pull requests "+p.follower.tracker.retry.String())
	}
	manual := slices.ContainsFunc(p.follower.known.offers, func(c *change) bool { return c.reason != nil })
	if p.follower.tracker.issues.Failures() > 0 && (manual || p.follower.follows(isIssue)) {
		out = append(out, "issues of drift are not followed "+p.follower.tracker.issues.String())
	}
	if p.follower.tracker.missed {
		out = append(out, "drift that no edit of the files in Git can express is put back, since issues are disabled in the repository")
	}
	return out
}

// recordForgeResult records the result of a request to the forge.
func (p *Proposer) recordForgeResult(ctx context.Context, err error, now time.Time) {
	p.follower.tracker.retry.Record(ctx, err, now, p.follower.tracker.cfg.Log, "drift is not offered as pull requests", "the forge answers again")
}

// group groups the held drifts, unless they are the same as before.
func (p *Proposer) group(ctx context.Context) {
	p.follower.known.lost, p.follower.known.unheard = !p.report.Decided(), nil
	for _, m := range p.report.Clusters {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, api.Joined) {
			p.follower.known.unheard = append(p.follower.known.unheard, m.Name)
		}
	}
	var key strings.Builder
	for i := range p.report.Drifts {
		if d := &p.report.Drifts[i]; d.State.AwaitsDecision(d.Rule) {
			fmt.Fprintln(&key, d.Cluster, d.Placement, d.Rule, d.Addition, d.ResourceIdentifier, protocol.Fingerprint(d.Paths, d.Digest), d.Count, d.LastSeen)
		}
	}
	if key.Len() > 0 { // the edits also depend on the clusters without drift
		key.WriteString(p.report.PlacedDigest())
	}
	fmt.Fprintln(&key, failedKey(p.report), p.report.InForce.Commit.Hash)
	if key.String() == p.follower.known.key {
		return
	}
	files, err := p.follower.tracker.cfg.Files(ctx, p.report.InForce.Commit.Hash)
	if err != nil {
		p.follower.tracker.cfg.Log.Warn("files of the commit not read; trying again", "commit", p.report.InForce.Commit.Hash, "err", err)
		p.collector.next = "" // the files are read again in the next pass
		return
	}
	p.follower.known.key, p.follower.known.commit = key.String(), p.report.InForce.Commit.Hash
	p.follower.known.files, p.follower.known.head, p.follower.known.load = files, p.report.InForce, p.collector.load
	offers, others := collectFailed(ctx, p, files)
	p.follower.known.offers, p.follower.known.notOffered = p.collector.collect(p.report, files)
	p.follower.known.offers, p.follower.known.notOffered = append(p.follower.known.offers, offers...), append(p.follower.known.notOffered, others...)
	if len(p.follower.known.undecided()) > 0 {
		p.follower.known.key = "" // the next report may have more drift
	}
}

// all returns all held changes.
func (k *collected) all() []*change {
	out := slices.Clone(k.offers)
	for _, n := range k.notOffered {
		out = append(out, n.change)
	}
	return out
}

// undecided are the hashes of the changes for which it is not known yet whether a pull request
// can be opened.
func (k *collected) undecided() map[string]bool {
	out := map[string]bool{}
	for _, n := range k.notOffered {
		if n.undecided {
			out[n.change.hash] = true
		}
	}
	return out
}
