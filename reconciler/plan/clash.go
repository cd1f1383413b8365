package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A clash is between two placements of the head that want the same objects: one
// has them, the other does without.
type clash struct{ has, lacks api.PlacementKey }

// A note is of a clash on one cluster: about which objects, in order. The same
// objects on many clusters are one list.
type note struct {
	clash
	ids []api.ID
}

func (d *division) note(c clash, id api.ID) {
	i := slices.IndexFunc(d.notes, func(n note) bool { return n.clash == c })
	if i < 0 {
		i = len(d.notes)
		d.notes = append(d.notes, note{clash: c})
	}
	d.notes[i].ids = append(d.notes[i].ids, id)
}

func (n note) sharedWith(o note) note {
	if slices.Equal(n.ids, o.ids) {
		return o
	}
	return n
}

// clash takes down that more than one placement wants an object in its newest
// content. What passes from one to the other with their rollouts is no clash.
func (s *settling) clash(d *division, owner *stake, id api.ID) {
	wanting := func(st *stake) bool { return st.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = s.owner(d.stakes, id, wanting)
	}
	for _, st := range d.stakes {
		if st != owner && wanting(st) {
			d.note(clash{owner.key, st.key}, id)
		}
	}
}

// An extent is about which objects a clash is, and on which clusters: how many,
// and the first of them.
type extent struct {
	lists    map[*api.ID][]api.ID
	clusters int
	first    string
}

// extents gathers what there is of each clash.
func extents(clusters map[string]*division) map[clash]*extent {
	out := map[clash]*extent{}
	for name, d := range clusters {
		for _, n := range d.notes {
			e := out[n.clash]
			if e == nil {
				e = &extent{lists: map[*api.ID][]api.ID{}, first: name}
				out[n.clash] = e
			}
			e.lists[&n.ids[0]] = n.ids
			e.clusters++
			e.first = min(e.first, name)
		}
	}
	return out
}

// String reads like "Namespace web and 2 more objects on east and 1 more
// cluster".
func (e *extent) String() string {
	all := map[api.ID]bool{}
	for _, ids := range e.lists {
		for _, id := range ids {
			all[id] = true
		}
	}
	// What others live in is what a person knows best.
	ids := slices.SortedFunc(maps.Keys(all), func(a, b api.ID) int {
		return cmp.Or(cmp.Compare(min(len(a.Namespace), 1), min(len(b.Namespace), 1)), a.Compare(b))
	})
	first := ids[0].String()
	return first + more(len(ids), "object") + " on " + e.first + more(e.clusters, "cluster")
}

func more(n int, what string) string {
	switch n {
	case 1:
		return ""
	case 2:
		return " and 1 more " + what
	}
	return fmt.Sprintf(" and %d more %ss", n-1, what)
}

// warnings tell a placement of its clashes.
func (t *thinker) warnings(p *Placement, clashes map[clash]*extent) hub.Problems {
	var out hub.Problems
	say := func(other api.PlacementKey, format string, e *extent) {
		text := other.String()
		if spec := t.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		out = append(out, hub.Problem{Origin: p.Spec.Origin, Field: "spec.resourceSelectors", Severity: hub.Warning, Message: fmt.Sprintf(format, text, e)})
	}
	order := func(a, b clash) int { return cmp.Or(compareKeys(a.has, b.has), compareKeys(a.lacks, b.lacks)) }
	for _, c := range slices.SortedFunc(maps.Keys(clashes), order) {
		switch p.Key {
		case c.has:
			say(c.lacks, "%s selects %s as well; this placement has what both select, and keeps it: let one of the two select it", clashes[c])
		case c.lacks:
			say(c.has, "%s has %s, which this placement selects as well and leaves to it: let one of the two select it", clashes[c])
		}
	}
	return out
}

// conclude makes the parties as they are in the end.
func (t *thinker) conclude() {
	now := t.memo.settled
	clashes := extents(now.clusters)
	for _, key := range now.parties {
		th := t.thoughts[key]
		if final := t.final(th.p, now.clusters, clashes); th.final == nil || !th.final.says(final) {
			th.final = final
		}
	}
}

