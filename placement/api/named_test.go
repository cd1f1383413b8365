package api

import "testing"

// Whatever a person calls a placement is understood, and what is none is
// refused with the way to write it.
func TestParsePlacement(t *testing.T) {
	tests := map[string]PlacementKey{
		"crp/web": {Name: "web"}, "ClusterResourcePlacement/web": {Name: "web"}, "clusterresourceplacements/web": {Name: "web"},
		"rp/shop/web": {Namespace: "shop", Name: "web"}, "ResourcePlacement/shop/web": {Namespace: "shop", Name: "web"},
	}
	for text, want := range tests {
		if got, err := ParsePlacement(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "web", "crp/", "crp/a/b", "rp/web", "rp//web", "rp/a/b/c", "deployment/web"} {
		if got, err := ParsePlacement(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// Kinds go by the names that kubectl knows them by.
func TestKindCalled(t *testing.T) {
	tests := []struct {
		kind GroupKind
		word string
		want bool
	}{
		{GroupKind{Group: "apps", Kind: "Deployment"}, "deployment", true},
		{GroupKind{Group: "apps", Kind: "Deployment"}, "Deployments", true},
		{GroupKind{Group: "apps", Kind: "Deployment"}, "deploy", true},
		{GroupKind{Group: "apps", Kind: "Deployment"}, "deployment.apps", true},
		{GroupKind{Group: "apps", Kind: "Deployment"}, "deployments.extensions", false},
		{GroupKind{Kind: "NetworkPolicy"}, "networkpolicies", true},
		{GroupKind{Kind: "Ingress"}, "ingresses", true},
		{GroupKind{Kind: "Service"}, "sa", false},
		{GroupKind{Kind: "ConfigMap"}, "", false},
		{GroupKind{Group: "example.com", Kind: "Widget"}, "widget.example.com", true},
	}
	for _, test := range tests {
		if got := KindCalled(test.kind, test.word); got != test.want {
			t.Errorf("%v called %q: %t", test.kind, test.word, got)
		}
	}
}
