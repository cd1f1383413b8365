package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Where two placements want one object on one cluster, one has it and the other
// leaves it out. Who has it keeps it. When it is given up, the other gets it in
// the same turn: members then pass it on and delete nothing. That also holds if
// the other's rollout has not got to the cluster yet: it gets the object early.

// settle turns what the placements ask for into what each cluster shall hold.
func (t *thinker) settle(changed map[api.PlacementKey]bool) ([]*Placement, map[string][]work.Work) {
	m := t.memo
	m.overlaps.update(changed, t.thoughts)
	s := &settling{thinker: t, cuts: map[**work.Manifest]map[api.ID]*work.Manifest{}, clashes: map[clash]*extent{}}
	clusters := s.stakes(m.overlaps.parties(t.thoughts))
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		s.divide(name, clusters[name])
	}
	return s.conclude(clusters), s.rewrite(clusters)
}

// settling is the work of one turn.
type settling struct {
	*thinker
	cuts    map[**work.Manifest]map[api.ID]*work.Manifest
	clashes map[clash]*extent
}

// A stake is what one placement wants on one cluster, of the objects that
// others may want as well.
type stake struct {
	key api.PlacementKey
	c   *OnCluster
	w   *work.Work // what it asks for; nil if nothing
	// told are the objects it asks for, later those that it will ask for when
	// its rollout gets there. had are those it had until now, where that is not
	// what it asks for.
	told, later, had map[api.ID]*work.Manifest
	// guess are objects that it may hold: what it was told is not known.
	guess map[api.ID]bool
	// early are objects of later that it gets now.
	early map[api.ID]*work.Manifest
	// blank says that its newest content is not known: what it got early it
	// keeps, whatever that is.
	blank bool

	claims  ledger.Claims
	yielded []Yielded
}

// stakes gathers what the parties want, by cluster.
func (s *settling) stakes(parties []api.PlacementKey) map[string][]*stake {
	out := map[string][]*stake{}
	for _, key := range parties {
		th := s.thoughts[key]
		asked := make(map[string]*work.Work, len(th.works))
		for i := range th.works {
			asked[th.works[i].cluster] = &th.works[i].work
		}
		for _, c := range th.p.Clusters {
			name := c.Binding.Cluster
			out[name] = append(out[name], s.stake(th, c, asked[name]))
		}
	}
	for _, stakes := range out {
		for _, st := range stakes {
			st.guessFrom(stakes)
		}
	}
	return out
}

func (s *settling) stake(th *thought, c *OnCluster, w *work.Work) *stake {
	st := &stake{key: th.p.Key, c: c, w: w, early: map[api.ID]*work.Manifest{}}
	if w != nil {
		st.told = s.told(w.Manifests, c.Claims.Yields)
	}
	if c.had != nil && (w == nil || w.Remove || st.moved()) {
		st.had = s.cut(c.had.Manifests)
	}
	if !c.Binding.Unscheduled && !c.Binding.Removing {
		s.lookAhead(st)
	}
	if w != nil && w.Keep {
		st.guess = map[api.ID]bool{}
		if th.now != nil && th.now.renderer != nil {
			for id := range s.cut(th.now.renderer.Manifests()) {
				st.guess[id] = !st.yields(id)
			}
		}
	}
	return st
}

// told returns the objects of a work that others may want. What it left to
// another until now it may have to leave again, also if nobody knows whether
// the other has it.
func (s *settling) told(ms []*work.Manifest, yields []ledger.Yield) map[api.ID]*work.Manifest {
	out, own := s.cut(ms), false
	for _, y := range yields {
		m := find(ms, y.ID)
		if m == nil || out[y.ID] != nil {
			continue
		}
		if !own {
			out, own = maps.Clone(out), true
		}
		out[y.ID] = m
	}
	return out
}

// lookAhead finds what the placement will want.
func (s *settling) lookAhead(st *stake) {
	c := st.c
	switch {
	case c.Err != nil || c.Content.Hash == "":
		st.blank = true
	case !c.UpToDate() || !c.Binding.Released():
		st.later = s.cut(c.Content.Manifests)
		for _, id := range c.Claims.Early {
			if m := find(c.Content.Manifests, id); m != nil {
				st.early[id] = m
			}
		}
	}
}

// guessFrom takes for held by a placement whose content is not known what
// others leave to it.
func (st *stake) guessFrom(others []*stake) {
	if st.guess == nil {
		return
	}
	for _, o := range others {
		for _, y := range o.c.Claims.Yields {
			if y.To == st.key {
				st.guess[y.ID] = true
			}
		}
	}
}

// cut returns the shared objects of a content.
func (s *settling) cut(ms []*work.Manifest) map[api.ID]*work.Manifest {
	if len(ms) == 0 {
		return nil
	}
	out, known := s.cuts[&ms[0]]
	if !known {
		out = s.memo.overlaps.cut(ms)
		s.cuts[&ms[0]] = out
	}
	return out
}

