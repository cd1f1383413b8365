// Package api declares the types that gitfleet shares with its users: KubeFleet's kinds and
// their fields, and the names of conditions and reasons.
//
// Groups, versions and JSON are KubeFleet's and stay compatible; the Go types are gitfleet's
// own, so that packages which use them depend on apimachinery and nothing heavier. v1 and
// v1beta1 share one Go type, because they are the same JSON; [ManifestKinds] says which
// fields a version does not have.
//
// +k8s:openapi-gen=true
package api
