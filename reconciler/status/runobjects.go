package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// stagedKinds are the kinds of a run and of an approval request of a placement.
func stagedKinds(namespace string) (run, request string) {
	if namespace == "" {
		return "ClusterStagedUpdateRun", "ClusterApprovalRequest"
	}
	return "StagedUpdateRun", "ApprovalRequest"
}

// manifestMeta is the metadata of an object that Git declares.
func (in Input) manifestMeta(m *hub.StagedManifest) metav1.ObjectMeta {
	known := in.Ledger.Declared()[m.ID]
	meta := m.ObjectMeta
	meta.Annotations = maps.Clone(meta.Annotations)
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[api.CommitAnnotation], meta.Annotations[api.PathAnnotation] = known.Commit, m.Origin.String()
	meta.Generation, meta.CreationTimestamp = max(known.Generation, 1), metav1.NewTime(known.Created)
	meta.UID = metadata.UID(known.Created, m.ID.Kind, m.ID.Namespace, m.ID.Name)
	return meta
}

// generatedMeta is the metadata of an object that no manifest declares.
func generatedMeta(kind, namespace, name string, created time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(created), UID: metadata.UID(created, kind, namespace, name)}
}

// runs returns the staged update runs of the placement, and the approval requests for their stages: those whose turn has come.
func (b *builder) runs() (runs []*api.ClusterStagedUpdateRun, requests []*api.ClusterApprovalRequest) {
	for i := range b.p.Record.Runs {
		r := &b.p.Record.Runs[i]
		var d *hub.StagedRun
		if at := slices.IndexFunc(b.p.Runs, func(d *hub.StagedRun) bool { return d.Name == r.Name }); at >= 0 {
			d = b.p.Runs[at]
		}
		run, v := b.run(d, r), newRunView(b.p, r, b.in.Now)
		v.generation = run.Generation
		run.Status = v.status()
		runs = append(runs, run)
		requests = append(requests, b.requests(v, d)...)
	}
	for _, d := range b.p.Runs {
		if d.Name == "" || slices.ContainsFunc(b.p.Record.Runs, func(r placement.Run) bool { return r.Name == d.Name }) {
			continue
		}
		run := b.run(d, nil)
		v := runView{generation: run.Generation}
		run.Status.Conditions = []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionUnknown, "UpdateRunInitializing", b.p.RunPending, run.CreationTimestamp.Time)}
		runs = append(runs, run)
	}
	return runs, requests
}

// run returns a run without its status, of a declared run, a recorded one, or both.
func (b *builder) run(d *hub.StagedRun, r *placement.Run) *api.ClusterStagedUpdateRun {
	kind, _ := stagedKinds(b.p.Key.Namespace)
	out := &api.ClusterStagedUpdateRun{TypeMeta: metadata.Type(api.PlacementGroup, kind)}
	switch {
	case d != nil && d.Manifest != nil:
		out.ObjectMeta, out.Spec = b.in.manifestMeta(d.Manifest), *d.Manifest.Spec.(*api.StagedUpdateRunSpec)
		return out
	case r == nil:
		out.ObjectMeta = generatedMeta(kind, b.p.Key.Namespace, d.Name, b.p.Record.RolloutStarted)
		out.Spec.StrategyName, out.Spec.State = d.Strategy, d.State
	default:
		out.ObjectMeta = generatedMeta(kind, b.p.Key.Namespace, r.Name, cmp.Or(r.Initialized, r.Started))
		out.Annotations = map[string]string{api.CommitAnnotation: r.Content.Commit}
		if out.Spec.StrategyName, out.Spec.State = r.Strategy, api.RunRun; d == nil && !r.Automatic {
			out.Spec.State = api.RunStop // its manifest was deleted
		}
	}
	out.Spec.PlacementName = b.p.Key.Name
	return out
}

