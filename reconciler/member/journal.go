package member

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
)

// A journal adds what is done to objects to the history.
type journal struct {
	*cluster
	desired.View
	// deletions are those that were not reported yet; see Agent.
	deletions deletion.Log
}

// addOutcome adds to the history what was done to an object, or that it failed. It is called
// before the session uses the outcome. before is the failure of the attempt before, zero if that did not fail: the same failure is
// added only once. undoneBy is who undid earlier applies of the object.
func (j *journal) addOutcome(o apply.Outcome, before progress.Failure, undoneBy string) {
	if j.cfg.Record == nil {
		return
	}
	e := j.entry(o.Placement, o.Manifest.ID)
	switch {
	case o.Drift && o.Written != nil && !o.Reverted() && len(o.Rivals) == 0:
		return // it was already as desired, or only fields that are left to others had changed
	case o.Written != nil:
		e.Event = j.written(o)
		if e.Event == history.Repaired {
			if e.By = undoneBy; len(o.Before.By) > 0 {
				e.By = drift.By(o.Before.By)
			}
		}
	case o.Immutable && apply.AsksForRecreation(o.Manifest):
		return // it is recreated, or recreate records why it is not
	case o.Cond.Status == metav1.ConditionFalse && !j.Works().OnlyCompares(o.Placement):
		if before.Hash == o.Manifest.Hash && before.Cond.Reason == o.Cond.Reason {
			return
		}
		e.Event, e.Message = history.Failed, connection.Cut(o.Cond.Message())
	default:
		return
	}
	j.cfg.Record(e)
}

func (j *journal) entry(p api.PlacementKey, id api.ID) history.Entry {
	return history.Entry{
		Time: time.Now(), Kind: history.Object, Placement: p.String(), Cluster: j.cfg.Name, Object: id.String(), Commit: j.Works().Of(p).Revision.Commit,
	}
}

// written returns the event of a write. An object that was not known to exist was created by this write if it is as old as
// our managedFields entry (see made); otherwise it was taken over.
func (j *journal) written(o apply.Outcome) history.Event {
	switch {
	case o.Drift:
		return history.Repaired
	case o.Do == diff.TakeOver:
		return history.TakenOver
	case o.Item.Hash != "":
		return history.Changed
	case j.live.Of(o.Manifest.ID) == nil && o.Made:
		return history.Created
	}
	return history.TakenOver
}

// addRemoval adds to the history that an object was deleted or released, or that this has failed, unless it failed before. err has no
// values of Secrets. A deletion is also logged, and added to the next report of its placement.
func (j *journal) addRemoval(p api.PlacementKey, id api.ID, event history.Event, cause work.Cause, err error, failedBefore bool) {
	if event == history.Deleted && err == nil {
		j.cfg.Log.Info("object deleted", "cluster", j.cfg.Name, "placement", p.String(), "object", id.String(), "commit", cause.Commit, "why", cause.Why)
		j.deletions.Add(p, id, cause)
	}
	if j.cfg.Record == nil || err != nil && failedBefore {
		return
	}
	e := j.entry(p, id)
	e.Event, e.Commit, e.Message = event, cause.Commit, cause.Why
	if err != nil {
		e.Event, e.Message = history.Failed, connection.Cut("not removed: "+err.Error())
	}
	j.cfg.Record(e)
}
