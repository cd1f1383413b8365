package api

import "strings"

// The API groups of the kinds that gitfleet has in common with KubeFleet.
const (
	PlacementGroup = "placement.kubernetes-fleet.io"
	ClusterGroup   = "cluster.kubernetes-fleet.io"
)

// OverlayGroup is the API group of overlays and charts, which KubeFleet does not have.
const OverlayGroup = "gitfleet.dev"

// Labels, annotations and prefixes that KubeFleet defines and gitfleet reads from Git.
const (
	// EnvelopeConfigMapAnnotation, with any value but "" and "false", makes a
	// ConfigMap an envelope.
	EnvelopeConfigMapAnnotation = "kubernetes-fleet.io/envelope-configmap"
	// MemberNameLabel is on every MemberCluster, also if its manifest does not have it.
	MemberNameLabel = "kubernetes-fleet.io/member-name"
	// ResourcePropertyPrefix is the prefix of the properties for resources of a cluster's nodes.
	// It is followed by total-, allocatable- or available- and the name of the resource.
	ResourcePropertyPrefix = "resources.kubernetes-fleet.io/"
)

// Names of gitfleet. They must never change, since objects on member clusters have them.
const (
	// FieldManager is the field manager of gitfleet in server-side apply.
	FieldManager = "gitfleet"
	// Namespace is the namespace of the inventories on a member cluster.
	Namespace = "gitfleet-system"
	// ManagedByLabel is on every applied object; its value is the fleet's name.
	ManagedByLabel = "gitfleet.dev/managed-by"
	// MemberAnnotation, on the claim of a fleet on a cluster, is the name of the member as which the
	// fleet has claimed the cluster.
	MemberAnnotation = "gitfleet.dev/member-cluster"
	// FleetIDAnnotation and FleetSourceAnnotation, on an inventory, distinguish fleets of the
	// same name.
	FleetIDAnnotation     = "gitfleet.dev/fleet-id"
	FleetSourceAnnotation = "gitfleet.dev/fleet-source"
	// PlacementAnnotation is the placement of an applied object: crp/NAME or rp/NAMESPACE/NAME.
	PlacementAnnotation = "gitfleet.dev/placement"
	// SourceAnnotation is the repository of an applied object.
	SourceAnnotation = "gitfleet.dev/source"
	// CommitAnnotation is the commit of the revision that last changed an applied object.
	CommitAnnotation = "gitfleet.dev/commit"
	// PathAnnotation is the file of an applied object in the repository.
	PathAnnotation = "gitfleet.dev/path"
	// OrderedByAnnotation and OrderReasonAnnotation, on an eviction that no commit declares, say who ordered it, and why.
	OrderedByAnnotation   = "gitfleet.dev/ordered-by"
	OrderReasonAnnotation = "gitfleet.dev/order-reason"
	// IgnoreFieldsAnnotation, on an object of the repository, lists JSON pointers to fields that
	// gitfleet sets only when it creates the object.
	IgnoreFieldsAnnotation = "gitfleet.dev/ignore-fields"
	// AvailableAnnotation, on an object of the repository, is a CEL expression over the live
	// object that is true if the object is available.
	AvailableAnnotation = "gitfleet.dev/available"
	// PruneAnnotation, on an object, with the value PruneDisabled keeps the object on the
	// cluster when no placement has it any more: it is released, not deleted.
	PruneAnnotation = "gitfleet.dev/prune"
	PruneDisabled   = "disabled"
	// RecreateAnnotation, on an object of the repository, with the value RecreateEnabled has the
	// object deleted and created anew when an API server refuses to change an immutable field.
	RecreateAnnotation = "gitfleet.dev/recreate"
	RecreateEnabled    = "true"
	// CiphertextAnnotation, on an object of the repository, with the value CiphertextApply says
	// that its encrypted values are to be applied as they are, since something on the cluster
	// decrypts them.
	CiphertextAnnotation = "gitfleet.dev/ciphertext"
	CiphertextApply      = "apply"
	// SecretFieldsAnnotation, on an object, lists JSON pointers to fields whose values are shown
	// nowhere, as those of Secrets. Gitfleet adds the fields that are encrypted in the repository.
	SecretFieldsAnnotation = "gitfleet.dev/secret-fields"
	// MissingReferencesAnnotation, on an object or a placement, with the value
	// MissingReferencesIgnore says that what it refers to need not be in the repository.
	MissingReferencesAnnotation = "gitfleet.dev/missing-references"
	MissingReferencesIgnore     = "ignore"
	// SubstituteAnnotation, on an object, an envelope or a placement, with the value
	// SubstituteEnabled says that variables such as ${cluster.name} in the objects are replaced,
	// and with SubstituteDisabled that they are text.
	SubstituteAnnotation = "gitfleet.dev/substitute"
	SubstituteEnabled    = "enabled"
	SubstituteDisabled   = "disabled"
	// PropertyAnnotationPrefix declares a cluster property on a MemberCluster.
	PropertyAnnotationPrefix = "property.gitfleet.dev/"
	// KubeVersionProperty is the declared property that charts take for the version of the cluster.
	KubeVersionProperty = "kubernetes-version"
	// OnFailureAnnotation, on a placement, is what a failed update of a cluster does to the
	// rollout: it stops, unless the value is OnFailureContinue. On a staged update strategy it is what it does to the
	// run; OnFailureRollBack, which only strategies have, ends it and returns to the content of the last finished run.
	OnFailureAnnotation = "gitfleet.dev/on-failure"
	OnFailureContinue   = "continue"
	OnFailureStop       = "stop"
	OnFailureRollBack   = "roll-back"
	// AvailableTimeoutAnnotation, on a placement, is how long a cluster may take to become
	// available before its update counts as failed; "0s" means no limit.
	AvailableTimeoutAnnotation = "gitfleet.dev/available-timeout"
	// DriftAnnotation, on an object, a placement or a MemberCluster, is a [DriftRule] for it
	// instead of the drift mode of the fleet.
	DriftAnnotation = "gitfleet.dev/drift"
	// RolloutGateLabel and RunAnnotation, on a Job that runs for a RolloutGate, are the names of the gate and of the staged update run.
	RolloutGateLabel = "gitfleet.dev/rollout-gate"
	RunAnnotation    = "gitfleet.dev/update-run"
	// SuspendedAnnotation, on a placement or cluster that the daemon serves, is who suspended
	// it, until when and why.
	SuspendedAnnotation = "gitfleet.dev/suspended"
	// RenamedFromAnnotation, on a placement that the daemon serves, is its earlier name, as
	// crp/NAME or rp/NAMESPACE/NAME.
	RenamedFromAnnotation = "gitfleet.dev/renamed-from"
	// CleanupFinalizer is on a placement that the daemon serves after it was deleted from Git,
	// until its objects are removed.
	CleanupFinalizer = "gitfleet.dev/cleanup"
	// ContextAnnotation names the kubeconfig context of a MemberCluster.
	ContextAnnotation = "gitfleet.dev/context"
)

// ReservedNamespace reports whether a namespace belongs to Kubernetes, to KubeFleet or to
// gitfleet. Its Namespace object is never placed. Objects in it are placed only by a
// ResourcePlacement of that namespace that selects them by name, or from an overlay or a chart
// that lists the namespace, and never if the namespace is gitfleet's own.
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

// AllowTrailer in a commit message allows the blocked deletions of the placements it names, as crp/NAME,
// rp/NAMESPACE/NAME or NAME, separated by commas, or of all placements for "*".
const AllowTrailer = "Gitfleet-Allow-Delete"

// AllowedDeletions lists the values of AllowTrailer in a message. As in Git, trailers are lines of the
// last paragraph.
func AllowedDeletions(message string) []string {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	if at := strings.LastIndex(message, "\n\n"); at >= 0 {
		message = message[at+2:]
	}
	var names []string
	for line := range strings.Lines(message) {
		key, value, ok := strings.Cut(line, ":")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), AllowTrailer) {
			continue
		}
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
