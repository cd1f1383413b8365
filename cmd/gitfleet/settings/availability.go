package settings

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// AvailabilityConfig configures replicas that share a ledger. Without the name of a lease there
// is one replica, with the ledger in its state directory.
type AvailabilityConfig struct {
	Lease LeaseConfig `json:"lease"`
	// Kubeconfig is the kubeconfig of the cluster with the lease; empty for the cluster in
	// which gitfleet runs.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// LeaseConfig names the Lease that says which replica leads.
type LeaseConfig struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

func (a *AvailabilityConfig) settings() []setting {
	return []setting{
		{"highAvailability.lease.name", &a.Lease.Name, "name of the Lease that says which of several replicas leads; it makes gitfleet keep its ledger beside it, in Secrets"},
		{"highAvailability.lease.namespace", &a.Lease.Namespace, "namespace of the Lease and of the Secrets"},
		{"highAvailability.kubeconfig", &a.Kubeconfig, "kubeconfig of the cluster with the Lease, if it is not the one that gitfleet runs in"},
	}
}

// ValidateAvailability validates the settings of replicas.
func (c Config) ValidateAvailability() []error {
	lease := c.Availability.Lease
	var errs []error
	switch {
	case lease.Name == "" && lease.Namespace == "" && c.Availability.Kubeconfig == "":
		return nil
	case lease.Name == "":
		errs = append(errs, c.fault("highAvailability.lease.name", "is missing; all replicas need the same"))
	case lease.Namespace == "":
		errs = append(errs, c.fault("highAvailability.lease.namespace", "is missing; all replicas need the same"))
	}
	if lease.Name != "" {
		for _, msg := range validation.IsDNS1123Label(lease.Name) {
			errs = append(errs, c.fault("highAvailability.lease.name", msg))
		}
	}
	if lease.Namespace != "" {
		for _, msg := range validation.IsDNS1123Label(lease.Namespace) {
			errs = append(errs, c.fault("highAvailability.lease.namespace", msg))
		}
	}
	return errs
}

// ReplicaConfig returns the configuration of this process as one of several replicas.
func (c Config) ReplicaConfig(identity string, log *slog.Logger) replica.Config {
	return replica.Config{
		Kubeconfig: c.Availability.Kubeconfig, Namespace: c.Availability.Lease.Namespace, Name: c.Availability.Lease.Name,
		Identity: identity, Log: log,
	}
}
