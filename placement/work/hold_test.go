package work

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// What is held is told by the object itself, or by the Namespace or definition
// that goes with it.
func TestHeld(t *testing.T) {
	namespace, other := api.ID{Kind: "Namespace", Name: "shop"}, api.ID{Kind: "Namespace", Name: "web"}
	crd := api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
	cm := api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	widget := api.ID{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "one"}
	guard := []Hold{{Kind: namespace.GroupKind(), Why: "guarded"}, {Kind: crd.GroupKind(), Why: "guarded"}}
	tests := map[string]struct {
		holds []Hold
		id    api.ID
		with  []api.ID
		want  string
	}{
		"nothing is held":                 {nil, namespace, nil, ""},
		"a guarded kind":                  {guard, namespace, nil, "guarded"},
		"another kind":                    {guard, cm, nil, ""},
		"in a namespace that goes":        {guard, cm, []api.ID{namespace}, "Namespace shop goes as well, and guarded"},
		"in another namespace":            {guard, cm, []api.ID{other}, ""},
		"of a kind whose definition goes": {guard, widget, []api.ID{crd}, "CustomResourceDefinition widgets.example.com goes as well, and guarded"},
		"in a namespace that may go":      {nil, cm, []api.ID{namespace}, ""},
		"all":                             {[]Hold{{Why: "all"}}, cm, nil, "all"},
		"all but a namespace":             {[]Hold{{Why: "all", Except: []string{"shop"}}}, cm, nil, ""},
		"the namespace itself":            {[]Hold{{Why: "all", Except: []string{"shop"}}}, namespace, nil, "all"},
		"the first reason counts":         {append([]Hold{{Why: "first"}}, guard...), namespace, nil, "first"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := Work{Holds: test.holds}
			if got := w.Held(test.id, test.with); got != test.want {
				t.Errorf("Held(%s) = %q, want %q", test.id, got, test.want)
			}
		})
	}
}
