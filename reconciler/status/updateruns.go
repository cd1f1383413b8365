package status

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// unplacedObjects are those of manifests that belong to no placement, or to no run. They stay the same while their manifests do.
type unplacedObjects struct {
	head     *hub.Snapshot
	runs     map[*hub.StagedManifest]*api.ClusterStagedUpdateRun
	requests map[*hub.StagedManifest]*api.ClusterApprovalRequest
}

// stagedObjects adds the staged update runs and approval requests to a report.
func (m *Memo) stagedObjects(in Input, r *Report) {
	var seenRuns, seenRequests = map[api.NamespacedName]bool{}, map[api.NamespacedName]bool{}
	for e := range r.entries.Values() {
		for _, o := range e.runs {
			seenRuns[api.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = true
		}
		for _, o := range e.requests {
			seenRequests[api.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = true
		}
		r.UpdateRuns, r.ApprovalRequests = append(r.UpdateRuns, e.runs...), append(r.ApprovalRequests, e.requests...)
	}
	if in.InForce == nil {
		return
	}
	if m.unplaced.head != in.InForce {
		m.unplaced = m.unplaced.next(in)
	}
	for _, manifest := range in.InForce.Staged {
		name := api.NamespacedName{Namespace: manifest.ID.Namespace, Name: manifest.ID.Name}
		if run := m.unplaced.runs[manifest]; run != nil && !seenRuns[name] {
			r.UpdateRuns = append(r.UpdateRuns, run)
		}
		if request := m.unplaced.requests[manifest]; request != nil && !seenRequests[name] {
			r.ApprovalRequests = append(r.ApprovalRequests, request)
		}
	}
	slices.SortFunc(r.UpdateRuns, byName)
	slices.SortFunc(r.ApprovalRequests, byName)
}

// byName compares objects by namespace and name.
func byName[T metav1.Object](a, b T) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// next returns the objects for the commit in force. Those that are the same as for the commit before keep their pointers.
func (u unplacedObjects) next(in Input) unplacedObjects {
	out := unplacedObjects{head: in.InForce}
	out.runs, out.requests = updaterun.Unplaced(in.InForce.Staged, in.Ledger.Declared())
	reuseValues(out.runs, u.runs)
	reuseValues(out.requests, u.requests)
	return out
}
