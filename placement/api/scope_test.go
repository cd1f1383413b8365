package api_test

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestNamespacedKnowsTheKindsOfEveryCluster(t *testing.T) {
	tests := map[api.GroupKind]struct{ namespaced, known bool }{
		{Kind: "ConfigMap"}:                                               {true, true},
		{Kind: "Namespace"}:                                               {false, true},
		{Group: "apps", Kind: "Deployment"}:                               {true, true},
		{Group: "policy", Kind: "Eviction"}:                               {true, true},
		{Group: "resource.k8s.io", Kind: "DeviceClass"}:                   {false, true},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {false, true},
		{Group: api.PlacementGroup, Kind: "ResourceEnvelope"}:             {true, true},
		{Group: api.PlacementGroup, Kind: "ClusterResourcePlacement"}:     {false, true},
		{Group: "apps", Kind: "ConfigMap"}:                                {false, false},
		{Group: "example.com", Kind: "Widget"}:                            {false, false},
	}
	for gk, want := range tests {
		if namespaced, known := api.Namespaced(gk); namespaced != want.namespaced || known != want.known {
			t.Errorf("Namespaced(%s) = %t, %t; want %t, %t", gk, namespaced, known, want.namespaced, want.known)
		}
	}
}
