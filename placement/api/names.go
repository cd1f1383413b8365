package api

// Labels and annotations of KubeFleet that mean something in Git.
const (
	// EnvelopeConfigMapAnnotation, with any value but "" and "false", makes a
	// ConfigMap an envelope.
	EnvelopeConfigMapAnnotation = "kubernetes-fleet.io/envelope-configmap"
	// MemberNameLabel is on every MemberCluster, whether or not Git says so.
	MemberNameLabel = "kubernetes-fleet.io/member-name"
)

// Names of our own. They are never changed once released: objects on members
// carry them.
const (
	// FieldManager owns the fields gitfleet applies.
	FieldManager = "gitfleet"
	// Namespace holds the inventories on a member.
	Namespace = "gitfleet-system"
	// ManagedByLabel is on every applied object; its value is the fleet's name.
	ManagedByLabel = "gitfleet.dev/managed-by"
	// FleetIDAnnotation and FleetSourceAnnotation, on an inventory, tell fleets of one
	// name apart.
	FleetIDAnnotation     = "gitfleet.dev/fleet-id"
	FleetSourceAnnotation = "gitfleet.dev/fleet-source"
	// PlacementAnnotation names the placement an applied object belongs to:
	// crp/NAME or rp/NAMESPACE/NAME.
	PlacementAnnotation = "gitfleet.dev/placement"
	// SourceAnnotation is the repository an applied object comes from.
	SourceAnnotation = "gitfleet.dev/source"
	// CommitAnnotation is the commit that last touched an applied object.
	CommitAnnotation = "gitfleet.dev/commit"
	// PathAnnotation is the file of the hub an applied object comes from.
	PathAnnotation = "gitfleet.dev/path"
	// IgnoreFieldsAnnotation, on an object of the hub, lists JSON pointers to
	// fields that gitfleet leaves alone once the object exists.
	IgnoreFieldsAnnotation = "gitfleet.dev/ignore-fields"
	// AvailableAnnotation, on an object of the hub, is a CEL expression over the
	// object as it is on the member, which says whether it is available.
	AvailableAnnotation = "gitfleet.dev/available"
	// PruneAnnotation, on an object, with the value PruneDisabled keeps it where it
	// is when no placement has it any more: it is released, not deleted.
	PruneAnnotation = "gitfleet.dev/prune"
	PruneDisabled   = "disabled"
	// PropertyAnnotationPrefix declares a cluster property on a MemberCluster.
	PropertyAnnotationPrefix = "property.gitfleet.dev/"
	// OnFailureAnnotation on a placement says what the failed update of a cluster
	// does to the rest of the rollout: it stops, unless the value is
	// OnFailureContinue.
	OnFailureAnnotation = "gitfleet.dev/on-failure"
	OnFailureContinue   = "continue"
	OnFailureStop       = "stop"
	// AvailableTimeoutAnnotation on a placement says how long a cluster may take to
	// become available before its update counts as failed; "0s" means any time.
	AvailableTimeoutAnnotation = "gitfleet.dev/available-timeout"
	// DriftAnnotation, on an object, a placement or a MemberCluster, is a [DriftRule] for it
	// instead of the drift mode of the fleet.
	DriftAnnotation = "gitfleet.dev/drift"
	// SuspendedAnnotation, on what the daemon shows of a placement or a cluster,
	// says who wants it left as it is, until when and why.
	SuspendedAnnotation = "gitfleet.dev/suspended"
	// RenamedFromAnnotation, on what the daemon shows of a placement, is its earlier
	// name, as crp/NAME or rp/NAMESPACE/NAME.
	RenamedFromAnnotation = "gitfleet.dev/renamed-from"
	// CleanupFinalizer, on what the daemon shows of a placement that is gone from Git,
	// says that the removal of its objects is not complete.
	CleanupFinalizer = "gitfleet.dev/cleanup"
	// ContextAnnotation names the kubeconfig context of a MemberCluster.
	ContextAnnotation = "gitfleet.dev/context"
)
