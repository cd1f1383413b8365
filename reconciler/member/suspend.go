package member

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// Suspended objects are watched and compared as usual, but never written: not applied,
// corrected, removed or added to an inventory.

// astray reports whether a spared object may differ from what is wanted.
func (s *session) astray(t task, l *observed.Object) bool {
	if l == nil && t.item != nil && !s.watch.Of(t.manifest.Object.Object.GroupVersionKind()).Complete() {
		return s.trouble[t.manifest.ID] != nil // no watch reports it
	}
	return t.item == nil || t.item.Hash != t.manifest.Hash || l == nil ||
		l.Managed != t.item.Managed || l.Fleet != s.cfg.Fleet || s.trouble[t.manifest.ID] != nil
}

// observeSpared compares a spared object and leaves it as it is.
func (x *executor) observeSpared(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead, cond: t.suspended()}
	live, err := x.conn.Read(ctx, t.res, t.manifest.ID)
	var c comparison
	if err == nil {
		c, err = x.compare(ctx, t, live, x.rivals(ctx, t, live))
	}
	o.diffs = c.diffs
	if err != nil {
		o.err, o.cond.Message = err, o.cond.Message+fmt.Sprintf(" (it cannot be compared: %v)", err)
		return o
	}
	if live != nil {
		o.gen = live.GetGeneration()
	}
	return o
}

// suspended returns the condition of a spared object: it counts as applied if the desired
// content was applied before.
func (t *task) suspended() metav1.Condition {
	if t.item == nil || t.item.Hash != t.manifest.Hash {
		return diff.NotApplied(api.Suspended, t.spared)
	}
	c := diff.Applied()
	c.Reason, c.Message = api.Suspended, t.spared
	return c
}

// asWanted reports whether a spared object equals the desired one.
func (o *outcome) asWanted() bool {
	return o.spared != "" && o.err == nil && len(o.diffs) == 0 && o.cond.Status == metav1.ConditionTrue
}

// lookAgain forgets the state of objects whose suspension has begun or ended.
func (s *session) lookAgain(was, now work.Work) {
	for _, m := range now.Manifests {
		if t := s.trouble[m.ID]; t != nil && t.recreate && now.AllowDelete && !was.AllowDelete {
			t.next = time.Time{} // it may be recreated now
		}
		if was.SuspendedReason(m.ID) != now.SuspendedReason(m.ID) {
			delete(s.trouble, m.ID)
			delete(s.verified, m.ID)
			if now.SuspendedReason(m.ID) == "" {
				s.suspects[m.ID] = true // its values may have changed meanwhile
			}
		}
	}
}
