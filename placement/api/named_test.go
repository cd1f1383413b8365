package api

import (
	"strings"
	"testing"
)

// All forms of a placement's name are accepted. Other names are refused, and the error says how
// to write one.
func TestParsePlacement(t *testing.T) {
	tests := map[string]PlacementKey{
		"crp/web": {Name: "web"}, "ClusterResourcePlacement/web": {Name: "web"}, "clusterresourceplacements/web": {Name: "web"},
		"clusterresourceplacement.placement.kubernetes-fleet.io/web": {Name: "web"}, "resourceplacement.placement.kubernetes-fleet.io/shop/web": {Namespace: "shop", Name: "web"},
		"rp/shop/web": {Namespace: "shop", Name: "web"}, "ResourcePlacement/shop/web": {Namespace: "shop", Name: "web"},
	}
	for text, want := range tests {
		if got, err := ParsePlacement(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "web", "crp/", "crp/a/b", "rp/web", "rp//web", "rp/a/b/c", "deployment/web", "clusterresourceplacement.example.com/web"} {
		if got, err := ParsePlacement(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// Objects can be named as for kubectl and as in messages.
func TestParseObject(t *testing.T) {
	front := ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front"}
	tests := map[string]struct {
		text, namespace string
		means           bool
		err             string
	}{
		"as printed":         {text: front.String(), means: true},
		"as kubectl":         {text: "deployment/front", namespace: "web", means: true},
		"short name":         {text: "deploy/web/front", means: true},
		"plural and group":   {text: "deployments.apps/front", namespace: "web", means: true},
		"said twice":         {text: "deploy/web/front", namespace: "web", means: true},
		"other namespace":    {text: "deploy/front", namespace: "shop"},
		"no namespace":       {text: "deploy/front"},
		"other kind":         {text: "service/front", namespace: "web"},
		"two namespaces":     {text: "deploy/web/front", namespace: "shop", err: "deploy/web/front is in the namespace web, and -n says shop"},
		"no name":            {text: "deploy", err: "names no object"},
		"too many parts":     {text: "a/b/c/d", err: "names no object"},
		"an empty namespace": {text: "deploy//front", err: "names no object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := ParseObject(test.text, test.namespace)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got %v, want %q", err, test.err)
			}
			if got := o.Means(front); got != test.means {
				t.Errorf("%s means %s: %t", o, front, got)
			}
		})
	}
	if got, err := ParseID(front.String()); err != nil || got != front {
		t.Errorf("%s is read as %v, %v", front, got, err)
	}
}

// Kinds can be named as for kubectl.
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

// The plural of a kind is the one that its authors are likely to have chosen.
func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment": "deployments", "NetworkPolicy": "networkpolicies", "Gateway": "gateways", "ClusterOverlay": "clusteroverlays",
		"Ingress": "ingresses", "Mesh": "meshes", "Index": "indexes", "Endpoints": "endpoints",
	} {
		if got := Plural(kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}
