package updaterun

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A view says in KubeFleet's terms what is recorded of a run.
type view struct {
	run *placement.Run
	p   *plan.Placement
	// failed are the clusters for which the run in force waits in vain, and updating and updated those with its content.
	failed            []string
	updating, updated map[string]bool
	// now is the time of the plan, and generation that of the spec of the run.
	now        time.Time
	generation int64
}

func newView(p *plan.Placement, run *placement.Run, now time.Time) *view {
	v := &view{run: run, p: p, now: now}
	inForce, progress := p.Rollout.Run, p.Rollout.Progress
	if inForce == nil || inForce.Name != run.Name || progress == nil {
		return v
	}
	v.failed, v.updating, v.updated = progress.Failed, map[string]bool{}, map[string]bool{}
	for _, name := range progress.Updating {
		v.updating[name] = true
	}
	for _, name := range progress.Updated {
		v.updated[name] = true
	}
	return v
}

// member reports whether the placement is still to be on a cluster.
func (v *view) member(cluster string) bool {
	c := v.p.On(cluster)
	return c != nil && !c.Binding.Unscheduled && !c.Binding.Removing
}

// condition returns a condition of the run or of a part of it.
func (v *view) condition(typ string, status metav1.ConditionStatus, reason, message string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at), ObservedGeneration: v.generation}
}

// clientError introduces KubeFleet's messages about what a user can correct.
const clientError = "cannot continue the updateRun: failed to validate the updateRun: failed to process the request due to a client error: "

// kinds are the kinds of a run and of an approval request of a placement.
func kinds(namespace string) (run, request string) {
	if namespace == "" {
		return "ClusterStagedUpdateRun", "ClusterApprovalRequest"
	}
	return "StagedUpdateRun", "ApprovalRequest"
}
