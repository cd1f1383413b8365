package review

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// rolloutSpacing is the minimum time between two statuses of a commit during its rollout. It
// grows with their number, since forges limit the number of statuses.
const rolloutSpacing = 15 * time.Second

// A rollout sets the statuses of the commits of the base.
type rollout struct {
	cfg *Config
	// inForce is the status of the commit in force, and refused that of the newest commit if it
	// is not in force.
	inForce, refused forge.Status
	// lastSet is when inForce was last set, and timesSet how many times it was set for its commit.
	lastSet  time.Time
	timesSet int
	// resumed says that the statuses from before a restart were read.
	resumed bool
	// retry is the backoff of setting a status.
	retry poll.Backoff
}

// pass updates the statuses, and returns the time of the next update. Errors do not
// affect anything else.
func (r *rollout) pass(ctx context.Context, report *status.Report, now time.Time) time.Duration {
	if wait := r.retry.Wait(now); wait > 0 {
		return wait
	}
	wait, err := r.update(ctx, report, now)
	r.retry.Record(ctx, err, now, r.cfg.Log, "rollout not shown on the forge", "rollout shown on the forge again")
	if err != nil && ctx.Err() == nil {
		return r.retry.Wait(now)
	}
	return wait
}

// update sets the statuses of the commit in force and of a refused one, and returns the
// time of the next update. The last status of an earlier commit stays, unless it is still
// pending.
func (r *rollout) update(ctx context.Context, report *status.Report, now time.Time) (time.Duration, error) {
	source := &report.Source
	if !r.resumed {
		last, err := r.statusBefore(ctx, source.InForce.Hash)
		if err != nil {
			return 0, err
		}
		r.inForce, r.resumed = last, true
	}
	next, last := r.status(report, source.InForce.Hash), r.inForce
	if last.Commit != next.Commit {
		if last.State == forge.StatusPending {
			last.State, last.Description = forge.StatusErrored, fmt.Sprintf("superseded by %s at %s", shortHash(next.Commit), last.Description)
			if err := r.cfg.setStatus(ctx, &r.inForce, last); err != nil {
				return 0, err
			}
		}
		r.lastSet, r.timesSet = time.Time{}, 0
	}
	wait := r.cfg.Interval
	if due := r.due(next).Sub(now); due > 0 {
		wait = due
	} else if next != r.inForce && !r.keepsSuccess(next) {
		if err := r.cfg.setStatus(ctx, &r.inForce, next); err != nil {
			return 0, err
		}
		r.lastSet = now
		r.timesSet++
	}
	why := source.LoadError
	if len(source.Problems) > 0 {
		why = source.Problems.Summary()
	}
	if why == "" || source.Newest.Hash == source.InForce.Hash {
		return wait, nil
	}
	return wait, r.cfg.setStatus(ctx, &r.refused, r.commitStatus(source.Newest.Hash, forge.StatusFailure, "refused: "+why))
}

// maxBefore is how many commits are searched for a status from before a restart.
const maxBefore = 20

// statusBefore returns the last status from before a restart: that of the commit in force, or
// of the commit that was in force then. Each commit that was in force has a status. The zero
// status is returned if none is found.
func (r *rollout) statusBefore(ctx context.Context, commit string) (forge.Status, error) {
	for range maxBefore {
		found, err := r.cfg.Forge.FindStatus(ctx, commit, r.cfg.statusName("rollout"))
		if err != nil {
			return forge.Status{}, err
		}
		if found != nil {
			return *found, nil
		}
		c, err := r.cfg.Source.Commit(ctx, commit)
		if err != nil || len(c.Parents) == 0 {
			return forge.Status{}, nil // the first commit, or the end of the known history
		}
		commit = c.Parents[0]
	}
	return forge.Status{}, nil
}

// due returns when the next status of a commit may be set. The end of a rollout is shown at
// once.
func (r *rollout) due(next forge.Status) time.Time {
	if next == r.inForce || next.State != r.inForce.State && r.inForce.State != forge.StatusFailure {
		return time.Time{}
	}
	return r.lastSet.Add(rolloutSpacing + time.Duration(r.timesSet)*rolloutSpacing/10)
}

// keepsSuccess reports whether the rollout has ended, and the new status would only say that an object
// is unavailable now.
func (r *rollout) keepsSuccess(next forge.Status) bool {
	last := r.inForce
	return last.Commit == next.Commit && last.State == forge.StatusSuccess && last.Description != noClusterChanges && next.State == forge.StatusPending
}

