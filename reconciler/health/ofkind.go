package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// NeedsStatus reports whether the health of a kind's objects depends on their content. For
// other kinds existence is enough; see OfKind.
func NeedsStatus(gvk schema.GroupVersionKind) bool {
	_, ruled := rules[gvk]
	return ruled || !builtIn[gvk.Group]
}

// OfKind is the health of any existing object of a kind that does not need its status; for
// other kinds it is not available yet.
func OfKind(gvk schema.GroupVersionKind) Health {
	switch {
	case NeedsStatus(gvk):
		return Health{State: NotAvailableYet}
	case availableAtOnce[gvk]:
		return Health{State: Available}
	default:
		return Health{State: NotTrackable}
	}
}
