package api

import "strings"

// ReservedNamespace reports whether a namespace belongs to Kubernetes, to KubeFleet or to
// gitfleet. Its Namespace object is never placed. Objects in it are placed only by a
// ResourcePlacement of that namespace that selects them by name, and never if the namespace is
// gitfleet's own.
func ReservedNamespace(name string) bool {
	return name == "default" || name == Namespace ||
		strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "fleet-")
}

// ReservedHint returns the end of a message that refuses a reserved namespace: what to do
// instead. It is empty for gitfleet's own namespace, in which nothing can be placed.
func ReservedHint(namespace string) string {
	if namespace == Namespace {
		return ""
	}
	return "; to place single objects in it, select them by name in a ResourcePlacement of namespace " + namespace
}
