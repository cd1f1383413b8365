package api

import (
	"slices"
	"testing"
	"time"
)

// A suggestion is a word that differs by a typing error, and not any word.
func TestClosest(t *testing.T) {
	for name, test := range map[string]struct {
		word  string
		known []string
		want  string
	}{
		"a letter is missing":    {"replica", []string{"selector", "replicas"}, "replicas"},
		"two are swapped":        {"tempalte", []string{"template"}, "template"},
		"one is wrong":           {"placementTipe", []string{"placementType"}, "placementType"},
		"case does not count":    {"PLACEMENTTYPE", []string{"placementType"}, "placementType"},
		"the nearest":            {"cluste", []string{"clusters", "cluster"}, "cluster"},
		"the first of two":       {"bat", []string{"cat", "hat"}, "cat"},
		"a short word, swapped":  {"wbe", []string{"web"}, "web"},
		"a short word, one off":  {"wb", []string{"web"}, "web"},
		"a short word, two off":  {"wx", []string{"web"}, ""},
		"one letter is no word":  {"w", []string{"x", "we"}, ""},
		"nothing":                {"", []string{"a"}, ""},
		"a third of a long word": {"abcdefghi", []string{"abcdefxyz"}, "abcdefxyz"},
		"more than a third":      {"abcdefghi", []string{"abcdewxyz"}, ""},
		"too different":          {"zzzz", []string{"replicas", "web"}, ""},
		"none is known":          {"replicas", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Closest(test.word, test.known); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Keys survive in a pointer, whatever they are.
func TestPointers(t *testing.T) {
	for key, escaped := range map[string]string{"replicas": "replicas", "a/b": "a~1b", "a~b": "a~0b", "~1": "~01", "": ""} {
		if got := EscapeKey(key); got != escaped {
			t.Errorf("%q is escaped as %q, want %q", key, got, escaped)
		}
		if got := SplitPointer("/metadata/" + escaped); !slices.Equal(got, []string{"metadata", key}) {
			t.Errorf("%q is read as %q", escaped, got)
		}
	}
	for name, test := range map[string]struct {
		text string
		want []string
		fail bool
	}{
		"none":             {"", nil, false},
		"one":              {"/spec/replicas", []string{"/spec/replicas"}, false},
		"lines and commas": {"/spec/replicas,\n  /data/a /data/b", []string{"/spec/replicas", "/data/a", "/data/b"}, false},
		"the whole object": {"/", nil, true},
		"no slash":         {"spec.replicas", nil, true},
		"one of two":       {"/spec/replicas, data", []string{"/spec/replicas"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Pointers(test.text); !slices.Equal(got, test.want) || (err != nil) != test.fail {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A ConfigMap is an envelope if it is marked as one in any way but "false".
func TestIsEnvelopeConfigMap(t *testing.T) {
	for marker, want := range map[any]bool{"true": true, "yes": true, "false": false, "": false, true: false, nil: false} {
		object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{EnvelopeConfigMapAnnotation: marker}}}
		if got := IsEnvelopeConfigMap(object); got != want {
			t.Errorf("marked %v: %t", marker, got)
		}
	}
	if IsEnvelopeConfigMap(map[string]any{}) {
		t.Error("without annotations it is an envelope")
	}
}

// Namespaces of the system are reserved; single objects can be placed in all of them but gitfleet's.
func TestReservedNamespace(t *testing.T) {
	for namespace, test := range map[string]struct{ reserved, hint bool }{
		"default": {true, true}, "kube-system": {true, true}, "fleet-member-east": {true, true}, Namespace: {true, false},
		"kube": {false, true}, "web": {false, true}, "my-kube-system": {false, true}, "defaults": {false, true},
	} {
		if got := ReservedNamespace(namespace); got != test.reserved {
			t.Errorf("%s is reserved: %t", namespace, got)
		}
		if got := ReservedHint(namespace) != ""; got != test.hint {
			t.Errorf("%s has a hint: %t", namespace, got)
		}
	}
}

// Objects are never recreated if others would be deleted with them.
func TestRecreatable(t *testing.T) {
	for kind, want := range map[GroupKind]bool{
		{Kind: "Namespace"}: false, {Kind: "PersistentVolumeClaim"}: false, {Kind: "PersistentVolume"}: false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "batch", Kind: "Job"}:                                     true, {Kind: "Service"}: true, {Group: "example.com", Kind: "Namespace"}: true,
	} {
		if got := Recreatable(kind); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}

// Clusters, placements, actors and positions are written in one way each.
func TestNamesAsUsersWriteThem(t *testing.T) {
	for text, want := range map[string]string{"east": "east", "mc/east": "east", "cluster/east": "east", "MemberClusters/east": "east", "crp/east": "crp/east"} {
		if got := ClusterName(text); got != want {
			t.Errorf("%s is the cluster %s, want %s", text, got, want)
		}
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, got := range map[string]string{
		"crp/web": PlacementKey{Name: "web"}.String(), "rp/shop/web": PlacementKey{Namespace: "shop", Name: "web"}.String(),
		"ClusterResourcePlacement": PlacementKey{Name: "web"}.Kind(), "ResourcePlacement": PlacementKey{Namespace: "shop", Name: "web"}.Kind(),
		"web.yaml:3": Origin{Path: "web.yaml", Line: 3}.String(), "web.yaml": Origin{Path: "web.yaml"}.String(),
		"kubectl (Update)":                   Actor{Manager: "kubectl", Operation: "Update", Time: at}.String(),
		"controller (Update through status)": Actor{Manager: "controller", Operation: "Update", Subresource: "status"}.String(),
		"Deployment/web":                     ObjectName{Kind: "Deployment", Name: "web"}.String(), "Deployment/shop/web": ObjectName{Kind: "Deployment", Namespace: "shop", Name: "web"}.String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Each kind is decoded into its own type; unknown and duplicate fields are found, and the rest is
// decoded.
func TestDecode(t *testing.T) {
	for kind := range ManifestKinds {
		v, strict, err := Decode(kind, []byte("{}"))
		if v == nil || len(strict) > 0 || err != nil {
			t.Errorf("%s: %T, %v, %v", kind, v, strict, err)
		}
	}
	crp := GroupKind{Group: PlacementGroup, Kind: "ClusterResourcePlacement"}
	v, strict, err := Decode(crp, []byte(`{"metadata": {"name": "web"}, "spec": {"polcy": {}}}`))
	p, ok := v.(*ClusterResourcePlacement)
	if !ok || p.Name != "web" || len(strict) != 1 || err != nil {
		t.Errorf("an unknown field: %T, %v, %v", v, strict, err)
	}
	if _, strict, _ := Decode(crp, []byte(`{"spec": {}, "spec": {}}`)); len(strict) != 1 {
		t.Errorf("a field that is there twice: %v", strict)
	}
	if _, _, err := Decode(crp, []byte(`{"spec": []}`)); err == nil {
		t.Error("a list is a spec")
	}
}
