package proposal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/owners"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

// A tracker finds and writes the pull requests and issues of the fleet.
type tracker struct {
	cfg Config
	// allIssues are the issues of the repository as they were listed for a change that is due; nil
	// if they are to be listed for the next one.
	allIssues *issueList
	// retry is the backoff of a forge that does not answer, and issues that of the list of
	// issues.
	retry, issues poll.Backoff
	// disabled is the time at which the repository was last found to have issues disabled; zero
	// if they are enabled. missed says that a change was reverted because no issue could be
	// opened for it.
	disabled time.Time
	missed   bool
	// labeled are the labels that the repository has, as far as they could be created. labelsRefused says that some could
	// not.
	labeled       map[string]bool
	labelsRefused bool
}

// ensureLabels creates the labels of a change, and those that people may set or look for. If that is refused, the log says
// so once: a pull request works without them.
func (t *tracker) ensureLabels(ctx context.Context, names []string) {
	var labels []forge.Label
	for _, l := range slices.Concat(labelNames(), names) {
		if !t.labeled[l] {
			labels = append(labels, labelOf(l))
		}
	}
	if len(labels) == 0 {
		return
	}
	err := t.cfg.Forge.EnsureLabels(ctx, labels)
	if err != nil && isGeneral(err) {
		return // the request that follows fails in the same way
	}
	if t.labeled == nil {
		t.labeled = map[string]bool{}
	}
	for _, l := range labels {
		t.labeled[l.Name] = true
	}
	if err != nil && !t.labelsRefused {
		t.labelsRefused = true
		t.cfg.Log.Warn("labels not created; create them by hand, or let the user of the token do it", "err", err)
	}
}

