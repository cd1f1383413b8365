package member

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
)

// addHistory adds to the history what was done to an object, or that it failed. It is called
// before the session uses the outcome. The same failure is added only once.
func (s *session) addHistory(o outcome) {
	if s.cfg.Record == nil {
		return
	}
	e := s.entry(o.placement, o.manifest.ID)
	switch {
	case o.drift && o.written != nil && !o.repairs():
		return // it was already as desired
	case o.written != nil:
		e.Event = s.written(o)
		if e.Event == history.Repaired {
			if e.By = s.flips[o.manifest.ID].By; len(o.before.By) > 0 {
				e.By = drift.By(o.before.By)
			}
		}
	case o.immutable && asksForRecreation(o.manifest):
		return // it is recreated, or recreate records why it is not
	case o.cond.Status == metav1.ConditionFalse && !s.works.reports(o.placement):
		if t := s.trouble[o.manifest.ID]; t != nil && t.hash == o.manifest.Hash && t.cond.Reason == o.cond.Reason {
			return
		}
		e.Event, e.Message = history.Failed, connection.Cut(o.cond.Message)
	default:
		return
	}
	s.cfg.Record(e)
}

func (s *session) entry(p api.PlacementKey, id api.ID) history.Entry {
	return history.Entry{
		Time: time.Now(), Kind: history.Object, Placement: p.String(), Cluster: s.cfg.Name, Object: id.String(), Commit: s.works[p].Revision.Commit,
	}
}

// written returns the event of a write. For an object that was not known to exist, its age
// shows whether we created it: it is then as old as our fields.
func (s *session) written(o outcome) history.Event {
	switch {
	case o.drift:
		return history.Repaired
	case o.do == diff.TakeOver:
		return history.TakenOver
	case o.item.Hash != "":
		return history.Changed
	case s.live.Of(o.manifest.ID) == nil && made(o.written):
		return history.Created
	}
	return history.TakenOver
}

// made reports whether our last write created an object.
func made(o *metav1.PartialObjectMetadata) bool {
	for _, e := range o.ManagedFields {
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Time != nil {
			return e.Time.Sub(o.CreationTimestamp.Time) <= time.Second
		}
	}
	return true
}

// addRemovalHistory adds to the history that an object was deleted, released, or that this
// failed for the first time.
func (s *session) addRemovalHistory(st stale, event history.Event, cause work.Cause, err error) {
	id := st.item.ID()
	if s.cfg.Record == nil || err != nil && s.trouble[id] != nil {
		return
	}
	e := s.entry(st.inv.Placement, id)
	e.Event, e.Commit, e.Message = event, cause.Commit, cause.Why
	if err != nil {
		e.Event, e.Message = history.Failed, connection.Cut("not removed: "+err.Error())
	}
	s.cfg.Record(e)
}
