package deletion

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

var (
	space      = api.ID{Kind: "Namespace", Name: "op"}
	definition = api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "lakes.op.example.com"}
	lake       = api.ID{Group: "op.example.com", Kind: "Lake", Namespace: "op", Name: "como"}
	operator   = api.ID{Group: "apps", Kind: "Deployment", Namespace: "op", Name: "operator"}
	account    = api.ID{Kind: "ServiceAccount", Namespace: "op", Name: "operator"}
	role       = api.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "operator"}
	webhook    = api.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "operator"}
	service    = api.ID{Kind: "Service", Namespace: "op", Name: "operator"}
)

// Everything that a custom resource may need stays until it is gone, and a webhook configuration goes
// before the Service that answers for it. No object waits for one of its own wave or a later one.
func TestWavesAreTheReverseOfApplying(t *testing.T) {
	order := [][]api.ID{{lake}, {webhook}, {operator, service}, {role}, {account}, {space, definition}}
	var all []Object
	for _, wave := range order {
		for _, id := range wave {
			all = append(all, Object{ID: id, Leaving: true})
		}
	}
	gone := map[api.ID]bool{}
	w := NewWaves(all, func(o Object) bool { return !gone[o.ID] })
	for n, wave := range order {
		for later, ids := range order {
			for _, id := range ids {
				first, waits := w.Before(Object{ID: id, Leaving: true})
				if want := later > n; waits != want && !gone[id] {
					t.Errorf("with the waves from %d, %s waits for %q: %t, want %t", n, id, first.ID, waits, want)
				}
			}
		}
		for _, id := range wave {
			gone[id] = true
		}
	}
}

// Deletions of a placement wait for custom resources of another one that it may be the operator of, and
// for nothing else of others.
func TestDeletionsWaitForCustomResourcesOfOtherPlacements(t *testing.T) {
	op, lakes, crds, web := api.PlacementKey{Name: "op"}, api.PlacementKey{Name: "lakes"}, api.PlacementKey{Name: "crds"}, api.PlacementKey{Name: "web"}
	leaving := func(p api.PlacementKey, id api.ID, commit string) Object { return Object{id, p, true, commit} }
	staying := func(p api.PlacementKey, id api.ID) Object { return Object{ID: id, Placement: p} }
	tests := map[string]struct {
		all  []Object
		of   Object
		want bool
	}{
		"its operator, of one commit":       {[]Object{leaving(op, definition, "c1"), leaving(op, operator, "c1"), leaving(lakes, lake, "c1")}, leaving(op, operator, "c1"), true},
		"its operator, of another commit":   {[]Object{leaving(op, definition, "c2"), leaving(op, operator, "c2"), leaving(lakes, lake, "c1")}, leaving(op, operator, "c2"), true},
		"its operator, and it stays":        {[]Object{leaving(op, definition, "c1"), leaving(op, operator, "c1"), staying(lakes, lake)}, leaving(op, operator, "c1"), false},
		"another one's":                     {[]Object{staying(op, definition), staying(op, operator), leaving(lakes, lake, "c1"), leaving(web, account, "c1")}, leaving(web, account, "c1"), false},
		"its definition, apart":             {[]Object{leaving(crds, definition, "c2"), leaving(lakes, lake, "c1")}, leaving(crds, definition, "c2"), true},
		"definitions apart, of one commit":  {[]Object{leaving(crds, definition, "c1"), leaving(op, operator, "c1"), leaving(lakes, lake, "c1")}, leaving(op, operator, "c1"), true},
		"definitions apart, of two commits": {[]Object{leaving(crds, definition, "c1"), leaving(op, operator, "c2"), leaving(lakes, lake, "c1")}, leaving(op, operator, "c2"), false},
		"no custom resource":                {[]Object{leaving(lakes, operator, "c1"), leaving(web, account, "c1")}, leaving(web, account, "c1"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			exists := true
			w := NewWaves(test.all, func(Object) bool { return exists })
			own := test.of
			if first, waits := w.Before(own); waits != test.want || waits && first.ID != lake {
				t.Errorf("it waits for %q: %t, want %t", first.ID, waits, test.want)
			}
			exists = false
			if first, waits := w.Before(own); waits {
				t.Errorf("it waits for %q, which is gone", first.ID)
			}
		})
	}
}

// The conditions of a Namespace and a definition say why they still exist.
func TestWhyAnObjectStays(t *testing.T) {
	of := func(apiVersion, kind string, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "status": map[string]any{"conditions": conditions}}}
	}
	cond := func(typ, status, message string) any {
		return map[string]any{"type": typ, "status": status, "message": message}
	}
	tests := map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"finalizers": {of("v1", "Namespace", cond("NamespaceDeletionDiscoveryFailure", "False", "fine"), cond("NamespaceFinalizersRemaining", "True", "Some content has finalizers"),
			cond("NamespaceContentRemaining", "True", "Some resources remain")), "NamespaceContentRemaining: Some resources remain; NamespaceFinalizersRemaining: Some content has finalizers"},
		"a condition without a message": {of("v1", "Namespace", cond("NamespaceDeletionContentFailure", "True", "")), "NamespaceDeletionContentFailure"},
		"instances": {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", cond("Established", "True", "x"), cond("Terminating", "True", "instances are being deleted")),
			"Terminating: instances are being deleted"},
		"nothing":      {of("v1", "Namespace"), ""},
		"another kind": {of("apps/v1", "Deployment", cond("Terminating", "True", "x")), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := why(test.live); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// No object is deleted while one of an earlier wave of its placement exists, and no definition while a
// custom resource of its group is being deleted. Once no finalizer is left, everything is gone.
func TestNoObjectIsDeletedBeforeAnEarlierWaveIsGone(t *testing.T) {
	ids := []api.ID{lake, webhook, operator, service, role, account, space, definition, {Group: "other.example.com", Kind: "Pond", Name: "one"}}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []Object
		lingers := map[Object]int{} // the rounds until it is gone, once it is deleted
		for _, p := range []api.PlacementKey{{Name: "a"}, {Name: "b"}, {Name: "c"}} {
			for _, id := range ids {
				if r.IntN(2) == 0 {
					o := Object{ID: id, Placement: p, Leaving: r.IntN(4) > 0, Commit: []string{"c1", "c2"}[r.IntN(2)]}
					all, lingers[o] = append(all, o), r.IntN(4)
				}
			}
		}
		there, deleted := map[Object]bool{}, map[Object]bool{}
		for _, o := range all {
			there[o] = o.Leaving
		}
		for range 100 {
			w := NewWaves(all, func(o Object) bool { return there[o] })
			for _, o := range all {
				if _, waits := w.Before(o); !there[o] || deleted[o] || waits {
					continue
				}
				for _, other := range all {
					earlier := work.Wave(other.ID.GroupKind()) > work.Wave(o.ID.GroupKind())
					if there[other] && earlier && (other.Placement == o.Placement || o.ID == definition && other.ID == lake) {
						t.Fatalf("seed %d: %v is deleted while %v exists", seed, o, other)
					}
				}
				deleted[o] = true
			}
			for o := range deleted {
				if lingers[o]--; lingers[o] < 0 {
					there[o] = false
				}
			}
		}
		for o, exists := range there {
			if exists {
				t.Fatalf("seed %d: %v is never deleted", seed, o)
			}
		}
	}
}
