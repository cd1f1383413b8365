package hub

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// decodeOwnKind decodes an object of one of gitfleet's kinds, sets defaults and validates it. It
// returns false if the object cannot be used.
func decodeOwnKind(r *document.Report, it *item, gvk runtimeschema.GroupVersionKind, object map[string]any) bool {
	before := len(r.Problems)
	typed := schema.Decode(r, gvk, object)
	if typed == nil {
		return false
	}
	// All versions have the same JSON form. From here on the version that has all fields is
	// used.
	version := runtimeschema.GroupVersion{Group: gvk.Group, Version: "v1beta1"}.String()
	switch o := typed.(type) {
	case *api.ClusterResourcePlacement:
		it.placement = newPlacement(r, it, o.ObjectMeta, &o.Spec)
	case *api.ResourcePlacement:
		it.placement = newPlacement(r, it, o.ObjectMeta, &o.Spec)
	case *api.MemberCluster:
		o.APIVersion = version
		validation.DefaultCluster(o)
		validation.CheckCluster(r, o)
		it.cluster = &Cluster{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterResourceOverride:
		o.APIVersion = version
		validation.DefaultOverride(o.Spec.Placement, o.Spec.Policy)
		validation.CheckClusterOverride(r, o)
		it.clusterOverride = &ClusterOverride{o, it.origin, r.Lines, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ResourceOverride:
		o.APIVersion = version
		validation.DefaultOverride(o.Spec.Placement, o.Spec.Policy)
		validation.CheckOverride(r, o)
		it.override = &Override{o, it.origin, r.Lines, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterVars:
		validation.CheckClusterVars(r, it.id, &o.Spec)
		it.vars = o
	case *api.ClusterStagedUpdateStrategy:
		it.strategy = newStagedStrategy(r, it, gvk.Version, &o.ObjectMeta, &o.Spec)
	case *api.StagedUpdateStrategy:
		it.strategy = newStagedStrategy(r, it, gvk.Version, &o.ObjectMeta, &o.Spec)
	case *api.ClusterStagedUpdateRun:
		it.run = newStagedRun(r, it, gvk.Version, &o.ObjectMeta, &o.Spec)
	case *api.StagedUpdateRun:
		it.run = newStagedRun(r, it, gvk.Version, &o.ObjectMeta, &o.Spec)
	case *api.ClusterApprovalRequest:
		it.approval, it.staged = &o.Spec, newStagedManifest(it, &o.ObjectMeta, &o.Spec)
		validation.CheckApprovalRequest(r, it.id, it.approval)
	case *api.ApprovalRequest:
		it.approval, it.staged = &o.Spec, newStagedManifest(it, &o.ObjectMeta, &o.Spec)
		validation.CheckApprovalRequest(r, it.id, it.approval)
	case *api.ClusterResourcePlacementEviction:
		o.APIVersion = version
		validation.CheckEviction(r, it.id, &o.Spec)
		it.eviction = &Eviction{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterResourcePlacementDisruptionBudget:
		o.APIVersion = version
		validation.CheckDisruptionBudget(r, it.id, &o.Spec)
		it.budget = &Budget{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.RolloutWindow:
		it.window = &Window{o, it.origin, newHashes(&o.ObjectMeta, o.Spec), validation.CheckWindow(r, it.id, &o.Spec)}
	case *api.RolloutGate:
		validation.CheckGate(r, it.id, &o.Spec)
		if o.Spec.Job != nil && !r.Problems[before:].HasErrors() {
			compareJobTemplate(r, object)
		}
		it.gate = &Gate{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterResourceEnvelope, *api.ResourceEnvelope:
		checkEnvelope(r, it, object)
	case *api.ClusterOverlay:
		it.overlay = newOverlay(r, it, &o.Spec)
	case *api.Overlay:
		it.overlay = newOverlay(r, it, &o.Spec)
	case *api.ClusterHelmChart:
		it.chart = newChart(r, it, &o.Spec)
	case *api.HelmChart:
		it.chart = newChart(r, it, &o.Spec)
	}
	it.lines = r.Lines
	return !r.Problems[before:].HasErrors()
}

// compareJobTemplate compares the template of the Job of a gate with the fields of a Job.
func compareJobTemplate(r *document.Report, object map[string]any) {
	template, _, _ := unstructured.NestedMap(object, "spec", "job", "template")
	template["apiVersion"], template["kind"] = "batch/v1", "Job"
	schema.CheckBuiltin(r, r.Field("spec", "job", "template"), template)
}

// newHashes returns the hashes of a decoded object.
func newHashes(meta *metav1.ObjectMeta, spec any) Hashes {
	whole, _ := api.HashOf([]any{meta.Labels, meta.Annotations, spec}, nil)
	of, _ := api.HashOf(spec, nil)
	return Hashes{whole, of}
}

// newOverlay validates an overlay and sets its defaults.
func newOverlay(r *document.Report, it *item, spec *api.OverlaySpec) *api.OverlaySpec {
	validation.DefaultOverlay(it.id, spec)
	validation.CheckOverlay(r, it.id, spec)
	return spec
}

// newChart validates a chart and sets its defaults.
func newChart(r *document.Report, it *item, spec *api.ChartSpec) *api.ChartSpec {
	validation.DefaultChart(it.id, spec)
	validation.CheckChart(r, it.id, spec)
	return spec
}

// newStagedStrategy validates a staged update strategy and sets its defaults.
func newStagedStrategy(r *document.Report, it *item, version string, meta *metav1.ObjectMeta, spec *api.StagedUpdateStrategySpec) *stagedStrategy {
	validation.DefaultStagedUpdateStrategy(spec)
	validation.CheckStagedUpdateStrategy(r, it.id, version, meta.Annotations, spec)
	it.staged = newStagedManifest(it, meta, spec)
	of := meta.Annotations
	return &stagedStrategy{
		StagedUpdateStrategySpec: spec, unmatched: of[api.UnmatchedClustersAnnotation], onFailure: of[api.OnFailureAnnotation], byReview: api.StagesApprovedByReview(of[api.ApprovedByReviewAnnotation]),
		unreachablePerStage: of[api.MaxUnreachablePerStageAnnotation], unreachablePerRun: of[api.MaxUnreachablePerRunAnnotation],
		failedPerStage: of[api.MaxFailedPerStageAnnotation], failedPerRun: of[api.MaxFailedPerRunAnnotation],
	}
}

// newStagedManifest returns the manifest of a validated strategy, run or approval request.
func newStagedManifest(it *item, meta *metav1.ObjectMeta, spec any) *StagedManifest {
	return &StagedManifest{ID: it.id, ObjectMeta: *meta, Spec: spec, Origin: it.origin, Hashes: newHashes(meta, spec)}
}

// newStagedRun validates a staged update run and sets its defaults. In v1alpha1 it has no state, and runs at once.
func newStagedRun(r *document.Report, it *item, version string, meta *metav1.ObjectMeta, spec *api.StagedUpdateRunSpec) *api.StagedUpdateRunSpec {
	if spec.State == "" && version == "v1alpha1" {
		spec.State = api.RunRun
	}
	spec.State = cmp.Or(spec.State, api.RunInitialize)
	validation.CheckStagedUpdateRun(r, it.id, version, spec)
	for _, field := range []string{"placementName", "stagedRolloutStrategyName"} {
		r.RecordLine(r.Field("spec", field))
	}
	it.staged = newStagedManifest(it, meta, spec)
	return spec
}

// newPlacement validates a placement and sets its defaults.
func newPlacement(r *document.Report, it *item, meta metav1.ObjectMeta, spec *api.PlacementSpec) *Placement {
	validation.DefaultPlacement(spec)
	validation.CheckPlacement(r, it.id, meta.Annotations, spec)
	hash, _ := api.HashOf(spec, nil) // a decoded spec can always be encoded
	return &Placement{
		Key:    api.PlacementKey{Namespace: it.id.Namespace, Name: it.id.Name},
		Labels: meta.Labels, Annotations: meta.Annotations, Spec: *spec, Origin: it.origin, Lines: r.Lines, SpecHash: hash,
	}
}