// requests returns the approval requests of a run whose turn has come, and those in Git. d is the declared run; nil if there is none.
func (b *builder) requests(v *runView, d *hub.StagedRun) (out []*api.ClusterApprovalRequest) {
	for i := range v.run.Stages {
		s := &v.run.Stages[i]
		for _, before := range []bool{true, false} {
			due, accepted := cmp.Or(s.Requested, s.Updated), s.ApprovedAfter
			if before {
				due, accepted = time.Time{}, s.ApprovedBefore
				if !v.run.Started.IsZero() && (i > 0 || v.run.SupersededBy == "") {
					due = v.run.Entered(i)
				}
			}
			if due = cmp.Or(due, accepted); !s.NeedsApproval(before) || due.IsZero() || s.Skipped() {
				continue
			}
			out = append(out, b.request(v.run, d, s.Name, before, due, accepted))
		}
	}
	return out
}

func (b *builder) request(run *placement.Run, d *hub.StagedRun, stage string, before bool, due, accepted time.Time) *api.ClusterApprovalRequest {
	_, kind := stagedKinds(b.p.Key.Namespace)
	name := api.ApprovalName(run.Name, stage, before)
	out := &api.ClusterApprovalRequest{
		TypeMeta: metadata.Type(api.PlacementGroup, kind), ObjectMeta: generatedMeta(kind, b.p.Key.Namespace, name, due),
		Spec: api.ApprovalRequestSpec{Run: run.Name, Stage: stage},
	}
	by := ""
	if d != nil {
		if i := slices.IndexFunc(d.Requests, func(m *hub.StagedManifest) bool { return m.ID.Name == name }); i >= 0 {
			out.ObjectMeta = b.in.manifestMeta(d.Requests[i])
			by = "commit " + out.Annotations[api.CommitAnnotation]
		}
	}
	out.Labels = maps.Clone(out.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	task := "afterStage"
	if before {
		task = "beforeStage"
	}
	maps.Copy(out.Labels, map[string]string{api.TargetRunLabel: run.Name, api.TargetStageLabel: stage, api.TaskTypeLabel: task, api.LatestApprovalLabel: "true"})
	v := runView{generation: out.Generation}
	if r := run.Rejected; r != nil && r.Request == name {
		out.Status.Conditions = []metav1.Condition{v.condition(api.Approved, metav1.ConditionFalse, cmp.Or(r.Code, kind+"Rejected"), kind+" has been rejected by "+r.Text(), r.At)}
	}
	if accepted.IsZero() {
		return out
	}
	code := kind + "Approved"
	if i := slices.IndexFunc(run.Approvals, func(a placement.Approval) bool { return a.Request == name }); i >= 0 {
		by, code = run.Approvals[i].Text(), cmp.Or(run.Approvals[i].Code, code)
	}
	out.Status.Conditions = []metav1.Condition{
		v.condition(api.Approved, metav1.ConditionTrue, code, strings.TrimSuffix(kind+" has been approved by "+by, " by "), accepted),
		v.condition(api.ApprovalAccepted, metav1.ConditionTrue, "ApprovalRequestApprovalAccepted", "The approval request has been approved and cannot be reverted", accepted),
	}
	return out
}

// unplacedObjects are those of manifests that belong to no placement, or to no run. They stay the same while their manifests do.
type unplacedObjects struct {
	head     *hub.Snapshot
	runs     map[*hub.StagedManifest]*api.ClusterStagedUpdateRun
	requests map[*hub.StagedManifest]*api.ClusterApprovalRequest
}

// stagedObjects adds the staged update runs and approval requests to a report.
func (m *Memo) stagedObjects(in Input, r *Report) {
	var seenRuns, seenRequests = map[objectName]bool{}, map[objectName]bool{}
	for e := range r.entries.Values() {
		for _, o := range e.runs {
			seenRuns[objectName{o.Namespace, o.Name}] = true
		}
		for _, o := range e.requests {
			seenRequests[objectName{o.Namespace, o.Name}] = true
		}
		r.UpdateRuns, r.ApprovalRequests = append(r.UpdateRuns, e.runs...), append(r.ApprovalRequests, e.requests...)
	}
	if in.InForce == nil {
		return
	}
	if m.unplaced.head != in.InForce {
		m.unplaced = newUnplaced(in, m.unplaced)
	}
	for _, manifest := range in.InForce.Staged {
		name := objectName{manifest.ID.Namespace, manifest.ID.Name}
		if run := m.unplaced.runs[manifest]; run != nil && !seenRuns[name] {
			r.UpdateRuns = append(r.UpdateRuns, run)
		}
		if request := m.unplaced.requests[manifest]; request != nil && !seenRequests[name] {
			r.ApprovalRequests = append(r.ApprovalRequests, request)
		}
	}
	slices.SortFunc(r.UpdateRuns, func(a, b *api.ClusterStagedUpdateRun) int {
		return objectName{a.Namespace, a.Name}.compare(objectName{b.Namespace, b.Name})
	})
	slices.SortFunc(r.ApprovalRequests, func(a, b *api.ClusterApprovalRequest) int {
		return objectName{a.Namespace, a.Name}.compare(objectName{b.Namespace, b.Name})
	})
}

type objectName struct{ namespace, name string }

func (n objectName) compare(o objectName) int {
	return cmp.Or(strings.Compare(n.namespace, o.namespace), strings.Compare(n.name, o.name))
}

// newUnplaced returns the objects of all manifests of runs and requests as if they belonged to nothing.
func newUnplaced(in Input, old unplacedObjects) unplacedObjects {
	out := unplacedObjects{head: in.InForce, runs: map[*hub.StagedManifest]*api.ClusterStagedUpdateRun{}, requests: map[*hub.StagedManifest]*api.ClusterApprovalRequest{}}
	for _, m := range in.InForce.Staged {
		kind := metadata.Type(api.PlacementGroup, m.ID.Kind)
		switch spec := m.Spec.(type) {
		case *api.StagedUpdateRunSpec:
			run := &api.ClusterStagedUpdateRun{TypeMeta: kind, ObjectMeta: in.manifestMeta(m), Spec: *spec}
			v := runView{generation: run.Generation}
			run.Status.Conditions = []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionFalse, "UpdateRunInitializedFailed", clientError+"parent placement not found", run.CreationTimestamp.Time)}
			reuse(&run, old.runs[m])
			out.runs[m] = run
		case *api.ApprovalRequestSpec:
			request := &api.ClusterApprovalRequest{TypeMeta: kind, ObjectMeta: in.manifestMeta(m), Spec: *spec}
			reuse(&request, old.requests[m])
			out.requests[m] = request
		}
	}
	return out
}

