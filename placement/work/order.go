package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A position is an object's place in the canonical order.
type position struct {
	rank       int
	kind, name string
}

func positionOf(o *api.Object) position {
	rank, ranked := placement.KindRank(o.ID.Kind)
	p := position{rank: rank, kind: o.Object.GetAPIVersion(), name: o.ID.Namespace + "/" + o.ID.Name}
	if !ranked {
		p.kind = o.Object.GroupVersionKind().String()
	}
	return p
}

func (p position) compare(o position) int {
	return cmp.Or(
		cmp.Compare(p.rank, o.rank),
		strings.Compare(p.kind, o.kind),
		strings.Compare(p.name, o.name),
	)
}

// sorted returns items in canonical order; those of equal place keep theirs.
func sorted[T any](items []T, object func(T) *api.Object) []T {
	type placed struct {
		position
		item T
	}
	all := make([]placed, len(items))
	for i, item := range items {
		all[i] = placed{positionOf(object(item)), item}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.compare(b.position) })
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
