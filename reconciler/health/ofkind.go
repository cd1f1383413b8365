package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// NeedsStatus reports whether the health of a kind's objects depends on their
// body. For the others their existence is enough, and OfKind tells.
func NeedsStatus(gvk schema.GroupVersionKind) bool {
	_, ruled := rules[gvk]
	return ruled || !builtIn[gvk.Group]
}

// OfKind is the health of any existing object of a kind that does not need its
// status; for one that does, it is not available yet.
func OfKind(gvk schema.GroupVersionKind) Health {
	switch {
	case NeedsStatus(gvk):
		return Health{State: NotAvailableYet}
	case atOnce[gvk]:
		return Health{State: Available}
	default:
		return Health{State: NotTrackable}
	}
}
