package api

import (
	"reflect"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// A Kind describes a kind of manifests that users may write.
type Kind struct {
	Kind       string
	Plural     string
	ShortName  string
	Namespaced bool
	// Versions are the served versions, the preferred one first. All have the same JSON.
	Versions []string
	// Lacks are the fields that a version does not have, as dotted paths, in which [] stands for the items of a list. The preferred
	// version has all.
	Lacks map[string][]string
	// Content is true for envelopes, the only kinds that a placement may select.
	Content bool

	typ reflect.Type
}

// evictionVersions are the versions of evictions and disruption budgets.
var evictionVersions = []string{"v1beta1", "v1alpha1"}

// ManifestKinds are the kinds of manifests that users may write, by group and kind. Kinds that
// are only served, such as ClusterResourcePlacementStatus, are in package kubeapi.
var ManifestKinds = map[schema.GroupKind]Kind{
	{Group: PlacementGroup, Kind: "ClusterResourcePlacement"}: {
		Kind: "ClusterResourcePlacement", Plural: "clusterresourceplacements", ShortName: "crp",
		Versions: both, Lacks: strategyLacks, typ: reflect.TypeFor[ClusterResourcePlacement]()},
	{Group: PlacementGroup, Kind: "ResourcePlacement"}: {
		Kind: "ResourcePlacement", Plural: "resourceplacements", ShortName: "rp", Namespaced: true,
		Versions: both, Lacks: strategyLacks, typ: reflect.TypeFor[ResourcePlacement]()},
	{Group: PlacementGroup, Kind: "ClusterResourceOverride"}: {
		Kind: "ClusterResourceOverride", Plural: "clusterresourceoverrides",
		Versions: threeVersions, typ: reflect.TypeFor[ClusterResourceOverride]()},
	{Group: PlacementGroup, Kind: "ResourceOverride"}: {
		Kind: "ResourceOverride", Plural: "resourceoverrides", Namespaced: true,
		Versions: threeVersions, typ: reflect.TypeFor[ResourceOverride]()},
	{Group: PlacementGroup, Kind: "ClusterResourceEnvelope"}: {
		Kind: "ClusterResourceEnvelope", Plural: "clusterresourceenvelopes",
		Versions: []string{"v1beta1"}, Content: true, typ: reflect.TypeFor[ClusterResourceEnvelope]()},
	{Group: PlacementGroup, Kind: "ResourceEnvelope"}: {
		Kind: "ResourceEnvelope", Plural: "resourceenvelopes", Namespaced: true,
		Versions: []string{"v1beta1"}, Content: true, typ: reflect.TypeFor[ResourceEnvelope]()},
	{Group: OverlayGroup, Kind: "ClusterOverlay"}: {
		Kind: "ClusterOverlay", Plural: "clusteroverlays",
		Versions: []string{"v1alpha1"}, Content: true, typ: reflect.TypeFor[ClusterOverlay]()},
	{Group: OverlayGroup, Kind: "Overlay"}: {
		Kind: "Overlay", Plural: "overlays", Namespaced: true,
		Versions: []string{"v1alpha1"}, Content: true, typ: reflect.TypeFor[Overlay]()},
	{Group: OverlayGroup, Kind: "ClusterHelmChart"}: {
		Kind: "ClusterHelmChart", Plural: "clusterhelmcharts",
		Versions: []string{"v1alpha1"}, Content: true, typ: reflect.TypeFor[ClusterHelmChart]()},
	{Group: OverlayGroup, Kind: "HelmChart"}: {
		Kind: "HelmChart", Plural: "helmcharts", Namespaced: true,
		Versions: []string{"v1alpha1"}, Content: true, typ: reflect.TypeFor[HelmChart]()},
	{Group: OverlayGroup, Kind: "ClusterVars"}: {
		Kind: "ClusterVars", Plural: "clustervars",
		Versions: []string{"v1alpha1"}, typ: reflect.TypeFor[ClusterVars]()},
	{Group: PlacementGroup, Kind: "ClusterStagedUpdateStrategy"}: {
		Kind: "ClusterStagedUpdateStrategy", Plural: "clusterstagedupdatestrategies", ShortName: "csus",
		Versions: threeVersions, Lacks: map[string][]string{"v1alpha1": {"spec.stages[].maxConcurrency", "spec.stages[].beforeStageTasks"}}, typ: reflect.TypeFor[ClusterStagedUpdateStrategy]()},
	{Group: PlacementGroup, Kind: "StagedUpdateStrategy"}: {
		Kind: "StagedUpdateStrategy", Plural: "stagedupdatestrategies", ShortName: "sus", Namespaced: true,
		Versions: both, typ: reflect.TypeFor[StagedUpdateStrategy]()},
	{Group: PlacementGroup, Kind: "ClusterStagedUpdateRun"}: {
		Kind: "ClusterStagedUpdateRun", Plural: "clusterstagedupdateruns", ShortName: "csur",
		Versions: threeVersions, Lacks: runLacks, typ: reflect.TypeFor[ClusterStagedUpdateRun]()},
	{Group: PlacementGroup, Kind: "StagedUpdateRun"}: {
		Kind: "StagedUpdateRun", Plural: "stagedupdateruns", ShortName: "sur", Namespaced: true,
		Versions: both, typ: reflect.TypeFor[StagedUpdateRun]()},
	{Group: PlacementGroup, Kind: "ClusterApprovalRequest"}: {
		Kind: "ClusterApprovalRequest", Plural: "clusterapprovalrequests", ShortName: "careq",
		Versions: threeVersions, typ: reflect.TypeFor[ClusterApprovalRequest]()},
	{Group: PlacementGroup, Kind: "ApprovalRequest"}: {
		Kind: "ApprovalRequest", Plural: "approvalrequests", ShortName: "areq", Namespaced: true,
		Versions: both, typ: reflect.TypeFor[ApprovalRequest]()},
	{Group: PlacementGroup, Kind: "ClusterResourcePlacementEviction"}: {
		Kind: "ClusterResourcePlacementEviction", Plural: "clusterresourceplacementevictions", ShortName: "crpe",
		Versions: evictionVersions, typ: reflect.TypeFor[ClusterResourcePlacementEviction]()},
	{Group: PlacementGroup, Kind: "ClusterResourcePlacementDisruptionBudget"}: {
		Kind: "ClusterResourcePlacementDisruptionBudget", Plural: "clusterresourceplacementdisruptionbudgets", ShortName: "crpdb",
		Versions: evictionVersions, typ: reflect.TypeFor[ClusterResourcePlacementDisruptionBudget]()},
	{Group: OverlayGroup, Kind: "RolloutWindow"}: {
		Kind: "RolloutWindow", Plural: "rolloutwindows",
		Versions: []string{"v1alpha1"}, typ: reflect.TypeFor[RolloutWindow]()},
	{Group: OverlayGroup, Kind: "RolloutGate"}: {
		Kind: "RolloutGate", Plural: "rolloutgates",
		Versions: []string{"v1alpha1"}, typ: reflect.TypeFor[RolloutGate]()},
	{Group: ClusterGroup, Kind: "MemberCluster"}: {
		Kind: "MemberCluster", Plural: "memberclusters", ShortName: "cluster",
		Versions: both, Lacks: map[string][]string{"v1": {"spec.deleteOptions", "status.namespaces"}}, typ: reflect.TypeFor[MemberCluster]()},
}

var (
	both          = []string{"v1beta1", "v1"}
	threeVersions = []string{"v1beta1", "v1", "v1alpha1"}
	strategyLacks = map[string][]string{"v1": {"spec.strategy.deleteStrategy", "spec.strategy.reportBackStrategy"}}
	runLacks      = map[string][]string{"v1alpha1": {
		"spec.state", "status.resourceSnapshotIndexUsed", "status.stagesStatus[].beforeStageTaskStatus", "status.deletionStageStatus.beforeStageTaskStatus",
		"status.stagedUpdateStrategySnapshot.stages[].maxConcurrency", "status.stagedUpdateStrategySnapshot.stages[].beforeStageTasks",
	}}
)

// vowelSound matches a kind that is spoken with a vowel first, such as Ingress, UpdateRun and HTTPRoute, and not UserAccount.
var vowelSound = regexp.MustCompile(`^(?:[AEIOaeio]|[Uu](?:p|n[^i])|[FHLMNRSX][B-DF-HJ-NP-TV-Z])`)

// WithArticle returns a kind with its indefinite article, as in "an Ingress".
func WithArticle(kind string) string {
	if vowelSound.MatchString(kind) {
		return "an " + kind
	}
	return "a " + kind
}

// Decode decodes the JSON of one of the ManifestKinds into a new object of its Go type, such as
// *ClusterResourcePlacement. Field names are case-sensitive. strict has an error for each
// unknown or duplicate field, and the object has all other fields; err means that the JSON could
// not be decoded. Decode panics if ManifestKinds does not have the kind.
func Decode(gk schema.GroupKind, data []byte) (obj any, strict []error, err error) {
	k, ok := ManifestKinds[gk]
	if !ok {
		panic("api: no such kind: " + gk.String())
	}
	v := reflect.New(k.typ).Interface()
	strict, err = json.UnmarshalStrict(data, v)
	return v, strict, err
}
