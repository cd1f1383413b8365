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
	var ahead []time.Time
	eachTime(l, func(_ string, t *time.Time) {
		if t.After(now) {
			ahead = append(ahead, *t)
		}
	})
	slices.SortFunc(ahead, time.Time.Compare)
	ahead = slices.CompactFunc(ahead, time.Time.Equal)
	eachTime(l, func(key string, t *time.Time) {
		if t.IsZero() {
			return
		}
		next := now.Add(t.Sub(now))
		if i, found := slices.BinarySearchFunc(ahead, *t, time.Time.Compare); found {
			next = now.Add(time.Duration(i + 1 - len(ahead)))
		}
		if !next.Round(0).Equal(t.Round(0)) {
			l.markUrgent(key)
		}
		*t = next
	})
	for _, c := range l.clusters {
		c.version = l.next()
	}
	l.recent.changed()
	for _, p := range l.placements {
		p.version = l.next()
		p.own = p.version
	}
}

// eachTime calls move, which may change the time, for each time of a ledger on which a decision or a command
// may depend, with the key of its record. Times that are only shown are left out.
func eachTime(l *Ledger, move func(key string, t *time.Time)) {
	for name, old := range l.clusters {
		c := *old
		for _, t := range []*time.Time{&c.At, &c.Since, &c.LastSeen, &c.Observed, &c.Identified} {
			move(clusterKey(name), t)
		}
		l.clusters[name] = &c
	}
	for key, old := range l.placements {
		p := *old
		for _, t := range []*time.Time{&p.Resumed, &p.RolloutStarted, &p.RolloutFinished, &p.DeletedAt} {
			move(placementKey(key), t)
		}
		p.Revisions = slices.Clone(p.Revisions)
		for i := range p.Revisions {
			move(placementKey(key), &p.Revisions[i].At)
		}
		p.Runs = slices.Clone(p.Runs)
		for i := range p.Runs {
			p.Runs[i] = p.Runs[i].Clone()
			for _, t := range p.Runs[i].Times() {
				move(placementKey(key), t)
			}
		}
		l.placements[key] = &p
		for i, old := range p.entries.list {
			e := *old
			own := e.Times()
			times := []*time.Time{&e.Binding.AssignedAt, &e.Binding.BoundAt}
			for of := range own {
				times = append(times, &own[of])
			}
			if e.Circumstances != nil {
				in := *e.Circumstances
				e.Circumstances = &in
				times = append(times, &in.UnavailableSince, &in.DisturbedAt)
			}
			for _, t := range times {
				move(entryKey(key, e.Binding.Cluster), t)
			}
			e.SetTimes(own)
			p.entries.list[i] = &e
		}
	}
	for subject, s := range l.suspended {
		move(suspensionKey(subject), &s.Since)
		l.suspended[subject] = s
	}
	events := slices.Clone(l.events)
	for i := range events {
		e, key := &events[i], eventKey(&events[i])
		move(key, &e.First)
		move(key, &e.Last)
		l.byKey[key] = numbered{*e, l.byKey[key].Number}
	}
	l.events = events
}
