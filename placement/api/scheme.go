package api

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// The groups of the kinds gitfleet shares with KubeFleet.
const (
	PlacementGroup = "placement.kubernetes-fleet.io"
	ClusterGroup   = "cluster.kubernetes-fleet.io"
)

// A Kind describes one of our kinds.
type Kind struct {
	Kind       string
	Plural     string
	ShortName  string
	Namespaced bool
	// Versions are those served, the newest name of the same JSON first.
	Versions []string
	// OnlyV1beta1 are fields, as dotted paths, that v1 does not have.
	OnlyV1beta1 []string
	// Content says that a placement may select it: only envelopes.
	Content bool

	typ reflect.Type
}

// Kinds are the kinds a user may write, by group and kind.
var Kinds = map[schema.GroupKind]Kind{
	{Group: PlacementGroup, Kind: "ClusterResourcePlacement"}: {
		Kind: "ClusterResourcePlacement", Plural: "clusterresourceplacements", ShortName: "crp",
		Versions: both, OnlyV1beta1: strategyV1beta1, typ: reflect.TypeFor[ClusterResourcePlacement]()},
	{Group: PlacementGroup, Kind: "ResourcePlacement"}: {
		Kind: "ResourcePlacement", Plural: "resourceplacements", ShortName: "rp", Namespaced: true,
		Versions: both, OnlyV1beta1: strategyV1beta1, typ: reflect.TypeFor[ResourcePlacement]()},
	{Group: PlacementGroup, Kind: "ClusterResourceOverride"}: {
		Kind: "ClusterResourceOverride", Plural: "clusterresourceoverrides",
		Versions: []string{"v1beta1", "v1", "v1alpha1"}, typ: reflect.TypeFor[ClusterResourceOverride]()},
	{Group: PlacementGroup, Kind: "ResourceOverride"}: {
		Kind: "ResourceOverride", Plural: "resourceoverrides", Namespaced: true,
		Versions: []string{"v1beta1", "v1", "v1alpha1"}, typ: reflect.TypeFor[ResourceOverride]()},
	{Group: PlacementGroup, Kind: "ClusterResourceEnvelope"}: {
		Kind: "ClusterResourceEnvelope", Plural: "clusterresourceenvelopes",
		Versions: []string{"v1beta1"}, Content: true, typ: reflect.TypeFor[ClusterResourceEnvelope]()},
	{Group: PlacementGroup, Kind: "ResourceEnvelope"}: {
		Kind: "ResourceEnvelope", Plural: "resourceenvelopes", Namespaced: true,
		Versions: []string{"v1beta1"}, Content: true, typ: reflect.TypeFor[ResourceEnvelope]()},
	{Group: ClusterGroup, Kind: "MemberCluster"}: {
		Kind: "MemberCluster", Plural: "memberclusters", ShortName: "cluster",
		Versions: both, OnlyV1beta1: []string{"spec.deleteOptions", "status.namespaces"}, typ: reflect.TypeFor[MemberCluster]()},
}

var (
	both            = []string{"v1beta1", "v1"}
	strategyV1beta1 = []string{"spec.strategy.deleteStrategy", "spec.strategy.reportBackStrategy"}
)

// Decode reads the JSON of one of our kinds into a new object of its Go type,
// for example *ClusterResourcePlacement. Field names are case-sensitive.
// Unknown and repeated fields come back as strict, each naming its path; the
// object is filled as far as they allow. err means it could not be read at
// all. A kind that is not in Kinds panics: ask first.
func Decode(gk schema.GroupKind, data []byte) (obj any, strict []error, err error) {
	k, ok := Kinds[gk]
	if !ok {
		panic("api: no such kind: " + gk.String())
	}
	v := reflect.New(k.typ).Interface()
	strict, err = json.UnmarshalStrict(data, v)
	return v, strict, err
}
