package updaterun

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
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// Objects returns the staged update runs of a placement, and the approval requests for their stages: those whose turn has come. declared
// are the records of the manifests in Git.
func Objects(p *plan.Placement, declared map[api.ID]ledger.Declared, now time.Time) (runs []*api.ClusterStagedUpdateRun, requests []*api.ClusterApprovalRequest) {
	b := builder{p, declared}
	for i := range p.Record.Runs {
		r := &p.Record.Runs[i]
		var d *hub.StagedRun
		if at := slices.IndexFunc(p.Runs, func(d *hub.StagedRun) bool { return d.Name == r.Name }); at >= 0 {
			d = p.Runs[at]
		}
		run, v := b.run(d, r), newView(p, r, now)
		v.generation = run.Generation
		run.Status = v.status()
		runs = append(runs, run)
		requests = append(requests, b.requests(v, d)...)
	}
	for _, d := range p.Runs {
		if d.Name == "" || slices.ContainsFunc(p.Record.Runs, func(r placement.Run) bool { return r.Name == d.Name }) {
			continue
		}
		run := b.run(d, nil)
		v := view{generation: run.Generation}
		run.Status.Conditions = []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionUnknown, "UpdateRunInitializing", p.RunPending, run.CreationTimestamp.Time)}
		runs = append(runs, run)
	}
	return runs, requests
}

// A builder makes the objects of a placement.
type builder struct {
	p        *plan.Placement
	declared map[api.ID]ledger.Declared
}

// run returns a run without its status, of a declared run, a recorded one, or both.
func (b builder) run(d *hub.StagedRun, r *placement.Run) *api.ClusterStagedUpdateRun {
	kind, _ := kinds(b.p.Key.Namespace)
	out := &api.ClusterStagedUpdateRun{TypeMeta: metadata.Type(api.PlacementGroup, kind)}
	switch {
	case d != nil && d.Manifest != nil:
		out.ObjectMeta, out.Spec = manifestMeta(b.declared, d.Manifest), *d.Manifest.Spec.(*api.StagedUpdateRunSpec)
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
func (b builder) requests(v *view, d *hub.StagedRun) (out []*api.ClusterApprovalRequest) {
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

func (b builder) request(run *placement.Run, d *hub.StagedRun, stage string, before bool, due, accepted time.Time) *api.ClusterApprovalRequest {
	_, kind := kinds(b.p.Key.Namespace)
	name := api.ApprovalName(run.Name, stage, before)
	out := &api.ClusterApprovalRequest{
		TypeMeta: metadata.Type(api.PlacementGroup, kind), ObjectMeta: generatedMeta(kind, b.p.Key.Namespace, name, due),
		Spec: api.ApprovalRequestSpec{Run: run.Name, Stage: stage},
	}
	by := ""
	if d != nil {
		if i := slices.IndexFunc(d.Requests, func(m *hub.StagedManifest) bool { return m.ID.Name == name }); i >= 0 {
			out.ObjectMeta = manifestMeta(b.declared, d.Requests[i])
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
	v := view{generation: out.Generation}
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

// Unplaced returns the objects of manifests of runs and requests as if they belonged to no placement, or to no run.
func Unplaced(manifests []*hub.StagedManifest, declared map[api.ID]ledger.Declared) (runs map[*hub.StagedManifest]*api.ClusterStagedUpdateRun, requests map[*hub.StagedManifest]*api.ClusterApprovalRequest) {
	runs, requests = map[*hub.StagedManifest]*api.ClusterStagedUpdateRun{}, map[*hub.StagedManifest]*api.ClusterApprovalRequest{}
	for _, m := range manifests {
		kind := metadata.Type(api.PlacementGroup, m.ID.Kind)
		switch spec := m.Spec.(type) {
		case *api.StagedUpdateRunSpec:
			run := &api.ClusterStagedUpdateRun{TypeMeta: kind, ObjectMeta: manifestMeta(declared, m), Spec: *spec}
			v := view{generation: run.Generation}
			run.Status.Conditions = []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionFalse, "UpdateRunInitializedFailed", clientError+"parent placement not found", run.CreationTimestamp.Time)}
			runs[m] = run
		case *api.ApprovalRequestSpec:
			requests[m] = &api.ClusterApprovalRequest{TypeMeta: kind, ObjectMeta: manifestMeta(declared, m), Spec: *spec}
		}
	}
	return runs, requests
}

// manifestMeta is the metadata of an object that Git declares.
func manifestMeta(declared map[api.ID]ledger.Declared, m *hub.StagedManifest) metav1.ObjectMeta {
	known := declared[m.ID]
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
