package status

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// A Goal is what a placement has to reach on its clusters.
type Goal int

// The goals.
const (
	ToBeAvailable Goal = iota
	ToBeApplied
)

// A Judge says how far the placements of a report are fulfilled.
type Judge struct {
	members map[string]fulfilment.Usability
	goal    Goal
}

// NewJudge returns the judge of a report.
func NewJudge(r *Report, goal Goal) *Judge {
	j := &Judge{members: make(map[string]fulfilment.Usability, len(r.Clusters)), goal: goal}
	for _, c := range r.Clusters {
		j.members[c.Name] = UsabilityOf(c)
	}
	return j
}

// UsabilityOf returns whether gitfleet can write to a member cluster, from the conditions of its MemberCluster.
func UsabilityOf(c *api.MemberCluster) fulfilment.Usability {
	switch {
	case IsClaimedByOthers(c), MissingPermissions(c) != nil:
		return fulfilment.Refused
	case IsHealthy(c):
		return fulfilment.Usable
	}
	return fulfilment.Unanswered
}

// IsHealthy reports whether a member answered the last probe and was ready.
func IsHealthy(c *api.MemberCluster) bool {
	return slices.ContainsFunc(c.Status.AgentStatus, func(a api.AgentStatus) bool {
		return meta.IsStatusConditionTrue(a.Conditions, api.Healthy)
	})
}

// IsClaimedByOthers reports whether another fleet or another member has claimed the cluster, which may be healthy all the same.
func IsClaimedByOthers(c *api.MemberCluster) bool {
	joined := meta.FindStatusCondition(c.Status.Conditions, api.Joined)
	return joined != nil && joined.Status == metav1.ConditionFalse && (joined.Reason == api.MemberClusterForeign || joined.Reason == api.MemberClusterDuplicate)
}

// MissingPermissions returns the condition with the permissions that a member lacks; nil if
// none is known to be missing.
func MissingPermissions(c *api.MemberCluster) *metav1.Condition {
	cond := meta.FindStatusCondition(c.Status.Conditions, api.PermissionsGranted)
	if cond == nil || cond.Status != metav1.ConditionFalse {
		return nil
	}
	return cond
}

// A Verdict says how far a placement is fulfilled on one cluster, and the reason why it is not.
type Verdict struct {
	fulfilment.Degree
	fulfilment.Reason
}

// Placement returns how far a placement with a status, nil if it was removed from the repository, is fulfilled: all in all, and
// on each of its clusters, in the order of the details.
func (j *Judge) Placement(d *Detail, s *api.PlacementStatus) (fulfilment.Tally, []Verdict) {
	f := fulfilment.Placement{NoMembers: d.NoMembers, Short: d.Short}
	if c := Unscheduled(s); c != nil {
		f.Undecided, f.Unscheduled = c.Status == metav1.ConditionUnknown, c.Status == metav1.ConditionFalse
	}
	for _, a := range d.Absent {
		usability := fulfilment.Unanswered
		if a.Refused {
			usability = fulfilment.Refused
		}
		f.Absent = append(f.Absent, usability)
	}
	statuses := statusFinder{s, nil}
	verdicts := make([]Verdict, 0, len(d.Clusters))
	f.Clusters = make([]fulfilment.Degree, 0, len(d.Clusters))
	for i := range d.Clusters {
		v := j.cluster(d, &d.Clusters[i], statuses.of(d.Clusters[i].Cluster, i))
		verdicts = append(verdicts, v)
		f.Clusters = append(f.Clusters, v.Degree)
	}
	return f.Of(), verdicts
}

// A statusFinder finds what a status, which may be nil, says of clusters.
type statusFinder struct {
	status *api.PlacementStatus
	on     map[string]*api.PerClusterPlacementStatus // nil until it is needed
}

// of returns the part about a cluster, which is looked for at guess first; nil if there is none.
func (f *statusFinder) of(cluster string, guess int) *api.PerClusterPlacementStatus {
	if f.status != nil && guess < len(f.status.PlacementStatuses) && f.status.PlacementStatuses[guess].ClusterName == cluster {
		return &f.status.PlacementStatuses[guess]
	}
	if f.on == nil {
		f.on = PerCluster(f.status)
	}
	return f.on[cluster]
}

