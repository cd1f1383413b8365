package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// untrue is the status of a placement on a cluster, with one condition.
func untrue(reason, message string) *api.PerClusterPlacementStatus {
	return &api.PerClusterPlacementStatus{
		ClusterName: "east", Conditions: []metav1.Condition{{Type: api.Applied, Status: metav1.ConditionFalse, Reason: reason, Message: message}},
	}
}

// A cluster is in exactly one state: the first that applies of unreachable and forbidden, held and
// removing, failed, waiting, held, available, progressing and rolling.
func TestStateOf(t *testing.T) {
	blocked := []string{"ConfigMap/web/one: too much"}
	for name, test := range map[string]struct {
		detail ClusterDetail
		status *api.PerClusterPlacementStatus
		member State
		want   State
	}{
		"unreachable before all others":     {ClusterDetail{Available: true, Removing: true, Failure: "denied"}, nil, StateUnreachable, StateUnreachable},
		"forbidden before all others":       {ClusterDetail{Waits: "waits", BlockedDeletions: blocked}, nil, StateForbidden, StateForbidden},
		"no longer a member":                {ClusterDetail{Cluster: "gone", Available: true}, nil, StateAvailable, StateUnreachable},
		"removing with held deletions":      {ClusterDetail{Removing: true, BlockedDeletions: blocked}, nil, StateAvailable, StateDeletionsBlocked},
		"removing before failed":            {ClusterDetail{Removing: true, Failure: "denied"}, nil, StateAvailable, StateRemoving},
		"failed before held":                {ClusterDetail{Failure: "denied", BlockedDeletions: blocked}, nil, StateAvailable, StateFailed},
		"refused while an update is due":    {ClusterDetail{Waits: "waits"}, untrue(api.OverriddenFailed, "no such field"), StateAvailable, StateFailed},
		"waiting before held":               {ClusterDetail{Waits: "waits", BlockedDeletions: blocked}, nil, StateAvailable, StateWaiting},
		"a failure of earlier content":      {ClusterDetail{Waits: "waits", Failure: "denied"}, nil, StateAvailable, StateWaiting},
		"held before available":             {ClusterDetail{Available: true, Applied: true, BlockedDeletions: blocked}, nil, StateAvailable, StateDeletionsBlocked},
		"available":                         {ClusterDetail{Available: true, Applied: true}, nil, StateAvailable, StateAvailable},
		"applied and not available":         {ClusterDetail{Applied: true}, nil, StateAvailable, StateProgressing},
		"being applied":                     {ClusterDetail{Progressing: true}, untrue(api.NotAllWorkHaveBeenApplied, "1 object"), StateAvailable, StateProgressing},
		"assigned and nothing reported yet": {ClusterDetail{}, nil, StateAvailable, StateRolling},
	} {
		t.Run(name, func(t *testing.T) {
			if test.detail.Cluster == "" {
				test.detail.Cluster = "east"
			}
			if got := StateOf(&test.detail, test.status, MemberStates{"east": test.member}); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The failure of a cluster is what refuses its content, or why it will not become available.
func TestFailureOf(t *testing.T) {
	for name, test := range map[string]struct {
		detail ClusterDetail
		status *api.PerClusterPlacementStatus
		want   string
	}{
		"nothing failed":             {ClusterDetail{}, nil, ""},
		"progressing":                {ClusterDetail{Progressing: true, Failure: "denied"}, untrue(api.SyncWorkFailed, "no answer"), ""},
		"an override":                {ClusterDetail{}, untrue(api.OverriddenFailed, "no such field"), "no such field"},
		"not sent":                   {ClusterDetail{}, untrue(api.SyncWorkFailed, "too large"), "too large"},
		"not compared":               {ClusterDetail{}, untrue(api.NotAllWorkHaveDiffReported, "no kind"), "no kind"},
		"another condition":          {ClusterDetail{}, untrue(api.RolloutNotStartedYet, "waits"), ""},
		"an object":                  {ClusterDetail{Cause: "ConfigMap/web/one: denied"}, untrue(api.NotAllWorkHaveBeenApplied, "1 object"), "ConfigMap/web/one: denied"},
		"no object":                  {ClusterDetail{}, untrue(api.NotAllWorkHaveBeenApplied, "1 object"), "1 object"},
		"not available for good":     {ClusterDetail{Failure: "Deployment.apps/web/web: denied"}, nil, "Deployment.apps/web/web: denied"},
		"earlier content":            {ClusterDetail{Waits: "waits", Failure: "denied"}, nil, ""},
		"refused before unavailable": {ClusterDetail{Failure: "starting"}, untrue(api.SyncWorkFailed, "too large"), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FailureOf(&test.detail, test.status); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// The cause on a cluster names the first object that is not applied and counts the others, or else the first that is not
// available. It has no words of KubeFleet, and is the same whatever the names of the pods are.
func TestCauseOfACluster(t *testing.T) {
	denied := protocol.Verdict{Reason: api.ManifestApplyFailed, Sentence: api.SaysApplyRefused, Cause: "admission webhook denied"}
	starting := func(pod string) protocol.ObjectState {
		return change1(objectState("web", yes, protocol.Verdict{Reason: api.ManifestNotAvailableYet, Sentence: api.SaysNotAvailable,
			Cause: "0 of 1 replicas; pod " + pod + ", container web: ImagePullBackOff"}), func(o *protocol.ObjectState) { o.Pod = pod })
	}
	for name, test := range map[string]struct {
		objects []protocol.ObjectState
		want    string
	}{
		"nothing":                    {nil, ""},
		"refused":                    {[]protocol.ObjectState{objectState("one", denied, protocol.Verdict{})}, "ConfigMap/web/one: admission webhook denied"},
		"several":                    {[]protocol.ObjectState{objectState("two", denied, protocol.Verdict{}), objectState("one", denied, protocol.Verdict{})}, "ConfigMap/web/one: admission webhook denied (and 1 more)"},
		"a pod":                      {[]protocol.ObjectState{starting("web-5b9f9b86c4-sh6z6")}, "ConfigMap/web/web: 0 of 1 replicas; a pod, container web: ImagePullBackOff"},
		"the pod of another cluster": {[]protocol.ObjectState{starting("web-5b9f9b86c4-x7k2p")}, "ConfigMap/web/web: 0 of 1 replicas; a pod, container web: ImagePullBackOff"},
		"refused before unavailable": {[]protocol.ObjectState{starting("web-1"), objectState("zeal", denied, protocol.Verdict{})}, "ConfigMap/web/zeal: admission webhook denied"},
		"without a cause":            {[]protocol.ObjectState{objectState("one", yes, protocol.Verdict{Sentence: api.SaysNotAvailable})}, "ConfigMap/web/one: Manifest is not yet available; Fleet will check again later"},
		"of an earlier version":      {[]protocol.ObjectState{objectState("one", protocol.Verdict{Cause: "Failed to apply the manifest (error: no)"}, protocol.Verdict{})}, "ConfigMap/web/one: Failed to apply the manifest (error: no)"},
	} {
		b := newBuilder(assigned("east", done(test.objects...)))
		if got := b.clusterDetail(b.p.Clusters[0]).Cause; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	crashed := change(assigned("east", done(starting("web-5b9f9b86c4-sh6z6"))), func(c *plan.OnCluster) {
		c.Circumstances = &plan.Circumstances{Failure: "ConfigMap/web/web: pod web-5b9f9b86c4-sh6z6, container web: ImagePullBackOff"}
	})
	if got := newBuilder(crashed).clusterDetail(crashed).Failure; got != "ConfigMap/web/web: a pod, container web: ImagePullBackOff" {
		t.Errorf("the failure is %q", got)
	}
}

// AssignedState returns each of AssignedStates and no other state, so that metrics of them leave out no cluster.
func TestAssignedStates(t *testing.T) {
	returned := map[State]bool{}
	for _, removing := range []bool{false, true} {
		for _, failure := range []string{"", "no image"} {
			for _, waits := range []string{"", "maxUnavailable 1"} {
				for _, available := range []bool{false, true} {
					c := ClusterDetail{Removing: removing, Failure: failure, Waits: waits, Available: available}
					returned[c.AssignedState()] = true
				}
			}
		}
	}
	for _, s := range AssignedStates {
		if !returned[s] {
			t.Errorf("%s is never returned", s)
		}
		delete(returned, s)
	}
	if len(returned) > 0 {
		t.Errorf("%v are not among AssignedStates", returned)
	}
}

// A member that another fleet or member holds cannot be used until somebody acts, although it answers.
func TestReachOfAMember(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       fulfilment.Usability
	}{
		"it answers":               {[]metav1.Condition{{Type: api.Joined, Status: metav1.ConditionTrue}}, fulfilment.Usable},
		"another fleet holds it":   {[]metav1.Condition{{Type: api.Joined, Status: metav1.ConditionFalse, Reason: api.MemberClusterForeign}}, fulfilment.Refused},
		"it has a second name":     {[]metav1.Condition{{Type: api.Joined, Status: metav1.ConditionFalse, Reason: api.MemberClusterDuplicate}}, fulfilment.Refused},
		"permissions are missing":  {[]metav1.Condition{{Type: api.PermissionsGranted, Status: metav1.ConditionFalse}}, fulfilment.Refused},
		"it has not joined so far": {[]metav1.Condition{{Type: api.Joined, Status: metav1.ConditionUnknown}}, fulfilment.Usable},
	} {
		c := &api.MemberCluster{}
		c.Status.Conditions = test.conditions
		c.Status.AgentStatus = []api.AgentStatus{{Type: api.MemberAgent, Conditions: []metav1.Condition{{Type: api.Healthy, Status: metav1.ConditionTrue}}}}
		if got := UsabilityOf(c); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
