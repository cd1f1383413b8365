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

// Manifests of widely used operators often have no namespace, while the definitions of their kinds are elsewhere.
func TestUsuallyNamespacedKnowsWidelyUsedKinds(t *testing.T) {
	for gk, want := range map[api.GroupKind]bool{
		{Group: "cert-manager.io", Kind: "Certificate"}:         true,
		{Group: "cert-manager.io", Kind: "ClusterIssuer"}:       false,
		{Group: "postgresql.cnpg.io", Kind: "Cluster"}:          true,
		{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:    true,
		{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: true,
		{Group: "example.com", Kind: "Widget"}:                  false,
		{Kind: "ConfigMap"}:                                     false,
	} {
		if got := api.UsuallyNamespaced(gk); got != want {
			t.Errorf("UsuallyNamespaced(%s) = %t", gk, got)
		}
	}
}
