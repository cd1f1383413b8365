package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// NeedsStatus reports whether the health of a kind's objects depends on their content. Objects
// of other kinds are available as soon as they exist; see OfKind.
func NeedsStatus(gvk schema.GroupVersionKind) bool {
	_, ruled := rules[gvk]
	return ruled || !builtIn[gvk.Group]
}

// OfKind returns the health of existing objects of a kind for which NeedsStatus is false. For
// other kinds, the result is that the object is not available yet.
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