func (r *rollout) commitStatus(commit string, state forge.StatusState, text string) forge.Status {
	return forge.Status{Commit: commit, Context: r.cfg.statusName("rollout"), State: state, Description: shortened(markdown.Plain(text))}
}

// status returns the status of the commit in force.
func (r *rollout) status(report *status.Report, commit string) forge.Status {
	p := progressOf(report, commit)
	switch {
	case p.failure != "":
		return r.commitStatus(commit, forge.StatusFailure, p.text()+"; "+p.failure)
	case p.done < len(p.clusters) || p.blocked > 0 || p.missing != "":
		return r.commitStatus(commit, forge.StatusPending, p.text())
	case len(p.clusters) == 0:
		return r.commitStatus(commit, forge.StatusSuccess, noClusterChanges)
	}
	return r.commitStatus(commit, forge.StatusSuccess, p.text())
}

const noClusterChanges = "no cluster changes"

// A progress counts the clusters that have the changes of a commit.
type progress struct {
	clusters  map[string]bool // whether each cluster has all of them, and they are available
	done      int
	blocked   int
	suspended int
	failure   string
	// missing is the first reason why a placement is not scheduled as its policy asks for, or not on all clusters during its rollout.
	missing string
}

func (p *progress) text() string {
	text := fmt.Sprintf("%d of %s", p.done, markdown.Count(len(p.clusters), "cluster"))
	if p.suspended > 0 {
		text += fmt.Sprintf(", %d suspended", p.suspended)
	}
	if p.blocked > 0 {
		text += fmt.Sprintf("; %s blocked until a commit allows them", markdown.Count(p.blocked, "deletion"))
	}
	if p.missing != "" {
		text += "; " + p.missing
	}
	return text
}

// add adds a cluster that a placement changes.
func (p *progress) add(cluster string, ready bool) {
	before, known := p.clusters[cluster]
	p.clusters[cluster] = ready && (before || !known)
}

func progressOf(r *status.Report, commit string) *progress {
	p := &progress{clusters: map[string]bool{}}
	judge, suspended := status.NewJudge(r, status.ToBeAvailable), map[string]bool{}
	for d, s := range r.Each() {
		missing, verdicts := judge.Placement(d, s)
		concerned := false
		for i := range d.Clusters {
			c := &d.Clusters[i]
			p.blocked += len(c.BlockedDeletions)
			if c.Commit != commit && c.Behind == 0 && c.Waits == "" && !c.Removing {
				continue
			}
			concerned = true
			if verdicts[i].Reason == fulfilment.Suspended {
				suspended[c.Cluster] = true
			}
			done := verdicts[i].Degree == fulfilment.Fulfilled || verdicts[i].Reason == fulfilment.DeletionsBlocked && c.Available
			p.add(c.Cluster, done && c.Behind == 0)
			if p.failure == "" && c.Failure != "" {
				why, _, _ := strings.Cut(c.Failure, "\n")
				p.failure = fmt.Sprintf("%s on %s: %s", d.Placement, c.Cluster, why)
			}
		}
		// A placement that was not scheduled as wanted before, and whose clusters this commit does not change, misses nothing of
		// it, and neither does a cluster that is only absent since the end of the rollout.
		why := status.ScheduleProblem(d, s)
		unrelated := !concerned && unscheduledBefore(s, r.Source.Since)
		if !missing.Fulfilled() && !unrelated && (why != "" || d.Rollout == nil || d.Rollout.Finished.IsZero()) {
			p.addMissing(d, why)
		}
	}
	for _, ready := range p.clusters {
		if ready {
			p.done++
		}
	}
	p.suspended = len(suspended)
	return p
}

// unscheduledBefore reports whether a placement has not been scheduled as wanted since before a time; conditions have whole
// seconds.
func unscheduledBefore(s *api.PlacementStatus, at time.Time) bool {
	c := status.Unscheduled(s)
	return c != nil && c.Status == metav1.ConditionFalse && c.LastTransitionTime.Time.Before(at.Truncate(time.Second))
}

// addMissing adds the clusters that the policy of a placement asks for and that it is not on. why is the reason why it is not
// scheduled as the policy asks for, if there is one.
func (p *progress) addMissing(d *status.Detail, why string) {
	for _, a := range d.Absent {
		p.add(a.Cluster, false)
		why = cmp.Or(why, "not on "+a.Cluster+": "+a.Reason)
	}
	if p.missing == "" && why != "" {
		p.missing = d.Placement + ": " + why
	}
}
