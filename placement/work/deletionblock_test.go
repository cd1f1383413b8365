package work

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An object is not deleted if a block covers it, or if one covers the Namespace or definition that is
// deleted with it.
func TestDeletionBlocked(t *testing.T) {
	namespace, other := api.ID{Kind: "Namespace", Name: "shop"}, api.ID{Kind: "Namespace", Name: "web"}
	crd := api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
	cm := api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	widget := api.ID{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "one"}
	guard := []DeletionBlock{{Kind: namespace.GroupKind(), Why: "guarded"}, {Kind: crd.GroupKind(), Why: "guarded"}}
	tests := map[string]struct {
		blocks []DeletionBlock
		id     api.ID
		with   []api.ID
		want   string
	}{
		"nothing is blocked":              {nil, namespace, nil, ""},
		"a guarded kind":                  {guard, namespace, nil, "guarded"},
		"another kind":                    {guard, cm, nil, ""},
		"in a namespace that goes":        {guard, cm, []api.ID{namespace}, "Namespace shop goes as well, and guarded"},
		"in another namespace":            {guard, cm, []api.ID{other}, ""},
		"of a kind whose definition goes": {guard, widget, []api.ID{crd}, "CustomResourceDefinition widgets.example.com goes as well, and guarded"},
		"in a namespace that may go":      {nil, cm, []api.ID{namespace}, ""},
		"all":                             {[]DeletionBlock{{Why: "all"}}, cm, nil, "all"},
		"all but a namespace":             {[]DeletionBlock{{Why: "all", Except: []string{"shop"}}}, cm, nil, ""},
		"the namespace itself":            {[]DeletionBlock{{Why: "all", Except: []string{"shop"}}}, namespace, nil, "all"},
		"the first reason counts":         {append([]DeletionBlock{{Why: "first"}}, guard...), namespace, nil, "first"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := Work{DeletionBlocks: test.blocks}
			if got := w.DeletionBlocked(test.id, test.with); got != test.want {
				t.Errorf("DeletionBlocked(%s) = %q, want %q", test.id, got, test.want)
			}
		})
	}
}

// Blocks are equal if they cover the same for the same reason.
func TestBlocksAreEqual(t *testing.T) {
	block := DeletionBlock{Why: "guarded", Kind: api.GroupKind{Kind: "Namespace"}, Except: []string{"a", "b"}}
	tests := map[string]struct {
		other DeletionBlock
		want  bool
	}{
		"the same":      {DeletionBlock{Why: "guarded", Kind: api.GroupKind{Kind: "Namespace"}, Except: []string{"a", "b"}}, true},
		"why":           {DeletionBlock{Why: "all", Kind: block.Kind, Except: block.Except}, false},
		"of what":       {DeletionBlock{Why: block.Why, Except: block.Except}, false},
		"except what":   {DeletionBlock{Why: block.Why, Kind: block.Kind, Except: []string{"a"}}, false},
		"except others": {DeletionBlock{Why: block.Why, Kind: block.Kind, Except: []string{"a", "c"}}, false},
	}
	for name, test := range tests {
		if got := block.Equal(test.other); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only namespaces and definitions take other objects with them, and only those that are theirs.
func TestContains(t *testing.T) {
	crd := func(name string) api.ID {
		return api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
	}
	one := api.ID{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "one"}
	tests := map[string]struct {
		of, id api.ID
		want   bool
	}{
		"its namespace":            {api.ID{Kind: "Namespace", Name: "web"}, one, true},
		"another namespace":        {api.ID{Kind: "Namespace", Name: "shop"}, one, false},
		"a kind of that name":      {api.ID{Group: "example.com", Kind: "Namespace", Name: "web"}, one, false},
		"its definition":           {crd("widgets.example.com"), one, true},
		"of a longer group":        {crd("widgets.my.example.com"), api.ID{Group: "my.example.com", Kind: "Widget"}, true},
		"of another group":         {crd("widgets.example.org"), one, false},
		"of a group that ends so":  {crd("widgets.anexample.com"), one, false},
		"of the core":              {crd("widgets.example.com"), api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, false},
		"an object of another one": {api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "one"}, one, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := contains(test.of, test.id); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
			if test.want && !Contains(test.of.GroupKind()) {
				t.Errorf("its kind %s takes nothing with it", test.of.GroupKind())
			}
		})
	}
	if Contains(one.GroupKind()) {
		t.Error("a custom resource takes others with it")
	}
}

// A suspension of the work comes before those of its objects.
func TestSuspendedReason(t *testing.T) {
	id := func(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }
	objects := []SuspendedObject{{id("a"), "first"}, {id("c"), "second"}}
	tests := map[string]struct {
		w    Work
		id   api.ID
		want string
	}{
		"nothing is":         {Work{}, id("a"), ""},
		"the object is":      {Work{SuspendedObjects: objects}, id("c"), "second"},
		"another object is":  {Work{SuspendedObjects: objects}, id("b"), ""},
		"all is":             {Work{Suspended: "all"}, id("b"), "all"},
		"all and the object": {Work{Suspended: "all", SuspendedObjects: objects}, id("a"), "all"},
	}
	for name, test := range tests {
		if got := test.w.SuspendedReason(test.id); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A work that writes nothing yet only keeps what is handed over to it.
func TestUnreleased(t *testing.T) {
	tests := map[string]struct {
		w    Work
		want bool
	}{
		"it waits for its rollout":  {Work{Keep: true, Awaited: []*Manifest{{}}}, true},
		"it has a revision":         {Work{Keep: true, Revision: placement.Revision{Hash: "a"}}, false},
		"it has manifests":          {Work{Keep: true, Manifests: []*Manifest{{}}}, false},
		"it is to hold nothing":     {Work{}, false},
		"it is to be removed there": {Work{Remove: true}, false},
	}
	for name, test := range tests {
		if got := test.w.Unreleased(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
