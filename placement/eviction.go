package placement

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Eviction is what is recorded of one removal of a placement from a cluster. It is judged once.
type Eviction struct {
	Name, Cluster string
	// By and Reason are who ordered it and why; empty if it is declared in Git.
	By, Reason string    `json:",omitempty"`
	At         time.Time // when it was ordered or first seen
	// Judged is when it was judged; zero if it waits for reports of members.
	Judged time.Time `json:",omitzero"`
	Judgement
}

// Pending reports whether the eviction has not been judged.
func (e Eviction) Pending() bool { return e.Judged.IsZero() }

// A Judgement is what comes of an eviction.
type Judgement struct {
	// Valid says that the placement can be evicted from the cluster, and Executed that it is.
	Valid    bool `json:",omitempty"`
	Executed bool `json:",omitempty"`
	// Message is KubeFleet's.
	Message string `json:",omitempty"`
}

// Evictable is the state of a placement for which an eviction is judged.
type Evictable struct {
	Policy *api.PlacementPolicy
	// Deleting says that the placement is being deleted.
	Deleting bool
	// Budget is the disruption budget of the placement; nil if it has none.
	Budget *api.DisruptionBudgetSpec
	// Bindings are those of all clusters that hold the placement.
	Bindings []EvictableBinding
}

// An EvictableBinding is the state of the placement on one cluster.
type EvictableBinding struct {
	Cluster string
	// Removing says that its content is being removed, Released that it has been given any.
	Removing, Released bool
	// Available says that all of its assigned content is available, and Failed that it cannot become so, or was only
	// compared.
	Available, Failed bool
	// Blocked is the reason why nothing can be removed now; empty if there is none.
	Blocked string
}

// Judge decides on an eviction of the placement from a cluster. The rules are read from the top, and the first that
// applies decides. An eviction that a budget limits leaves at least what the budget asks for available.
func (e *Evictable) Judge(cluster string) Judgement {
	invalid := func(message string) Judgement { return Judgement{Message: message} }
	blocked := func(message string) Judgement {
		return Judgement{Valid: true, Message: "Eviction is blocked" + message}
	}
	allowed := func(message string) Judgement {
		return Judgement{Valid: true, Executed: true, Message: "Eviction is allowed" + message}
	}
	var b *EvictableBinding
	available := 0
	for i := range e.Bindings {
		if e.Bindings[i].Cluster == cluster {
			b = &e.Bindings[i]
		}
		if e.Bindings[i].Available && !e.Bindings[i].Removing {
			available++
		}
	}
	total := len(e.Bindings)
	counts := fmt.Sprintf(" by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d", available, total)
	switch {
	case e.Deleting:
		return invalid("Found deleting ClusterResourcePlacement targeted by eviction")
	case e.Policy.NamesClusters():
		return invalid("Found ClusterResourcePlacement with PickFixed placement type targeted by eviction")
	case b == nil:
		return invalid("Failed to find scheduler decision for placement in cluster targeted by eviction")
	case b.Removing:
		return allowed(", resources propagated by placement is currently being removed from cluster targeted by eviction")
	case !b.Released:
		return blocked(", placement has not propagated resources to target cluster yet")
	case b.Blocked != "":
		return blocked(", " + b.Blocked)
	case b.Failed && !b.Available:
		return allowed(", placement has failed")
	case e.Budget == nil:
		return allowed(", no ClusterResourcePlacementDisruptionBudget specified")
	case e.Budget.FaultFor(e.Policy) != "":
		return blocked(" by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement")
	case e.spare(available, total) > 0:
		return allowed(counts)
	}
	return blocked(counts)
}

// spare is how many clusters may be evicted; zero or less if none may.
func (e *Evictable) spare(available, total int) int {
	wanted := 0
	if e.Policy != nil && e.Policy.NumberOfClusters != nil {
		wanted = int(*e.Policy.NumberOfClusters)
	}
	scaled := func(v *intstr.IntOrString) (int, bool) {
		if v == nil {
			return 0, false
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, wanted, true)
		return n, err == nil
	}
	if n, set := scaled(e.Budget.MaxUnavailable); set {
		return n - (total - available)
	}
	if n, set := scaled(e.Budget.MinAvailable); set {
		return available - n
	}
	return 0
}
