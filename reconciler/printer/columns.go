package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Name is the first column of most tables.
var Name = Column{
	metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
	func(r Row) string { return r.Meta.Name },
}

var age = Text("Age", "Time since the commit that added the object.", 0, func(r Row) string {
	return r.Since(r.Meta.CreationTimestamp.Time)
})

// source is the position of an object in the repository.
var source = Text("Source", "File and line of the object in the repository.", 1, func(r Row) string {
	return r.Meta.Annotations[api.PathAnnotation]
})

// Manifests are the columns of objects that are served as declared in Git: manifests, overrides
// and envelopes.
var Manifests = []Column{Name, source, age}

// Placements are the columns of both kinds of placement.
var Placements = []Column{
	Name,
	Text("Gen", "Generation: the number of changes of the spec.", 0, func(r Row) string { return strconv.FormatInt(r.Meta.Generation, 10) }),
	Text("Type", "How clusters are picked.", 1, func(r Row) string {
		if policy := placementOf(r).spec.Policy; policy != nil {
			return string(policy.PlacementType)
		}
		return ""
	}),
	Text("Scheduled", "Whether the wanted clusters were found.", 0, conditionStatus(api.Scheduled)),
	Text("Scheduled-Gen", "Generation of the spec that the condition is about.", 0, observedGeneration(api.Scheduled)),
	Text("Work-Synchronized", "Whether the newest content was sent to every cluster.", 1, conditionStatus(api.WorkSynchronized)),
	Text("Work-Synchronized-Gen", "Generation of the spec that the condition is about.", 1, observedGeneration(api.WorkSynchronized)),
	Text("Available", "Whether all placed objects are available.", 0, conditionStatus(api.Available)),
	Text("Available-Gen", "Generation of the spec that the condition is about.", 0, observedGeneration(api.Available)),
	age,
	Text("Clusters", "Selected clusters, and how many are wanted if some were not found.", 1, selectedClusters),
	Text("Applied", "Clusters on which all objects are applied.", 1, appliedClusters),
	Text("Message", "Message of the first condition that is not true.", 1, firstProblem),
}

// placed has what the two kinds of placement have in common.
type placed struct {
	conditions string // the prefix of the types of its conditions
	spec       *api.PlacementSpec
	status     *api.PlacementStatus
}

func placementOf(r Row) placed {
	switch p := r.Value.(type) {
	case *api.ClusterResourcePlacement:
		return placed{api.PlacementPrefix, &p.Spec, &p.Status}
	case *api.ResourcePlacement:
		return placed{api.ResourcePlacementPrefix, &p.Spec, &p.Status}
	}
	return placed{"", &api.PlacementSpec{}, &api.PlacementStatus{}}
}

func conditionStatus(suffix string) func(Row) string {
	return func(r Row) string {
		p := placementOf(r)
		return statusOf(p.status.Conditions, p.conditions+suffix)
	}
}

// statusOf returns the status of a condition; empty if there is none.
func statusOf(conditions []metav1.Condition, typ string) string {
	if c := meta.FindStatusCondition(conditions, typ); c != nil {
		return string(c.Status)
	}
	return ""
}

func observedGeneration(suffix string) func(Row) string {
	return func(r Row) string {
		p := placementOf(r)
		if c := meta.FindStatusCondition(p.status.Conditions, p.conditions+suffix); c != nil {
			return strconv.FormatInt(c.ObservedGeneration, 10)
		}
		return ""
	}
}

func outlineOf(r Row) status.Outline {
	if r.Outline != nil {
		return *r.Outline
	}
	return status.OutlineOf(placementOf(r).status)
}

func selectedClusters(r Row) string {
	o := outlineOf(r)
	if o.Missing > 0 {
		return fmt.Sprintf("%d/%d", o.Selected, o.Selected+o.Missing)
	}
	return strconv.Itoa(o.Selected)
}

func appliedClusters(r Row) string {
	o := outlineOf(r)
	return fmt.Sprintf("%d/%d", o.Applied, o.Selected)
}

func firstProblem(r Row) string {
	return cmp.Or(outlineOf(r).Problem, firstUntrue(placementOf(r).status.Conditions))
}

// firstUntrue returns the message of the first condition that is not true; empty if all are.
func firstUntrue(conditions []metav1.Condition) string {
	if c := status.FirstUntrue(conditions); c != nil {
		return c.Message
	}
	return ""
}

// Evictions are the columns of evictions, which are KubeFleet's.
var Evictions = []Column{
	Name,
	Text("Valid", "Whether the placement can be evicted from the cluster.", 0, evictionCondition(api.EvictionValid)),
	Text("Executed", "Whether it is evicted.", 0, evictionCondition(api.EvictionExecuted)),
	Text("Message", "What came of it.", 1, func(r Row) string {
		if of, ok := r.Value.(*api.ClusterResourcePlacementEviction); ok && len(of.Status.Conditions) > 0 {
			return of.Status.Conditions[len(of.Status.Conditions)-1].Message
		}
		return ""
	}),
}

// EvictionsAlpha are the columns of evictions in v1alpha1, for which KubeFleet has none.
var EvictionsAlpha = []Column{Name, age}

func evictionCondition(typ string) func(Row) string {
	return func(r Row) string {
		of, ok := r.Value.(*api.ClusterResourcePlacementEviction)
		if !ok {
			return ""
		}
		return statusOf(of.Status.Conditions, typ)
	}
}

