package member

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// flips record how often others undid an apply of one object.
type flips struct {
	diff.Flips
	// last identifies the change that was counted last: the version of the object that was
	// changed, or the UID of the one that was deleted.
	last string
	// before are the flips without the last one.
	before diff.Flips
}

// unflip removes the last flip of an object, since nothing had to be corrected.
func (s *session) unflip(id api.ID) {
	if f, known := s.flips[id]; known {
		s.flips[id] = flips{f.before, f.last, f.before}
	}
}

// undone records that others have undone an apply, and reports whether the object may be
// applied again now. After repeated flips it has to wait. l is nil if the object was deleted.
func (s *session) undone(t task, l *observed.Object) bool {
	id, now := t.manifest.ID, time.Now()
	f := s.flips[id]
	this, by := "uid "+string(t.item.UID), ""
	if l != nil {
		this, by = strconv.FormatUint(l.Version, 10), l.Writer
		if t.item.Managed == "" { // the change was found by comparing values
			by = "another client with the field manager " + api.FieldManager + " or an admission webhook"
		}
	}
	if f.last != this {
		f = flips{f.Flip(now, by), this, f.Flips}
		s.flips[id] = f
		s.cfg.Metrics.Undone.WithLabelValues(s.cfg.Name).Inc()
	}
	if due := f.Due(); now.Before(due) {
		s.contest(t, l, f)
		return false
	}
	return true
}

// contest records that an object is not corrected for a while, since correcting it again and
// again does not help.
func (s *session) contest(t task, l *observed.Object, f flips) {
	id := t.manifest.ID
	old := s.trouble[id]
	if old != nil && old.next.Equal(f.Due()) {
		return
	}
	who := cmp.Or(f.By, "another writer")
	if d := s.memory[t.placement][id]; len(d.By) > 0 && d.By[0].Manager == f.By {
		who = d.By[0].String()
	}
	s.cfg.Log.Warn("object is contested: somebody keeps undoing what is applied; it is put back more slowly",
		"cluster", s.cfg.Name, "placement", t.placement.String(), "object", id.String(), "by", who, "times", f.Total)
	c := &trouble{
		cond: diff.NotApplied(api.Contested, fmt.Sprintf("%s keeps undoing what the manifest sets: put back %d times so far, next at %s",
			who, f.Total-1, f.Due().UTC().Format(time.RFC3339))),
		since: time.Now(), hash: t.manifest.Hash, next: f.Due(),
	}
	if l != nil {
		c.gen = l.Generation
	}
	s.trouble[id] = c
	s.note(t, api.DriftContested, ledger.Drift{Message: c.cond.Message}, false)
}