func find(ms []*work.Manifest, id api.ID) *work.Manifest {
	for _, m := range ms {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// moved reports whether the cluster gets something else than until now.
func (st *stake) moved() bool {
	return st.c.Entry == nil || st.c.Entry.Binding.Assigned != st.c.Binding.Assigned
}

// yields reports whether an object was left to another placement until now.
func (st *stake) yields(id api.ID) bool {
	return slices.ContainsFunc(st.c.Claims.Yields, func(y ledger.Yield) bool { return y.ID == id })
}

// asks reports whether the object is to be held on behalf of the placement.
func (st *stake) asks(id api.ID) bool {
	return st.told[id] != nil || st.early[id] != nil || st.guess[id]
}

// wants reports whether the object is in the newest content.
func (st *stake) wants(id api.ID) bool {
	if st.later != nil {
		return st.later[id] != nil || st.early[id] != nil
	}
	return !st.c.Binding.Unscheduled && st.asks(id)
}

// gaveUp reports whether the placement had the object until now.
func (st *stake) gaveUp(id api.ID) bool {
	return st.had[id] != nil && !st.yields(id) && !st.asks(id)
}

func (st *stake) reportsOnly() bool { return st.w != nil && st.w.Strategy.Type == api.ReportDiff }

// divide decides about the objects of one cluster, one by one.
func (s *settling) divide(cluster string, stakes []*stake) {
	ids := map[api.ID]bool{}
	for _, st := range stakes {
		for _, of := range []map[api.ID]*work.Manifest{st.told, st.later, st.early, st.had} {
			for id := range of {
				ids[id] = true
			}
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
				st.leave(id, owner, s.memo.spec(owner.key))
			}
		}
		if owner != nil && owner.early[id] != nil {
			owner.claims.Early = append(owner.claims.Early, id)
		}
		s.note(cluster, stakes, owner, id)
	}
}

// passOn gives an object that somebody gives up, and nobody has, to the first
// who will want it.
func passOn(stakes []*stake, id api.ID) {
	if slices.ContainsFunc(stakes, func(st *stake) bool { return st.asks(id) }) ||
		!slices.ContainsFunc(stakes, func(st *stake) bool { return st.gaveUp(id) }) {
		return
	}
	for _, st := range stakes {
		if m := st.later[id]; m != nil && !st.reportsOnly() {
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
	case st.reportsOnly():
		return reportsOnly
	case st.told[id] == nil && st.early[id] == nil && st.guess[id]:
		return mayHaveIt
	case st.yields(id):
		return leftIt
	case !st.moved() || st.had[id] != nil || slices.Contains(st.c.Claims.Early, id):
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
func (st *stake) leave(id api.ID, owner *stake, spec *hub.Placement) {
	delete(st.early, id)
	m := st.told[id]
	if m == nil && !st.c.Binding.Released() {
		m = st.later[id]
	}
	if m == nil {
		return
	}
	y := Yielded{Manifest: m, To: owner.key, Passing: !owner.wants(id)}
	if spec != nil {
		y.Origin = spec.Origin
	}
	st.yielded = append(st.yielded, y)
	if st.told[id] != nil {
		st.claims.Yields = append(st.claims.Yields, ledger.Yield{ID: id, To: y.To, Passing: y.Passing})
	}
}

// rewrite replaces the works in which something is left out or added.
func (s *settling) rewrite(clusters map[string][]*stake) map[string][]work.Work {
	works, own := s.memo.board.lists, false
	for name, stakes := range clusters {
		list := slices.Clone(works[name])
		touched := false
		for _, st := range stakes {
			if st.claims.Empty() {
				continue
			}
			touched = true
			w := st.rewritten(s.thoughts[st.key].p)
			i, found := slices.BinarySearchFunc(list, st.key, func(w work.Work, key api.PlacementKey) int { return compareKeys(w.Placement, key) })
			if found {
				list[i] = w
			} else {
				list = slices.Insert(list, i, w)
			}
		}
		if !touched {
			continue
		}
		if !own {
			works, own = maps.Clone(works), true
		}
		if works == nil {
			works = map[string][]work.Work{}
		}
		works[name] = list
	}
	return works
}

// rewritten is what the cluster shall hold for the placement in the end.
func (st *stake) rewritten(p *Placement) work.Work {
	w := work.Work{Placement: st.key, Keep: true, Abandon: p.Record.Abandon}
	if st.w != nil {
		w = *st.w
	} else if p.Spec != nil {
		w.Strategy = strategy(p.Spec.Spec) // nothing is released yet: all it has, it has early
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
	if w.Manifests = manifests; len(st.claims.Early) > 0 {
		for _, id := range st.claims.Early {
			if m := st.early[id]; m != nil {
				manifests = append(manifests, m)
			}
		}
		w.Manifests = work.Sorted(manifests)
		w.Keep = w.Keep || st.blank
	}
	return w
}
