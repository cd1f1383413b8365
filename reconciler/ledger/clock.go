package ledger

import (
	"slices"
	"time"
)

// Rebase adjusts recorded times to the clock. It is called after a ledger is loaded, and
// whenever the clock has been set back.
//
// Times in the future, recorded when the clock was ahead, are moved just before now in the same
// order, so that later observations are never older than recorded ones. If now has a monotonic
// reading, durations are from then on measured independently of the clock.
func (l *Ledger) Rebase(now time.Time) {
	b := timeShift{now: now}
	l.eachTime(func(_ string, t time.Time) time.Time {
		if t.After(now) {
			b.ahead = append(b.ahead, t)
		}
		return t
	})
	slices.SortFunc(b.ahead, time.Time.Compare)
	b.ahead = slices.CompactFunc(b.ahead, time.Time.Equal)
	l.eachTime(func(key string, t time.Time) time.Time {
		next := b.move(t)
		if !next.Round(0).Equal(t.Round(0)) {
			l.markUrgent(key)
		}
		return next
	})
	for _, c := range l.clusters {
		c.version = l.next()
	}
	for _, p := range l.placements {
		p.version = l.next()
	}
}

// A timeShift moves times that are after a given time.
type timeShift struct {
	now time.Time
	// ahead are the later times, in order.
	ahead []time.Time
}

func (b *timeShift) move(t time.Time) time.Time {
	switch i, found := slices.BinarySearchFunc(b.ahead, t, time.Time.Compare); {
	case t.IsZero():
		return t
	case found:
		return b.now.Add(time.Duration(i + 1 - len(b.ahead)))
	}
	return b.now.Add(t.Sub(b.now))
}

// eachTime replaces the times on which a decision or a command may depend, each with the key of
// its record. Times that are only shown are not changed.
func (l *Ledger) eachTime(move func(key string, t time.Time) time.Time) {
	for name, old := range l.clusters {
		c, key := *old, clusterKey(name)
		for _, t := range []*time.Time{&c.At, &c.Since, &c.LastSeen, &c.Observed} {
			*t = move(key, *t)
		}
		l.clusters[name] = &c
	}
	for key, old := range l.placements {
		p := *old
		for _, t := range []*time.Time{&p.Resumed, &p.RolloutStarted, &p.RolloutFinished, &p.DeletedAt} {
			*t = move(placementKey(key), *t)
		}
		p.Revisions = slices.Clone(p.Revisions)
		for i := range p.Revisions {
			p.Revisions[i].At = move(placementKey(key), p.Revisions[i].At)
		}
		l.placements[key] = &p
		for cluster, old := range p.entries {
			e, key := *old, entryKey(key, cluster)
			e.Binding.AssignedAt, e.Binding.BoundAt = move(key, e.Binding.AssignedAt), move(key, e.Binding.BoundAt)
			for _, t := range []*time.Time{&e.AvailableSince, &e.UnavailableSince, &e.AppliedAt, &e.AvailableAt} {
				*t = move(key, *t)
			}
			if e.Seen != nil {
				seen := *e.Seen
				seen.At, e.Seen = move(key, seen.At), &seen
			}
			p.entries[cluster] = &e
		}
	}
	events := slices.Clone(l.events)
	for i := range events {
		e, key := &events[i], eventKey(&events[i])
		e.First, e.Last = move(key, e.First), move(key, e.Last)
		l.eventsByKey[key] = numbered{*e, l.eventsByKey[key].Number}
	}
	l.events = events
}
