package conditions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Cluster is a placement on one cluster, with the content that its status is about.
type Cluster struct {
	*plan.OnCluster
	p *plan.Placement
	// unanswered is why the cluster, which has not reported yet, does not answer; empty if it does, or if that is not known.
	unanswered string
}

// On returns a placement on a cluster. The status of a placement with an external rollout is about the content that the cluster
// holds, and that of any other about the newest.
func On(p *plan.Placement, c *plan.OnCluster, unanswered string) Cluster {
	if External(p) {
		c = assigned(c)
	}
	return Cluster{c, p, unanswered}
}

// Condition returns the condition of one type: of those that Expected returns, the first that is not true, or one before it.
func (c Cluster) Condition(typ string) Value {
	switch typ {
	case api.RolloutStarted:
		return c.rolloutStarted()
	case api.Overridden:
		return c.overridden()
	case api.WorkSynchronized:
		return c.synchronized()
	case api.Available:
		return c.available()
	}
	// Applied, and DiffReported in its place
	inProgress := False(api.ApplyInProgress, "Resources are being applied")
	failed := False(api.NotAllWorkHaveBeenApplied, "has failed to apply")
	done := True(api.AllWorkHaveBeenApplied, "All corresponding work objects are applied")
	if typ == api.DiffReported {
		inProgress = False(api.DiffReportInProgress, "Diff reporting on resources is in progress")
		failed = False(api.NotAllWorkHaveDiffReported, "has failed to report diff")
		done = True(api.AllWorkHaveDiffReported, "All corresponding work objects have reported diff")
	}
	switch {
	case !c.LastKnown().Done:
		return inProgress
	case !c.allApplied():
		failed.Message = "Work object " + c.failedWork() + " " + failed.Message
		return failed
	}
	return done
}

func (c Cluster) rolloutStarted() Value {
	const undecided = "In the process of deciding whether to roll out some version of the resources or not"
	switch {
	case c.Binding.HasRevision() && (c.UpToDate() || External(c.p)), c.Unbuilt():
		return True(api.RolloutStartedReason, "Detected the new changes on the resources and started the rollout process")
	case External(c.p):
		return Unknown(api.RolloutStartedUnknown, undecided+": "+cmp.Or(c.Waits, "the strategy is External"))
	case c.Waits != "":
		return False(api.RolloutNotStartedYet, "The rollout is being blocked by the rollout strategy: "+c.Waits)
	case c.p.InternalError != "" || c.p.Selection.Invalid != "":
		return Unknown(api.RolloutStartedUnknown, undecided+": "+Scheduled(c.p).Message)
	}
	return Unknown(api.RolloutStartedUnknown, undecided)
}

func (c Cluster) overridden() Value {
	var failed *work.OverrideError
	switch {
	case errors.As(c.Err, &failed):
		return False(api.OverriddenFailed, "Failed to apply the override rules on the resources: "+failed.Error())
	case len(c.Content.ClusterOverrides)+len(c.Content.Overrides) > 0:
		return True(api.OverriddenSucceeded, "Successfully applied the override rules on the resources")
	}
	return True(api.NoOverrideSpecified, noOverrideText)
}

func (c Cluster) synchronized() Value {
	why := c.Unusual().Refusal
	if why == "" && c.Err != nil {
		why = c.Err.Error()
	}
	switch {
	case why != "":
		return False(api.SyncWorkFailed, "Failed to synchronize the work to the latest: "+why)
	case c.LastKnown() != nil:
		return True(api.AllWorkSynced, "All of the works are synchronized to the latest")
	}
	text := "In the process of creating or updating the work object(s) in the hub cluster"
	if c.unanswered != "" {
		text += "; the cluster does not answer: " + c.unanswered
	}
	return Unknown(api.WorkSynchronizedUnknown, text)
}

func (c Cluster) available() Value {
	seen := c.LastKnown()
	if i := slices.IndexFunc(seen.Exceptions, func(o protocol.ObjectState) bool { return !o.Available.OK }); i >= 0 {
		return False(api.NotAllWorkAreAvailable, "Work object "+c.work(seen.Exceptions[i].Envelope)+" is not yet available")
	}
	if seen.Untrackable > 0 {
		return True(api.NotAllWorkAreAvailabilityTrackable, "The availability of work object "+c.work(nil)+" is not trackable")
	}
	return True(api.AllWorkAreAvailable, "All corresponding work objects are available")
}

// allApplied reports whether every object is applied, including those that were never sent to
// the member.
func (c Cluster) allApplied() bool {
	return c.LastKnown().Applied() && len(c.Content.Refused)+len(c.Unusual().Yielded) == 0
}

// failedWork is the name of the work of the first object that is not applied.
func (c Cluster) failedWork() string {
	seen := c.LastKnown()
	for i := range seen.Exceptions {
		if o := &seen.Exceptions[i]; !o.Applied.OK {
			return c.work(o.Envelope)
		}
	}
	if len(c.Content.Refused) > 0 {
		return c.work(c.Content.Refused[0].Envelope)
	}
	return c.work(c.Unusual().Yielded[0].Envelope)
}

// work is the name of the work that KubeFleet creates for an envelope, or without one for the
// objects in none.
func (c Cluster) work(e *api.EnvelopeIdentifier) string {
	name := c.p.Key.Name + "-work"
	if c.p.Key.Namespace != "" {
		name = c.p.Key.Namespace + "." + name
	}
	if e != nil {
		sum := sha256.Sum256([]byte(string(e.Type) + "/" + e.Namespace + "/" + e.Name))
		name += "-envelope-" + hex.EncodeToString(sum[:8])
	}
	return name
}