// reviewersOf returns whose reviews of an edit of a commit are to be requested: the configured users and teams, and the owners
// of the files that it changes.
func (t *tracker) reviewersOf(ctx context.Context, edit []edit.FileChange, commit string) ([]string, error) {
	names := slices.Clone(t.cfg.Reviewers)
	if len(t.cfg.OwnersFiles) > 0 {
		tree, err := t.cfg.Files(ctx, commit)
		if err != nil {
			return nil, err
		}
		var files []string
		for _, f := range edit {
			files = append(files, f.Path)
		}
		for _, name := range owners.Of(tree, t.cfg.OwnersFiles, files) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// requestReviewers requests the reviews of a pull request that were not requested before, and returns the line of its body
// that says which were. Whoever cannot be requested is left out.
func (t *tracker) requestReviewers(ctx context.Context, pr thread, names []string) (asked askedReviewers, err error) {
	asked, known := askedIn(pr.Body)
	missing := asked.missing(names)
	if !known { // it was opened by a version that has asked all of them
		return asked.with(missing), nil
	}
	if len(missing) == 0 {
		return asked, nil
	}
	refused, err := t.cfg.Forge.RequestReviewers(ctx, pr.Number, missing)
	switch {
	case err != nil && isGeneral(err):
		return asked, err
	case err != nil:
		t.cfg.Log.Warn("reviewers of a pull request not requested", "url", pr.URL, "err", err)
	case len(refused) > 0:
		t.cfg.Log.Warn("the forge does not accept some reviewers of a pull request", "url", pr.URL, "reviewers", strings.Join(refused, ", "))
	}
	return asked.with(missing), nil
}

// find returns the pull request of a branch; nil if there is none.
func (t *tracker) find(ctx context.Context, branch string) (*thread, error) {
	return fromPullRequest(t.cfg.Forge.FindPullRequest(ctx, t.cfg.Base, branch))
}

// current returns what a pull request or an issue is now; nil if it is gone.
func (t *tracker) current(ctx context.Context, known thread) (*thread, error) {
	if !known.isIssue() {
		return t.find(ctx, known.name)
	}
	i, err := t.cfg.Forge.Issue(ctx, known.Number)
	if errors.Is(err, forge.ErrIssuesDisabled) {
		return nil, nil
	}
	if err != nil || i == nil {
		return nil, err
	}
	return &thread{Thread: *i, name: known.name}, nil
}

// end closes a pull request or an issue.
func (t *tracker) end(ctx context.Context, pr thread, comment, body string) error {
	if pr.isIssue() {
		t.allIssues = nil
	}
	return t.cfg.Forge.Close(ctx, pr.Thread, comment, body)
}

// offersIssues reports whether changes without an edit can be offered.
func (t *tracker) offersIssues(now time.Time) bool {
	return t.cfg.Forge != nil && (t.disabled.IsZero() || now.Sub(t.disabled) >= disabledRecheck)
}

// triesIssues reports whether issues are to be listed again that could not be.
func (t *tracker) triesIssues(now time.Time) bool {
	return t.issues.Failures() > 0 && t.issues.Wait(now) <= 0 || t.missed && t.offersIssues(now)
}

// issuesFailed notes that issues cannot be listed.
func (t *tracker) issuesFailed(err error, now time.Time) {
	if t.issues.Fail(err, now) {
		t.cfg.Log.Warn("issues of drifts not listed; trying again", "err", err)
	}
}

// noteDisabled notes that issues are disabled in the repository if an error says so. It returns other
// errors.
func (t *tracker) noteDisabled(err error, now time.Time) error {
	if errors.Is(err, forge.ErrIssuesDisabled) {
		t.disabled = now
		return nil
	}
	return err
}

// findIssue returns the issue of a change that still counts; nil if there is none. The issues are
// listed once in an interval: a burst of changes is due over many passes.
func (t *tracker) findIssue(ctx context.Context, hash string, since, now time.Time) (found *thread, err error) {
	if t.allIssues == nil {
		t.allIssues = &issueList{at: now}
		t.allIssues.list, t.allIssues.err = t.cfg.Forge.ListIssues(ctx, issueLabel, "")
	}
	for _, i := range t.allIssues.list {
		if markedAs(i.Body, t.cfg.Fleet) != hash {
			continue
		}
		// One that a person has closed counts more than a newer one that gitfleet has.
		same := fromIssue(i, hash)
		if found == nil || same.State == forge.Open || isOver(found, since) && !isOver(&same, since) {
			found = &same
		}
	}
	if found != nil && isOver(found, since) {
		found = nil
	}
	return found, t.allIssues.err
}

// findIssueIfListed is findIssue for a change that can be offered without issues. While they cannot
// be listed it finds none, and the change is marked.
func (t *tracker) findIssueIfListed(ctx context.Context, hash string, s *offerState, now time.Time) (*thread, error) {
	s.issueUnknown = true
	if t.issues.Wait(now) > 0 || !t.offersIssues(now) {
		return nil, nil
	}
	found, err := t.findIssue(ctx, hash, s.since, now)
	s.issueUnknown = err != nil
	if err = t.noteDisabled(err, now); err != nil && !isGeneral(err) {
		t.issuesFailed(err, now)
		err = nil
	}
	return found, err
}

func (t *tracker) createIssue(ctx context.Context, c *change) (*thread, error) {
	faults.At("before issue")
	t.ensureLabels(ctx, c.labels())
	i, err := t.cfg.Forge.OpenIssue(ctx, forge.NewIssue{Title: c.title(), Body: c.body(t.cfg.Fleet, nil) + recordOf(c.title(), c.labels()).String(), Labels: c.labels()})
	faults.At("after issue")
	if err != nil {
		t.allIssues = nil // only the answer may be lost
		return nil, err
	}
	t.disabled, t.missed = time.Time{}, false
	if t.allIssues != nil {
		t.allIssues.list = append(t.allIssues.list, i)
	}
	t.logOffered(c, "as an issue", i.URL)
	opened := fromIssue(i, c.hash)
	return &opened, nil
}

// logOffered logs that a change is offered.
func (t *tracker) logOffered(c *change, how, url string) {
	if c.rollback != nil {
		t.cfg.Log.Info("content that has failed is offered to be undone "+how, "url", url, "placement", c.rollback.Placement.String(), "run", c.rollback.Failed.Run)
		return
	}
	t.cfg.Log.Info("a drift is offered "+how, "url", url, "object", c.id.String())
}

// An issueList is what listing issues came to at a time.
type issueList struct {
	at   time.Time
	list []forge.Thread
	err  error
}

// findEarlier returns the pull request or the issue that offered a change before and still counts;
// nil if there is none. Then branch is the first one of the change without a pull request, and empty
// if there are too many.
func (t *tracker) findEarlier(ctx context.Context, c *change, s *offerState, now time.Time) (found *thread, branch string, err error) {
	if c.reason != nil { // it cannot be offered without issues
		if t.offersIssues(now) {
			found, err = t.findIssue(ctx, c.hash, s.since, now)
			if err = t.noteDisabled(err, now); err != nil || found != nil {
				return found, "", err
			}
		}
		return t.findPullRequest(ctx, c, s.since)
	}
	found, branch, err = t.findPullRequest(ctx, c, s.since)
	if err == nil && found == nil {
		found, err = t.findIssueIfListed(ctx, c.hash, s, now)
	}
	return found, branch, err
}

// findPullRequest returns the pull request of a change that still counts; nil if there is none. The
// branch is that of findEarlier.
func (t *tracker) findPullRequest(ctx context.Context, c *change, since time.Time) (*thread, string, error) {
	prefix := branchPrefix
	if c.rollback != nil {
		prefix = rollbackPrefix
	}
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		branch := branchOf(prefix, c.hash, attempt)
		found, err := t.find(ctx, branch)
		if err != nil || found == nil || !isOver(found, since) {
			return found, branch, err
		}
	}
	return nil, "", nil // too many
}

// commentOnce adds a comment to a pull request, unless it already has it.
func (t *tracker) commentOnce(ctx context.Context, pr thread, marker, text string) error {
	found, err := t.cfg.Forge.FindComment(ctx, pr.Number, marker)
	if err != nil || found != nil {
		return err
	}
	_, err = t.cfg.Forge.AddComment(ctx, pr.Number, text+"\n\n"+marker+"\n")
	return err
}

// maxAttempts is the maximum number of times that the same change is offered again after it
// had ended.
const maxAttempts = 100

// isGeneral reports whether every request to the forge or the Git server is likely to fail in
// the same way. Other errors are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*remote.HTTPError](err)
	return remote || forge.IsGeneral(err)
}

const (
	// disabledRecheck is the time between two checks whether a repository without issues has
	// enabled them.
	disabledRecheck = time.Hour
)

// recordResult records the result of a request to the forge.
func (t *tracker) recordResult(ctx context.Context, err error, now time.Time) {
	t.retry.Record(ctx, err, now, t.cfg.Log, "drift is not offered as pull requests", "the forge answers again")
}