// A FailedContent is the content in force of a placement, if it has failed in an update run and was rolled back.
type FailedContent struct {
	Run    string    `json:"run"`
	Commit string    `json:"commit"` // the newest that has brought it
	Reason string    `json:"reason"` // names the clusters on which it has failed
	At     time.Time `json:"at,omitzero"`
	// Back is the last run that has finished, whose content is that of the commit BackCommit.
	Back       string `json:"back"`
	BackCommit string `json:"backCommit"`
}

func failedContent(p *plan.Placement) *FailedContent {
	f := p.FailedContent
	if f == nil {
		return nil
	}
	return &FailedContent{Run: f.Run.Name, Commit: f.Commit, Reason: f.Run.RolledBack, At: f.Run.SupersededAt, Back: f.Back.Name, BackCommit: f.Back.Content.Commit}
}

// exceptUnreachable names the clusters of a stage that is updated without them since they are unreachable; empty if there are none.
func exceptUnreachable(s *placement.RunStage) string {
	if len(s.Unreachable) == 0 {
		return ""
	}
	return " (except unreachable ones: " + strings.Join(s.Unreachable, ", ") + ")"
}

// withoutFailed names the clusters without which a run or a stage has succeeded; empty if there are none.
func withoutFailed(clusters []string) string {
	if len(clusters) == 0 {
		return ""
	}
	return ", except on clusters on which the update has failed: " + strings.Join(clusters, ", ")
}
