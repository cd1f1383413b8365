package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Where two placements want one object on one cluster, one has it and the other
// leaves it out. Who has it keeps it. When it is given up, the other gets it in
// the same turn: members then pass it on and delete nothing. That also holds if
// the other's rollout has not got to the cluster yet: it gets the object early.

// divide decides about the objects of one cluster, one by one.
func (s *settling) divide(cluster string, parties []party) *division {
	d := &division{stakes: s.stakes(parties), paused: s.paused[cluster] != ""}
	if d.paused {
		s.stand(d)
	} else {
		s.share(d)
	}
	for i, n := range d.notes {
		d.notes[i] = n.sharedWith(s.notes[n.clash])
		s.notes[n.clash] = d.notes[i]
	}
	for _, st := range d.stakes {
		st.shareWith(s.latest[st.key])
		s.latest[st.key] = st
	}
	return d
}

func (s *settling) share(d *division) {
	stakes := d.stakes
	ids := map[api.ID]bool{}
	for _, st := range stakes {
		for _, of := range []map[api.ID]*work.Manifest{st.told, st.later, st.early, st.had} {
			for id := range of {
				ids[id] = true
			}
		}
		for _, id := range st.c.Claims.Early {
			ids[id] = true
		}
	}
	for _, st := range stakes {
		if st.blank {
			st.claims.Early = st.c.Claims.Early
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
		passOn(stakes, id)
		owner := s.owner(stakes, id, func(st *stake) bool { return st.asks(id) })
		for _, st := range stakes {
			if owner != nil && st != owner {
				s.leave(st, id, owner)
			}
		}
		if owner != nil && owner.early[id] != nil {
			owner.claims.Early = append(owner.claims.Early, id)
		}
		s.clash(d, owner, id)
	}
}

// shareWith keeps one copy of what is the same on two clusters.
func (st *stake) shareWith(o *stake) {
	if o == nil {
		return
	}
	if st.claims.Equal(o.claims) {
		st.claims = o.claims
	}
	if slices.Equal(st.yielded, o.yielded) {
		st.yielded = o.yielded
	}
}

// passOn gives an object that somebody gives up, and nobody has, to the first
// who will want it.
func passOn(stakes []*stake, id api.ID) {
	if slices.ContainsFunc(stakes, func(st *stake) bool { return st.asks(id) && !st.reports }) ||
		!slices.ContainsFunc(stakes, func(st *stake) bool { return st.gaveUp(id) }) {
		return
	}
	for _, st := range stakes {
		if m := st.later[id]; m != nil && !st.reports {
			st.early[id] = m
			return
		}
	}
}

// owner picks who has an object, of those who may; nil if nobody does.
func (s *settling) owner(stakes []*stake, id api.ID, may func(*stake) bool) *stake {
	var first *stake
	for _, st := range stakes {
		if may(st) && (first == nil || s.before(st, first, id)) {
			first = st
		}
	}
	return first
}

// The ranks of those who ask for an object.
const (
	hasIt     = iota // and was not told to leave it to another
	mayHaveIt        // it is not known
	newcomer
	leftIt      // to another, until now
	reportsOnly // and never writes
)

func (st *stake) rank(id api.ID) int {
	switch {
	case st.reports:
		return reportsOnly
	case st.told[id] == nil && st.early[id] == nil && st.guess[id]:
		return mayHaveIt
	case st.yields(id):
		return leftIt
	case !st.moved() || st.had[id] != nil && !st.leaving() || slices.Contains(st.c.Claims.Early, id):
		return hasIt
	}
	return newcomer
}

// before reports whether one has a better right to an object than another: the
// one that has it, then the one that was told to hold what it holds first.
func (s *settling) before(a, b *stake, id api.ID) bool {
	return cmp.Or(cmp.Compare(a.rank(id), b.rank(id)), s.since(a).Compare(s.since(b)), compareKeys(a.key, b.key)) < 0
}

func (s *settling) since(st *stake) time.Time {
	if st.c.Entry == nil || !st.c.Entry.Binding.Released() {
		return s.Now
	}
	return st.c.Entry.Binding.AssignedAt
}

// leave has the placement do without an object that another has.
func (s *settling) leave(st *stake, id api.ID, owner *stake) {
	delete(st.early, id)
	m := st.told[id]
	if m == nil && !st.c.Binding.Released() {
		m = st.later[id]
	}
	if m == nil {
		return
	}
	y := ledger.Yield{ID: id, To: owner.key, Passing: !owner.wants(id)}
	st.yielded = append(st.yielded, s.yielded(m, y))
	if st.told[id] != nil {
		st.claims.Yields = append(st.claims.Yields, y)
	}
}
