package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// deletionsHeld is the condition DeletionsHeld for the given clusters of the placement; false
// if no deletions are held there.
func (b *builder) deletionsHeld(clusters ...*plan.OnCluster) (v conditionValue, held bool) {
	objects, on := 0, 0
	first, where := ledger.Braked{}, ""
	for _, c := range clusters {
		braked, pending := c.HeldDeletions()
		if pending || len(braked) == 0 {
			continue
		}
		if on == 0 {
			first, where = braked[0], c.Binding.Cluster
		}
		objects += len(braked)
		on++
	}
	if on == 0 {
		return conditionValue{}, false
	}
	return conditionValue{metav1.ConditionTrue, api.AllowedByNoCommit, fmt.Sprintf(
		"Deleting %d object(s) on %d cluster(s) is held, such as %s on %s: %s; %s",
		objects, on, first.ID, where, first.Why, HeldAdvice(b.p.Key.String()),
	)}, true
}

// HeldAdvice says what to do about held deletions of a placement (crp/NAME or
// rp/NAMESPACE/NAME).
func HeldAdvice(placement string) string {
	return fmt.Sprintf("if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer %q to the message of a commit",
		AllowTrailer(placement))
}

// AllowTrailer returns the line in a commit message that allows the held deletions of a
// placement (crp/NAME or rp/NAMESPACE/NAME).
func AllowTrailer(placement string) string { return plan.AllowTrailer + ": " + placement }
