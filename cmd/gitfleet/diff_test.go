package main

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// What diff prints is what its readers see: it changes on purpose only.
func TestDiffAsText(t *testing.T) {
	replicas := []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/replicas", ValueInMember: "5", ValueInHub: "3"}, By: []api.Actor{{Manager: "kubectl-scale"}}}}
	web := diffChange{Effect: "change", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Placement: "crp/web", Origin: "apps/web.yaml:12", Fields: replicas}
	added := diffChange{Effect: "add", Kind: "Secret", Namespace: "shop", Name: "key", Placement: "crp/web", Origin: "apps/key.yaml:1",
		Object: map[string]any{"kind": "Secret", "stringData": map[string]any{"password": "(redacted for security reasons)"}}}
	taken := diffChange{Effect: "change", Kind: "ConfigMap", Namespace: "shop", Name: "settings", Placement: "crp/web", Origin: "apps/settings.yaml:1", TakesOver: true}
	gone := diffChange{Effect: "delete", Kind: "Namespace", Name: "old", Placement: "crp/old", Message: "held until a commit allows it: the Namespace has content that is not gitfleet's: Pod a"}
	left := diffChange{Effect: "differ", Kind: "ConfigMap", Namespace: "shop", Name: "theirs", Placement: "crp/web", Origin: "apps/theirs.yaml:1", Message: "no ownership of the object in the member cluster; takeover is needed"}
	refused := diffChange{Effect: "fail", Kind: "Service", Namespace: "shop", Name: "web", Placement: "crp/web", Origin: "apps/svc.yaml:1", Message: "spec.clusterIP: Invalid value:\nfield is immutable"}
	released := diffChange{Effect: "release", Kind: "ConfigMap", Namespace: "shop", Name: "kept", Placement: "crp/old"}
	doc := &diffDocument{
		Problems: []string{"crp/web on north waits: the strategy is External: the cluster waits for an update run"},
		Clusters: []diffCluster{
			{Name: "east", Changes: []diffChange{added, web, taken, gone}},
			{Name: "north"},
			{Name: "south", Changes: []diffChange{left, refused, released}},
			{Name: "west", Changes: []diffChange{added, web, taken, gone}},
			{Name: "zenith", Error: "the API server did not answer in time"},
		},
	}
	golden(t, "testdata/diff/text.txt", []byte(doc.text()))
	if !doc.troubled() || !doc.differs() {
		t.Errorf("troubled %t, differs %t", doc.troubled(), doc.differs())
	}
	calm := &diffDocument{Clusters: []diffCluster{{Name: "east"}, {Name: "west"}}}
	if got, want := calm.text(), "east, west: no difference\n"; got != want || calm.troubled() || calm.differs() {
		t.Errorf("%q, want %q", got, want)
	}
}
