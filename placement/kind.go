package placement

import "k8s.io/apimachinery/pkg/runtime/schema"

// KindRank returns the place of a kind in the canonical order, whatever its
// group; ranked is false for kinds that come after all others.
func KindRank(kind string) (rank int, ranked bool) {
	rank = kindRank(kind)
	return rank, rank < len(kindOrder)
}

// StaysAtHome reports whether a kind is never propagated unless it is wrapped
// in an envelope, or an operator says otherwise.
func StaysAtHome(gvk schema.GroupVersionKind) bool { return stayAtHome(gvk) }
