package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A party is what a placement has to do with one cluster: all that its stake
// there is made of.
type party struct {
	key api.PlacementKey
	th  *thought
	c   *OnCluster
	w   *work.Work // what it asks for; nil if nothing
}

// same reports whether nothing is different that counts where objects are
// divided.
func (p *party) same(o *party) bool {
	a, b := p.c, o.c
	if p.key != o.key || p.th.p.Spec != o.th.p.Spec || p.th.now != o.th.now || (p.w == nil) != (o.w == nil) || p.w != nil && !sameWork(p.w, o.w) {
		return false
	}
	return a == b || same(a.Binding, b.Binding) && sameEntry(a.Entry, b.Entry) && sameContents(a.had, b.had) &&
		(a.Err == nil) == (b.Err == nil) && sameContents(&a.Content, &b.Content) &&
		a.Claims.Equal(b.Claims)
}

func sameEntry(a, b *ledger.Entry) bool {
	return a == b || a != nil && b != nil && same(a.Binding, b.Binding)
}

func sameContents(a, b *work.Rendered) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && identical(a.Manifests, b.Manifests)
}

// A stake is what a party wants of the objects that others may want as well.
type stake struct {
	party
	// told are the objects it asks for, later those that it will ask for when
	// its rollout gets there. had are those it had until now, where that is not
	// what it asks for.
	told, later, had map[api.ID]*work.Manifest
	// guess are objects that it may hold: what it was told is not known. gone are
	// those that it may have held, likewise.
	guess, gone map[api.ID]bool
	// early are objects of later that it gets now.
	early map[api.ID]*work.Manifest
	// left are the objects that were left to others until now.
	left map[api.ID]bool
	// blank says that its newest content is not known: what it got early it
	// keeps, whatever that is.
	blank bool
	// reports says that it only compares and never writes: it owns nothing.
	reports bool

	claims  ledger.Claims
	yielded []Yielded
	// final is the party's cluster with what it has to leave to others.
	final *OnCluster
}

// take puts the parties of this turn in the place of those of an earlier one.
func (st *stake) take(p party) {
	if st.c != p.c {
		st.final = nil
	}
	st.party = p
}

// gather lists the parties of each cluster, by placement.
func (t *thinker) gather(keys []api.PlacementKey) map[string][]party {
	out := make(map[string][]party, len(t.Head.Clusters))
	for _, key := range keys {
		th := t.thoughts[key]
		works := th.works
		for _, c := range th.p.Clusters {
			name := c.Binding.Cluster
			p := party{key: key, th: th, c: c}
			for len(works) > 0 && works[0].cluster < name {
				works = works[1:]
			}
			if len(works) > 0 && works[0].cluster == name {
				p.w = &works[0].work
			}
			out[name] = append(out[name], p)
		}
	}
	return out
}

// stakes says what the parties on a cluster want.
func (s *settling) stakes(parties []party) []*stake {
	out := make([]*stake, len(parties))
	for i, p := range parties {
		out[i] = s.stake(p)
	}
	for _, st := range out {
		st.guessFrom(out)
	}
	return out
}

func (s *settling) stake(p party) *stake {
	c, w := p.c, p.w
	st := &stake{party: p, early: map[api.ID]*work.Manifest{}, left: make(map[api.ID]bool, len(c.Claims.Yields))}
	for _, y := range c.Claims.Yields {
		st.left[y.ID] = true
	}
	st.reports = p.th.p.Spec != nil && strategy(p.th.p.Spec.Spec).Type == api.ReportDiff
	if w != nil {
		st.told = s.cut(w.Manifests)
	}
	if c.had != nil && (w == nil || w.Remove || st.moved()) {
		st.had = s.cut(c.had.Manifests)
	}
	if !c.Binding.Unscheduled && !c.Binding.Removing {
		s.lookAhead(st)
	}
	if w != nil && w.Keep && len(w.Manifests) == 0 && !w.Unreleased() {
		st.guess = map[api.ID]bool{}
		if now := p.th.now; now != nil && now.renderer != nil {
			for id := range s.cut(now.renderer.Manifests()) {
				st.guess[id] = !st.yields(id)
			}
		}
	}
	return st
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
			if m := st.later[id]; m != nil && st.told[id] == nil {
				st.early[id] = m
			}
		}
	}
}

// guessFrom takes for held by a placement whose content is not known what
// others leave to it. If it is being removed, that goes with it.
func (st *stake) guessFrom(others []*stake) {
	goes := st.w != nil && st.w.Remove && st.c.had == nil
	if st.guess == nil && !goes {
		return
	}
	guess := st.guess
	if goes {
		guess = map[api.ID]bool{}
		st.gone = guess
	}
	for _, o := range others {
		for _, y := range o.c.Claims.Yields {
			if y.To == st.key {
				guess[y.ID] = true
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

// moved reports whether the cluster gets something else than until now.
func (st *stake) moved() bool {
	return st.leaving() || st.c.Entry == nil || st.c.Entry.Binding.Assigned != st.c.Binding.Assigned
}

// leaving reports whether the cluster was to have nothing of the placement until
// now.
func (st *stake) leaving() bool { return st.c.Entry != nil && st.c.Entry.Binding.Removing }

// yields reports whether an object was left to another placement until now.
func (st *stake) yields(id api.ID) bool { return st.left[id] }

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
	had := st.had[id] != nil && !st.yields(id) || st.gone[id] || slices.Contains(st.c.Claims.Early, id)
	return had && !st.reports && !st.asks(id)
}