func (j *Judge) cluster(d *Detail, c *ClusterDetail, s *api.PerClusterPlacementStatus) Verdict {
	usability, known := j.members[c.Cluster]
	if !known {
		usability = fulfilment.Unanswered // it leaves the fleet
	}
	f := fulfilment.Cluster{
		Usability: usability, Done: c.Available || compared(s) || j.goal == ToBeApplied && c.Applied,
		Suspended: c.Suspended != "", DeletionsBlocked: len(c.BlockedDeletions) > 0, Undeleted: len(c.DeletionErrors) > 0,
		Failed: j.failed(c, s), Deleting: c.Deleting > 0, Waits: c.Waits != "", Removing: c.Removing, Lingers: len(c.Lingering) > 0, Stopped: d.Stopped != "",
	}
	degree, why := f.Of()
	return Verdict{degree, why}
}

// failed reports whether the content was refused or, if it has to become available, will not.
func (j *Judge) failed(c *ClusterDetail, s *api.PerClusterPlacementStatus) bool {
	return !c.Progressing && (Refusal(s) != nil || c.Waits == "" && c.Failure != "" && !(j.goal == ToBeApplied && c.Applied))
}

// compared reports whether a placement that only compares has compared everything on a cluster.
func compared(s *api.PerClusterPlacementStatus) bool {
	return s != nil && meta.IsStatusConditionTrue(s.Conditions, api.DiffReported)
}

// Refusal returns the condition which says that something cannot be applied on a cluster, or be compared; nil if there
// is none.
func Refusal(s *api.PerClusterPlacementStatus) *metav1.Condition {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool {
		switch c.Reason {
		case api.OverriddenFailed, api.SyncWorkFailed, api.NotAllWorkHaveDiffReported, api.NotAllWorkHaveBeenApplied:
			return true
		}
		return false
	})
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// Unscheduled returns the condition which says that a placement is not scheduled as its policy asks for, or not yet; nil if it
// is, or is being removed.
func Unscheduled(s *api.PlacementStatus) *metav1.Condition {
	if s == nil {
		return nil
	}
	return FirstUntrue(s.Conditions, api.Scheduled)
}

// ScheduleProblem returns why a placement, which may have no status, is not scheduled as its policy asks for, or not yet; empty
// if it is, or only for the reasons in the Absent of its detail.
func ScheduleProblem(d *Detail, s *api.PlacementStatus) string {
	switch c := Unscheduled(s); {
	case c != nil:
		return c.Message
	case d.NoMembers:
		return "the commit has no MemberCluster, so that nothing can be placed anywhere"
	}
	return ""
}

// PerCluster returns the parts of a status by cluster.
func PerCluster(s *api.PlacementStatus) map[string]*api.PerClusterPlacementStatus {
	out := map[string]*api.PerClusterPlacementStatus{}
	if s != nil {
		for i := range s.PlacementStatuses {
			out[s.PlacementStatuses[i].ClusterName] = &s.PlacementStatuses[i]
		}
	}
	return out
}

// A State is the state of a placement on a cluster, or of a member. Each cluster is in exactly one.
type State string

// The states.
const (
	StateAvailable        State = "available"   // has the newest content, which is available
	StateProgressing      State = "progressing" // has the newest content, which is not available yet
	StateRolling          State = "rolling"     // is being updated
	StateWaiting          State = "waiting"     // its update has not begun
	StateFailed           State = "failed"      // something was refused, or will not become available
	StateUnreachable      State = "unreachable" // the cluster does not answer
	StateForbidden        State = "forbidden"   // the cluster cannot be used: permissions are missing
	StateForeign          State = "foreign"     // another fleet or member has claimed the cluster; only for members
	StateRemoving         State = "removing"    // its content is being removed
	StateDeletionsBlocked State = "held"        // its deletions are blocked until a commit allows them
)

