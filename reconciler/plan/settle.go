package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// settle turns what the placements ask for into what each cluster shall hold.
func (t *thinker) settle(changed map[api.PlacementKey]bool) ([]*Placement, map[string][]work.Work) {
	m := t.memo
	if len(changed) > 0 {
		moved := m.overlaps.update(changed, t.thoughts)
		parties := m.overlaps.parties(t.thoughts)
		isNew := func(key api.PlacementKey) bool { return changed[key] }
		if moved || !slices.Equal(parties, m.settled.parties) || slices.ContainsFunc(parties, isNew) {
			if moved {
				m.settled.clusters = nil
			}
			t.divideAll(parties)
		}
	}
	return t.concluded(), m.settled.rewrite(m.board.lists)
}

// settled is how the objects are divided among the parties. It stands for a
// cluster as long as the parties there are the same.
type settled struct {
	parties  []api.PlacementKey
	clusters map[string]*division
}

// A division is who has which of the objects on one cluster that several want.
type division struct {
	stakes []*stake
	notes  []note
	paused bool
	// from is the list of works in which something is left out or added, and to
	// what comes of it.
	from, to []work.Work
}

// divideAll divides anew where the parties have changed.
func (t *thinker) divideAll(keys []api.PlacementKey) {
	s := &settling{thinker: t, cuts: map[**work.Manifest]map[api.ID]*work.Manifest{}, latest: map[api.PlacementKey]*stake{}, notes: map[clash]note{}}
	parties := t.gather(keys)
	old, now := t.memo.settled.clusters, make(map[string]*division, len(parties))
	for _, name := range slices.Sorted(maps.Keys(parties)) {
		d := old[name]
		if d == nil || d.paused != (t.paused[name] != "") || !d.stands(parties[name]) {
			d = s.divide(name, parties[name])
		}
		for i, st := range d.stakes {
			st.take(parties[name][i])
		}
		now[name] = d
	}
	t.memo.settled = settled{keys, now}
	t.conclude()
}

// stands reports whether the division is still right.
func (d *division) stands(parties []party) bool {
	return slices.EqualFunc(d.stakes, parties, func(st *stake, p party) bool { return st.same(&p) })
}

// settling is the work of one turn.
type settling struct {
	*thinker
	cuts map[**work.Manifest]map[api.ID]*work.Manifest
	// latest is what was last found out for each placement, notes for each
	// clash: on most clusters it is the same, and then shared.
	latest map[api.PlacementKey]*stake
	notes  map[clash]note
}

// rewrite replaces the lists of works in which something is left out or added.
func (s *settled) rewrite(lists map[string][]work.Work) map[string][]work.Work {
	out, own := lists, false
	for name, d := range s.clusters {
		if !slices.ContainsFunc(d.stakes, func(st *stake) bool { return !st.claims.Empty() }) {
			continue
		}
		if d.to == nil || !identical(d.from, lists[name]) {
			d.from, d.to = lists[name], d.rewritten(lists[name])
		}
		if !own {
			out, own = make(map[string][]work.Work, len(lists)), true
			maps.Copy(out, lists)
		}
		out[name] = d.to
	}
	return out
}

// identical reports whether two lists are one.
func identical[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// rewritten is a list with what is left out and added.
func (d *division) rewritten(list []work.Work) []work.Work {
	list = slices.Clone(list)
	for _, st := range d.stakes {
		if st.claims.Empty() {
			continue
		}
		w := st.work(d.paused)
		i, found := slices.BinarySearchFunc(list, st.key, func(w work.Work, key api.PlacementKey) int { return compareKeys(w.Placement, key) })
		if found {
			list[i] = w
		} else {
			list = slices.Insert(list, i, w)
		}
	}
	return list
}

// work is what the cluster shall hold for the placement in the end.
func (st *stake) work(paused bool) work.Work {
	p := st.th.p
	// As long as nothing is released, all it has it has early.
	w := work.Work{Placement: st.key, Keep: paused, Abandon: p.Record.Abandon, Suspended: st.c.Suspended, Spared: st.c.spared}
	if st.w != nil {
		w = *st.w
	} else if p.Spec != nil {
		w.Strategy = strategy(p.Spec.Spec)
	}
	yields := make(map[api.ID]bool, len(st.claims.Yields))
	for _, y := range st.claims.Yields {
		yields[y.ID] = true
	}
	manifests := make([]*work.Manifest, 0, len(w.Manifests)+len(st.claims.Early))
	for _, m := range w.Manifests {
		if !yields[m.ID] {
			manifests = append(manifests, m)
		}
	}
	if len(st.claims.Yields) > 0 && p.Spec != nil && !w.Remove && !st.reports && !st.blank {
		w.Awaited = st.c.Content.Manifests // what is left to another is not given up
	}
	if w.Manifests = manifests; len(st.claims.Early) > 0 {
		for _, id := range st.claims.Early {
			if m := st.early[id]; m != nil {
				manifests = append(manifests, m)
			}
		}
		w.Manifests = work.Sorted(manifests)
		w.Keep = st.blank || paused || w.Keep && st.c.Binding.Released()
	}
	return w
}

// stand leaves everything on a cluster as it is.
func (s *settling) stand(d *division) {
	for _, st := range d.stakes {
		st.claims = st.c.Claims
		for _, y := range st.claims.Yields {
			if m := st.told[y.ID]; m != nil {
				st.yielded = append(st.yielded, s.yielded(m, y))
			}
			if !y.Passing {
				d.note(clash{y.To, st.key}, y.ID)
			}
		}
	}
}

// yielded is an object as it is shown to a person.
func (s *settling) yielded(m *work.Manifest, y ledger.Yield) Yielded {
	out := Yielded{Manifest: m, To: y.To, Passing: y.Passing}
	if spec := s.memo.spec(y.To); spec != nil {
		out.Origin = spec.Origin
	}
	return out
}