// concluded are the placements as they are in the end, by key.
func (t *thinker) concluded() []*Placement {
	m := t.memo
	known := func(p *Placement) bool { return t.thoughts[p.Key] != nil }
	if len(m.finals) != len(t.thoughts) || !allOf(m.finals, known) {
		m.finals = make([]*Placement, 0, len(t.thoughts))
		for _, th := range t.thoughts {
			m.finals = append(m.finals, th.p)
		}
		slices.SortFunc(m.finals, func(a, b *Placement) int { return compareKeys(a.Key, b.Key) })
	}
	out := m.finals // who has it already keeps it as it is
	for i, p := range m.finals {
		now := t.inTheEnd(t.thoughts[p.Key])
		if now == p {
			continue
		}
		if identical(out, m.finals) {
			out = slices.Clone(out)
		}
		out[i] = now
	}
	m.finals = out
	return out
}

func allOf[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !is(x) })
}

// inTheEnd is a placement with what settling it with others made of it.
func (t *thinker) inTheEnd(th *thought) *Placement {
	if _, party := slices.BinarySearchFunc(t.memo.settled.parties, th.p.Key, compareKeys); party && th.final != nil {
		return th.final
	}
	return th.p
}

// final is a placement with what it has to leave to others, or gets early.
func (t *thinker) final(p *Placement, clusters map[string]*division, clashes map[clash]*extent) *Placement {
	out := *p
	if p.Spec != nil {
		out.Warnings = append(slices.Clip(p.Warnings), t.warnings(p, clashes)...)
	}
	out.Clusters = slices.Clone(p.Clusters)
	out.Changed = slices.Clip(p.Changed)
	for i, c := range p.Clusters {
		st := clusters[c.Binding.Cluster].of(p.Key)
		if st.claims.Empty() && c.Claims.Empty() && len(st.yielded) == 0 {
			continue
		}
		if st.final == nil {
			st.final = st.end(t.Now)
		}
		out.Clusters[i] = st.final
		if st.claims.Equal(c.Claims) {
			continue
		}
		out.Claimed = append(out.Claimed, st.final)
		if st.final.Binding != c.Binding {
			out.Changed = replaced(out.Changed, st.final.Binding)
		}
	}
	return &out
}

// end is the placement on the cluster as it is in the end.
func (st *stake) end(now time.Time) *OnCluster {
	out := *st.c
	out.Claims, out.Yielded = st.claims, st.yielded
	if !sameContent(st.claims, st.c.Claims) && !st.moved() {
		// It is told something else: what was said before is of no account.
		out.Binding.AssignedAt = now
	}
	return &out
}

// of returns the stake of a placement, which must have one.
func (d *division) of(key api.PlacementKey) *stake {
	return d.stakes[slices.IndexFunc(d.stakes, func(st *stake) bool { return st.key == key })]
}

// sameContent reports whether both leave out and add the same objects.
func sameContent(a, b ledger.Claims) bool {
	return slices.Equal(a.Early, b.Early) && slices.EqualFunc(a.Yields, b.Yields, func(x, y ledger.Yield) bool { return x.ID == y.ID })
}

func replaced(bs []placement.Binding, b placement.Binding) []placement.Binding {
	bs = slices.DeleteFunc(slices.Clone(bs), func(x placement.Binding) bool { return x.Cluster == b.Cluster })
	return append(bs, b)
}

// says reports whether both are the same placement with the same claims.
func (p *Placement) says(o *Placement) bool {
	return slices.Equal(p.Warnings, o.Warnings) && len(p.Changed) == len(o.Changed) && len(p.Claimed) == len(o.Claimed) &&
		slices.EqualFunc(p.Clusters, o.Clusters, func(a, b *OnCluster) bool {
			return a == b || a.Claims.Equal(b.Claims) && same(a.Binding, b.Binding) && slices.Equal(a.Yielded, b.Yielded)
		})
}