// StateOf returns the state of a placement on a cluster. s is the status of the placement
// there; nil if there is none.
func StateOf(c *ClusterDetail, s *api.PerClusterPlacementStatus, members MemberStates) State {
	switch away := members.Of(c.Cluster); {
	case away != StateAvailable:
		return away
	case c.Removing && len(c.BlockedDeletions) > 0:
		return StateDeletionsBlocked
	case c.Removing:
		return StateRemoving
	case FailureOf(c, s) != "":
		return StateFailed
	case c.Waits != "":
		return StateWaiting
	case len(c.BlockedDeletions) > 0:
		return StateDeletionsBlocked
	case c.Available:
		return StateAvailable
	case c.Applied || c.Progressing:
		return StateProgressing
	}
	return StateRolling
}

// AssignedStates are the states that AssignedState returns.
var AssignedStates = [...]State{StateAvailable, StateProgressing, StateWaiting, StateFailed, StateRemoving}

// AssignedState returns the state of the content that a cluster has, whether or not it can be reached now and newer content
// waits for it. It is one of AssignedStates.
func (c *ClusterDetail) AssignedState() State {
	switch {
	case c.Removing:
		return StateRemoving
	case c.Failure != "":
		return StateFailed
	case c.Waits != "":
		return StateWaiting
	case c.Available:
		return StateAvailable
	}
	return StateProgressing
}

// FailureOf returns why content will not become available by itself; empty if it may, or if an
// update is due. It is the same on all clusters where the reason is the same.
func FailureOf(c *ClusterDetail, s *api.PerClusterPlacementStatus) string {
	refused := Refusal(s)
	switch {
	case c.Progressing, refused == nil && c.Waits != "":
		return ""
	case refused == nil:
		return c.Failure
	case refused.Reason == api.NotAllWorkHaveBeenApplied:
		return cmp.Or(c.Cause, refused.Message)
	}
	return refused.Message
}

// MemberStates are the states of the members: available, unreachable or forbidden.
type MemberStates map[string]State

// MemberStatesOf returns the states of the members of a report.
func MemberStatesOf(r *Report) MemberStates {
	out := make(MemberStates, len(r.Clusters))
	for _, c := range r.Clusters {
		out[c.Name] = MemberStateOf(c)
	}
	return out
}

// Of returns the state of a member; unreachable if there is no member of that name.
func (m MemberStates) Of(name string) State {
	if at, ok := m[name]; ok {
		return at
	}
	return StateUnreachable
}

// MemberStateOf returns whether a member can be used, and if not, why.
func MemberStateOf(c *api.MemberCluster) State {
	switch {
	case IsHealthy(c):
		return StateAvailable
	case MissingPermissions(c) != nil:
		return StateForbidden
	}
	return StateUnreachable
}

// Completed is the Outstanding.Type of a placement that has reached all conditions.
const Completed = "Completed"

// Outstanding is the condition that a placement has to reach next.
type Outstanding struct {
	// Type is Completed if all conditions are reached.
	Type string
	// Status and Reason are "nil" if the condition is missing or belongs to an older spec.
	Status, Reason string
}

// OutstandingOf returns the condition that a placement of either kind has to reach next.
func OutstandingOf(object *metav1.ObjectMeta, spec *api.PlacementSpec, all []metav1.Condition) Outstanding {
	for _, typ := range append([]string{api.Scheduled}, conditions.Expected(spec)...) {
		typ = conditions.Prefix(object.Namespace) + typ
		c := meta.FindStatusCondition(all, typ)
		if c == nil || c.ObservedGeneration != object.Generation {
			return Outstanding{typ, "nil", "nil"}
		}
		if c.Status != metav1.ConditionTrue {
			return Outstanding{typ, string(c.Status), c.Reason}
		}
	}
	return Outstanding{Completed, string(metav1.ConditionTrue), Completed}
}

// FirstUntrue returns the first condition that is not true, in their order, which is that of
// progress; nil if there is none. With types, it is the first of these, with any prefix.
func FirstUntrue(conditions []metav1.Condition, types ...string) *metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		of := func(typ string) bool { return strings.HasSuffix(c.Type, typ) }
		if c.Status != metav1.ConditionTrue && (len(types) == 0 || slices.ContainsFunc(types, of)) {
			return c
		}
	}
	return nil
}
