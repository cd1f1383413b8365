package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A clash is between two placements of the head that want the same objects: one
// has them, the other does without.
type clash struct{ has, lacks api.PlacementKey }

// An extent is which objects, and on which clusters.
type extent struct {
	ids      map[api.ID]bool
	clusters map[string]bool
}

// note takes down that more than one placement wants an object in its newest
// content. What passes from one to the other with their rollouts is no clash.
func (s *settling) note(cluster string, stakes []*stake, owner *stake, id api.ID) {
	wanting := func(st *stake) bool { return st.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = s.owner(stakes, id, wanting)
	}
	for _, st := range stakes {
		if st == owner || !wanting(st) {
			continue
		}
		c := clash{owner.key, st.key}
		e := s.clashes[c]
		if e == nil {
			e = &extent{map[api.ID]bool{}, map[string]bool{}}
			s.clashes[c] = e
		}
		e.ids[id], e.clusters[cluster] = true, true
	}
}

// String reads like "Namespace web and 2 more objects on east and 1 more
// cluster".
func (e *extent) String() string {
	// What others live in is what a person knows best.
	ids := slices.SortedFunc(maps.Keys(e.ids), func(a, b api.ID) int {
		return cmp.Or(cmp.Compare(min(len(a.Namespace), 1), min(len(b.Namespace), 1)), a.Compare(b))
	})
	first := ids[0].Kind + " " + strings.TrimPrefix(ids[0].Namespace+"/"+ids[0].Name, "/")
	return first + more(len(ids), "object") + " on " + slices.Sorted(maps.Keys(e.clusters))[0] + more(len(e.clusters), "cluster")
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
func (s *settling) warnings(p *Placement) hub.Problems {
	var out hub.Problems
	say := func(other api.PlacementKey, format string, e *extent) {
		text := other.String()
		if spec := s.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		out = append(out, hub.Problem{Origin: p.Spec.Origin, Field: "spec.resourceSelectors", Severity: hub.Warning, Message: fmt.Sprintf(format, text, e)})
	}
	order := func(a, b clash) int { return cmp.Or(compareKeys(a.has, b.has), compareKeys(a.lacks, b.lacks)) }
	for _, c := range slices.SortedFunc(maps.Keys(s.clashes), order) {
		switch p.Key {
		case c.has:
			say(c.lacks, "%s selects %s as well; this placement has what both select, and keeps it: let one of the two select it", s.clashes[c])
		case c.lacks:
			say(c.has, "%s has %s, which this placement selects as well and leaves to it: let one of the two select it", s.clashes[c])
		}
	}
	return out
}

// conclude returns the placements as they are in the end.
func (s *settling) conclude(clusters map[string][]*stake) []*Placement {
	stakes := map[api.PlacementKey]map[string]*stake{}
	for name, on := range clusters {
		for _, st := range on {
			if stakes[st.key] == nil {
				stakes[st.key] = map[string]*stake{}
			}
			stakes[st.key][name] = st
		}
	}
	all := make([]*Placement, 0, len(s.thoughts))
	for key, th := range s.thoughts {
		final := th.p
		if stakes[key] != nil {
			final = s.final(th.p, stakes[key])
			if old := th.final; old != nil && old.says(final) {
				final = old
			}
		}
		th.final = final
		all = append(all, final)
	}
	slices.SortFunc(all, func(a, b *Placement) int { return compareKeys(a.Key, b.Key) })
	return all
}

// final is a placement with what it has to leave to others, or gets early.
func (s *settling) final(p *Placement, stakes map[string]*stake) *Placement {
	out := *p
	if p.Spec != nil {
		out.Warnings = append(slices.Clip(p.Warnings), s.warnings(p)...)
	}
	out.Clusters = slices.Clone(p.Clusters)
	out.Changed = slices.Clip(p.Changed)
	for i, c := range p.Clusters {
		st := stakes[c.Binding.Cluster]
		if st.claims.Empty() && c.Claims.Empty() && len(st.yielded) == 0 {
			continue
		}
		next := *c
		next.Claims, next.Yielded = st.claims, st.yielded
		out.Clusters[i] = &next
		if st.claims.Equal(c.Claims) {
			continue
		}
		out.Claimed = append(out.Claimed, &next)
		if !sameContent(st.claims, c.Claims) && !st.moved() {
			// It is told something else: what was said before is of no account.
			next.Binding.AssignedAt = s.Now
			out.Changed = replaced(out.Changed, next.Binding)
		}
	}
	return &out
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
