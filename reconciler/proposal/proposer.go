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
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

const (
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

// handle executes a request, and updates the forge and the members.
func (p *Proposer) handle(ctx context.Context, r request, now time.Time) response {
	done, err := p.execute(ctx, r, now)
	if err != nil {
		return response{err: err}
	}
	p.advance(ctx, now)
	return response{text: done()}
}

// advance updates the forge and the members for the drift that is held now, and returns the time
// until it is to be called again.
func (p *Proposer) advance(ctx context.Context, now time.Time) time.Duration {
	p.follower.track(now)
	if p.follower.tracker.cfg.Forge != nil && p.follower.tracker.retry.Wait(now) <= 0 {
		p.follower.tracker.recordResult(ctx, p.follower.sync(ctx, now), now)
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

// group groups the held drifts, unless they are the same as before.
func (p *Proposer) group(ctx context.Context) {
	p.follower.known.lost, p.follower.known.unanswered = !p.report.Decided(), nil
	for _, m := range p.report.Clusters {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, api.Joined) {
			p.follower.known.unanswered = append(p.follower.known.unanswered, m.Name)
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
	offers, others := p.collector.collectFailed(ctx, &p.follower.tracker.cfg, p.report, files)
	p.follower.known.offers, p.follower.known.notOffered = p.collector.collect(p.report, files)
	p.follower.known.offers, p.follower.known.notOffered = append(p.follower.known.offers, offers...), append(p.follower.known.notOffered, others...)
	if len(p.follower.known.undecided()) > 0 {
		p.follower.known.key = "" // the next report may have more drift
	}
}
