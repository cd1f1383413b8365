package placement

import "k8s.io/apimachinery/pkg/runtime/schema"

// KindRank returns the position of a kind in the canonical order, whatever its group; ranked is
// false for kinds that come after all others.
func KindRank(kind string) (rank int, ranked bool) {
	rank = kindRank(kind)
	return rank, rank < len(kindOrder)
}

// NeverPropagated reports whether a kind is not propagated unless it is in an envelope.
func NeverPropagated(gvk schema.GroupVersionKind) bool { return neverPropagated(gvk) }