// Clusters are the columns of MemberClusters.
var Clusters = []Column{
	Name,
	Text("Joined", "Whether the cluster has ever answered.", 0, func(r Row) string { return statusOf(memberOf(r).Status.Conditions, api.Joined) }),
	age,
	Text("Member-Agent-Last-Seen", "Time since the cluster last answered.", 0, func(r Row) string {
		if seen := agentOf(r).LastReceivedHeartbeat.Time; !seen.IsZero() {
			return r.Since(seen)
		}
		return ""
	}),
	Text("Node-Count", "Nodes of the cluster.", 0, property("kubernetes-fleet.io/node-count")),
	Text("Available-CPU", "CPU that is not requested.", 0, usage("cpu", available)),
	Text("Available-Memory", "Memory that is not requested.", 0, usage("memory", available)),
	Text("Allocatable-CPU", "CPU for workloads.", 1, usage("cpu", allocatable)),
	Text("Allocatable-Memory", "Memory for workloads.", 1, usage("memory", allocatable)),
	Text("Healthy", "Whether the cluster answers.", 1, func(r Row) string { return statusOf(agentOf(r).Conditions, api.Healthy) }),
	Text("Version", "Version of Kubernetes.", 1, property("k8s.io/k8s-version")),
	Text("Message", "Message of the first condition that is not true.", 1, func(r Row) string {
		return cmp.Or(firstUntrue(agentOf(r).Conditions), firstUntrue(memberOf(r).Status.Conditions))
	}),
}

func memberOf(r Row) *api.MemberCluster {
	if m, ok := r.Value.(*api.MemberCluster); ok {
		return m
	}
	return &api.MemberCluster{}
}

// agentOf returns the status of the agent of a member; an empty one if it has none.
func agentOf(r Row) api.AgentStatus {
	for _, a := range memberOf(r).Status.AgentStatus {
		if a.Type == api.MemberAgent {
			return a
		}
	}
	return api.AgentStatus{}
}

func property(name string) func(Row) string {
	return func(r Row) string { return memberOf(r).Status.Properties[name].Value }
}

func available(u *api.ResourceUsage) api.ResourceList   { return u.Available }
func allocatable(u *api.ResourceUsage) api.ResourceList { return u.Allocatable }

func usage(name string, of func(*api.ResourceUsage) api.ResourceList) func(Row) string {
	return func(r Row) string {
		if q, found := of(&memberOf(r).Status.ResourceUsage)[name]; found {
			return q.String()
		}
		return ""
	}
}

// PlacementStatusObjects are the columns of ClusterResourcePlacementStatuses.
var PlacementStatusObjects = []Column{
	Name,
	Text("Resource-Index", "Index of the content that the status is about.", 0, func(r Row) string {
		return mirrorOf(r).SourceStatus.ObservedResourceIndex
	}),
	Text("Last-Updated", "Time since the status last changed.", 0, func(r Row) string { return r.Since(mirrorOf(r).LastUpdatedTime.Time) }),
	age,
}

func mirrorOf(r Row) *api.ClusterResourcePlacementStatus {
	if m, ok := r.Value.(*api.ClusterResourcePlacementStatus); ok {
		return m
	}
	return &api.ClusterResourcePlacementStatus{}
}

// UpdateRuns are the columns of both kinds of staged update runs.
var UpdateRuns = []Column{
	Name,
	Text("Placement", "The placement whose clusters are updated.", 0, func(r Row) string { return runOf(r).Spec.PlacementName }),
	Text("Resource-Snapshot-Index", "Index of the content that the run asks for.", 0, func(r Row) string { return runOf(r).Spec.ResourceSnapshotIndex }),
	Text("Policy-Snapshot-Index", "Index of the policy.", 0, func(r Row) string { return runOf(r).Status.PolicySnapshotIndexUsed }),
	Text("Initialized", "Whether the clusters are in stages.", 0, runCondition(api.RunInitialized)),
	Text("Progressing", "Whether clusters are being updated.", 0, runCondition(api.RunProgressing)),
	Text("Succeeded", "Whether all stages are completed.", 0, runCondition(api.RunSucceeded)),
	age,
	Text("Strategy", "The strategy, which has the stages.", 1, func(r Row) string { return runOf(r).Spec.StrategyName }),
	Text("Message", "Message of the condition that says where the run is.", 1, func(r Row) string {
		if c := runOf(r).Status.Conditions; len(c) > 0 {
			return c[len(c)-1].Message
		}
		return ""
	}),
}

// UpdateRunsAlpha are the columns of staged update runs in v1alpha1, without Progressing.
var UpdateRunsAlpha = slices.DeleteFunc(slices.Clone(UpdateRuns), func(c Column) bool { return c.Name == "Progressing" })

func runOf(r Row) *api.ClusterStagedUpdateRun {
	if run, ok := r.Value.(*api.ClusterStagedUpdateRun); ok {
		return run
	}
	return &api.ClusterStagedUpdateRun{}
}

func runCondition(typ string) func(Row) string {
	return func(r Row) string { return statusOf(runOf(r).Status.Conditions, typ) }
}

// ApprovalRequests are the columns of both kinds of approval requests.
var ApprovalRequests = []Column{
	Name,
	Text("Update-Run", "The run that waits for the approval.", 0, func(r Row) string { return requestOf(r).Spec.Run }),
	Text("Stage", "The stage that is to be approved.", 0, func(r Row) string { return requestOf(r).Spec.Stage }),
	Text("Approved", "Whether it is approved.", 0, func(r Row) string { return statusOf(requestOf(r).Status.Conditions, api.Approved) }),
	age,
}

func requestOf(r Row) *api.ClusterApprovalRequest {
	if request, ok := r.Value.(*api.ClusterApprovalRequest); ok {
		return request
	}
	return &api.ClusterApprovalRequest{}
}
