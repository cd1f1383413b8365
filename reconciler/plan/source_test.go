package plan

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// snapshot loads a commit from a short text.
func snapshot(t *testing.T, text string) *hub.Snapshot {
	t.Helper()
	s := newScene(t)
	s.commit("v1", nil, []byte(text))
	return s.in.InForce
}

// The source of a placement has the positions of the placement, of the selected objects, and of
// the overrides that match them or are bound to the placement.
func TestSourceOf(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	const base = "clusters east/region=eu west\nnamespace web\nconfigmap web/one a\nplace web\n"
	for name, test := range map[string]struct {
		text  string
		paths []string // besides those of base
		same  bool     // the fingerprint is that of base
	}{
		"the same":                               {base, nil, true},
		"unrelated objects":                      {base + "namespace other\nconfigmap other/one a\nplace other\n", nil, true},
		"another object":                         {base + "configmap web/two a\n", []string{"configmap-web-two.yaml"}, false},
		"an override":                            {base + "override web/one to b on eu\n", []string{"override-web-one.yaml"}, false},
		"an override of other objects":           {base + "namespace other\nconfigmap other/two a\noverride other/two to b on eu\n", nil, true},
		"a bound override that matches nothing":  {base + "override web/two to b on eu for web\n", []string{"override-web-two.yaml"}, true},
		"an override bound to another placement": {base + "override web/one to b on eu for other\n", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := SourceOf(snapshot(t, base), web)
			got, known := SourceOf(snapshot(t, test.text), web)
			if !known || got.Spec.Key != web {
				t.Fatalf("known: %t, %+v", known, got.Spec)
			}
			var paths []string
			for _, o := range got.Origins {
				paths = append(paths, o.Path)
			}
			want := append([]string{"placement-web.yaml", "namespace-web.yaml", "configmap-web-one.yaml"}, test.paths...)
			slices.Sort(paths)
			slices.Sort(want)
			if !slices.Equal(paths, want) {
				t.Errorf("positions in %v, want %v", paths, want)
			}
			if same := got.Fingerprint == before.Fingerprint; same != test.same || got.Fingerprint == "" {
				t.Errorf("the fingerprint is the same: %t, want %t", same, test.same)
			}
		})
	}
}

// SourcesOf has each placement of a commit. The fingerprint of a placement with invalid selectors
// is empty, and a placement that the commit does not have is not known.
func TestSourcesOf(t *testing.T) {
	s := snapshot(t, "clusters east\nnamespace web\nnamespace other\nwidget other/one\nplace web\nplace bad of web broken\n")
	all := SourcesOf(s)
	if len(all) != 2 || all[0].Spec.Key.Name != "bad" || all[0].Fingerprint != "" || all[1].Fingerprint == "" {
		t.Errorf("sources: %+v", all)
	}
	for _, c := range all {
		if one, known := SourceOf(s, c.Spec.Key); !known || one.Fingerprint != c.Fingerprint || !slices.Equal(one.Origins, c.Origins) {
			t.Errorf("%s is %+v alone, and %+v among all", c.Spec.Key, one, c)
		}
	}
	if c, known := SourceOf(s, api.PlacementKey{Name: "gone"}); known {
		t.Errorf("a placement that does not exist has %+v", c)
	}
}

// An override is bound to the placement of the scope that it names, cluster-scoped by default.
func TestBoundTo(t *testing.T) {
	crp, rp := api.PlacementKey{Name: "web"}, api.PlacementKey{Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		ref     *api.PlacementRef
		crp, rp bool
	}{
		"no reference":     {nil, false, false},
		"cluster-scoped":   {&api.PlacementRef{Name: "web", Scope: api.ClusterScoped}, true, false},
		"no scope":         {&api.PlacementRef{Name: "web"}, true, false},
		"namespace-scoped": {&api.PlacementRef{Name: "web", Scope: api.NamespaceScoped}, false, true},
		"another name":     {&api.PlacementRef{Name: "api", Scope: api.NamespaceScoped}, false, false},
	} {
		if got := boundTo(test.ref, "shop", crp); got != test.crp {
			t.Errorf("%s: to %s: %t", name, crp, got)
		}
		if got := boundTo(test.ref, "shop", rp); got != test.rp {
			t.Errorf("%s: to %s: %t", name, rp, got)
		}
	}
}
