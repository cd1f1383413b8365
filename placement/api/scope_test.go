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
	for gk, want := range map[api.GroupKind]struct{ namespaced, known bool }{
		{Group: "cert-manager.io", Kind: "Certificate"}:            {true, true},
		{Group: "cert-manager.io", Kind: "ClusterIssuer"}:          {false, true},
		{Group: "postgresql.cnpg.io", Kind: "Cluster"}:             {true, true},
		{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:       {true, true},
		{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}:    {true, true},
		{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}: {false, true},
		{Group: "example.com", Kind: "Widget"}:                     {false, false},
		{Kind: "ConfigMap"}:                                        {false, false},
	} {
		if namespaced, known := api.UsuallyNamespaced(gk); namespaced != want.namespaced || known != want.known {
			t.Errorf("UsuallyNamespaced(%s) = %t, %t; want %t, %t", gk, namespaced, known, want.namespaced, want.known)
		}
	}
}
