package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A canonicalKey orders objects canonically.
type canonicalKey struct {
	rank       int
	kind, name string
}

func canonicalKeyOf(o *api.Object) canonicalKey {
	rank, ranked := placement.KindRank(o.ID.Kind)
	p := canonicalKey{rank: rank, kind: o.Object.GetAPIVersion(), name: o.ID.Namespace + "/" + o.ID.Name}
	if !ranked {
		p.kind = o.Object.GroupVersionKind().String()
	}
	return p
}

func (p canonicalKey) compare(o canonicalKey) int {
	return cmp.Or(
		cmp.Compare(p.rank, o.rank),
		strings.Compare(p.kind, o.kind),
		strings.Compare(p.name, o.name),
	)
}

// sorted returns items in canonical order; the sort is stable.
func sorted[T any](items []T, object func(T) *api.Object) []T {
	type placed struct {
		canonicalKey
		item T
	}
	all := make([]placed, len(items))
	for i, item := range items {
		all[i] = placed{canonicalKeyOf(object(item)), item}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.compare(b.canonicalKey) })
	out := make([]T, len(items))
	for i := range all {
		out[i] = all[i].item
	}
	return out
}

// Sorted returns the manifests in canonical order.
func Sorted(manifests []*Manifest) []*Manifest {
	return sorted(manifests, func(m *Manifest) *api.Object { return m.Object })
}
