package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// What a webhook says of a Secret whose deletion it denies is in the history without the values of the Secret.
func TestHistoryOfARefusedDeletionHasNoSecrets(t *testing.T) {
	web, secret := api.PlacementKey{Name: "web"}, manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "web", "name": "login"}, "stringData": map[string]any{"password": "hunter2-canary"},
	})
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.holding(secret, web)
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{secret}}})
	var entries []history.Entry
	s.cfg.Record = func(all ...history.Entry) { entries = append(entries, all...) }
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: "denied: hunter2-canary"}}
	o := s.pruner.result(t.Context(), owned.Stale{Inventory: s.inventory(web).View(), Item: s.inventory(web).Items.Of(secret.ID)}, history.Deleted, denied)
	s.record.removal(o, map[api.PlacementKey]bool{})
	if len(entries) != 1 || !strings.Contains(entries[0].Message, "denied") || strings.Contains(entries[0].Message, "canary") {
		t.Errorf("the history says %+v", entries)
	}
}

// The report says why an object still exists that should be deleted. A refused deletion is
// shown at once, a failure that may pass only if it does not, and a server without a response
// not at all.
func TestReportSaysWhyAnObjectIsNotDeleted(t *testing.T) {
	denied := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	tests := map[string]struct {
		err   error
		tries int
		want  string
	}{
		"forbidden":          {denied(http.StatusForbidden, metav1.StatusReasonForbidden, "cannot delete resource"), 1, "cannot delete resource"},
		"denied by webhook":  {denied(http.StatusBadRequest, "", "admission webhook denied the request"), 1, "admission webhook denied the request"},
		"failing":            {denied(http.StatusInternalServerError, "", "failed calling webhook"), 1, ""},
		"failing repeatedly": {denied(http.StatusInternalServerError, "", "failed calling webhook"), deletionAttempts, "failed calling webhook"},
		"unreachable":        {connection.Unreachable(errors.New("refused")), deletionAttempts, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(m, web)
			s.replaceWorks([]*work.Work{{Placement: web}})
			var told protocol.WorkSeen
			s.cfg.Report = func(o protocol.Observation) { told = o.(protocol.WorkSeen) }
			for range test.tries {
				o := s.pruner.result(t.Context(), owned.Stale{Inventory: s.inventory(web).View(), Item: s.inventory(web).Items.Of(m.ID)}, "", test.err)
				if s.record.removal(o, map[api.PlacementKey]bool{}); o.gone {
					t.Fatal("a removal that failed counts as done")
				}
			}
			s.reporter.report(t.Context(), web)
			var got []string
			for _, f := range told.Unusual().DeletionErrors {
				got = append(got, f.ID.Name+": "+f.Message)
			}
			text := strings.Join(got, "\n")
			if test.want == "" && text != "" || test.want != "" && (len(got) != 1 || !strings.HasPrefix(text, "one: ") || !strings.Contains(text, test.want)) {
				t.Errorf("the report says %q, not %q", text, test.want)
			}
		})
	}
}

// Objects whose new inventory cannot be written stay with their placement, and the log has one line for the inventory.
func TestInventoryThatCannotBeHandedOverToIsLoggedOnce(t *testing.T) {
	from, to := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}
	at := apiserver.NewConfigMaps()
	s := sessionAt(t, at)
	var log strings.Builder
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var all []*work.Manifest
	for _, name := range []string{"one", "two", "three"} {
		m := oneManifest()
		m.ID.Name = name
		s.holding(m, from)
		all = append(all, m)
	}
	revision := placement.Revision{Commit: "v2", Hash: "2"}
	s.setWorks([]*work.Work{{Placement: from, Revision: revision}, {Placement: to, Revision: revision, Awaited: all}})
	var stales []owned.Stale
	for _, m := range all {
		stales = append(stales, s.owned.Stales(m.ID)...)
	}
	at.Intact = 0
	for range 3 {
		s.pruner.prune(t.Context(), stales, map[api.PlacementKey]bool{})
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "placement=crp/to objects=3 ") {
		t.Errorf("the log has\n%s", text)
	}
	for _, m := range all {
		if !s.owned.Owns(from, m.ID) || !s.progress.HasFailed(m.ID) {
			t.Errorf("%s is not kept and tried again", m.ID)
		}
	}
}

// An object whose new inventory cannot be written stays with its placement. The report says why, and it is handed over in a retry.
func TestReportSaysWhyAnObjectIsNotHandedOver(t *testing.T) {
	from, to, m := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}, oneManifest()
	at := apiserver.NewConfigMaps()
	var refuses atomic.Bool
	s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() && r.Method == http.MethodPatch {
			apiserver.Refuse(w, http.StatusForbidden, "denied by a webhook")
			return
		}
		at.ServeHTTP(w, r)
	}))
	s.holding(m, from)
	revision := placement.Revision{Commit: "v2", Hash: "2"}
	s.setWorks([]*work.Work{{Placement: from, Revision: revision}, {Placement: to, Revision: revision, Awaited: []*work.Manifest{m}}})
	var seen protocol.WorkSeen
	s.cfg.Report = func(o protocol.Observation) { seen = o.(protocol.WorkSeen) }
	for _, refused := range []bool{true, false} {
		refuses.Store(refused)
		s.pruner.prune(t.Context(), s.owned.Stales(m.ID), map[api.PlacementKey]bool{})
		if s.owned.Owns(from, m.ID) != refused || s.owned.Owns(to, m.ID) == refused || s.progress.HasFailed(m.ID) != refused {
			t.Errorf("refused: %t: from has it: %t, to has it: %t, it is retried: %t", refused, s.owned.Owns(from, m.ID), s.owned.Owns(to, m.ID), s.progress.HasFailed(m.ID))
		}
		s.reporter.report(t.Context(), from)
		if got := seen.Unusual().DeletionErrors; len(got) > 1 || (len(got) == 1) != refused || refused && !strings.Contains(got[0].Message, "hand over to "+to.String()) {
			t.Errorf("refused: %t: the report says %v", refused, got)
		}
	}
}

// An object that was deleted stays in the inventory until it is gone, even if other objects of
// its placement stay.
func TestInventoryListsADeletedObjectUntilItIsGone(t *testing.T) {
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.holding(m, web)
	s.replaceWorks([]*work.Work{{Placement: web, AllowDelete: true}})
	ctx, cancel := context.WithCancel(t.Context())
	defer s.watch.Wait()
	defer cancel()
	k := s.watch.Start(ctx, m.Object.Content.GroupVersionKind(), inventory.ConfigMaps, false)
	if !s.watch.WaitForLists(ctx, []*watch.Kind{k}, time.Minute) {
		t.Fatal("nothing is listed")
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: m.ID.Name, Namespace: m.ID.Namespace, Labels: map[string]string{api.ManagedByLabel: "prod"},
		DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"example.com/log"},
	}}
	s.record.objects.Put(m.ID, observed.Of(o))
	s.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
	for _, gone := range []bool{false, true} {
		if gone {
			s.record.objects.Drop(m.ID)
		}
		s.pruner.prune(t.Context(), s.owned.Stales(m.ID), map[api.PlacementKey]bool{})
		if listed := s.inventory(web).Items.Has(m.ID); listed == gone {
			t.Errorf("gone: %t, and in the inventory: %t", gone, listed)
		}
	}
}

// An inventory drops an object that is to be removed only when the object is gone. It is not
// enough that discovery does not list its kind: discovery may be stale, an aggregated API may
// be down, or another version may be served.
func TestInventoryKeepsObjectsOfUnservedKinds(t *testing.T) {
	const version, group = "/apis/example.com/v1", "/apis/example.com"
	const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const object = "/namespaces/web/gadgets/one"
	gadgets := metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true}}}
	newer := metav1.APIResourceList{GroupVersion: "example.com/v2", APIResources: gadgets.APIResources}
	gadget := func(version string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/" + version, Kind: "Gadget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "one", UID: "1", Labels: map[string]string{api.ManagedByLabel: "prod"}},
		}
	}
	crds := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"}}, {ObjectMeta: metav1.ObjectMeta{Name: "other.example.org"}}},
	}
	crd := func(kind string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.example.com"},
			"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": kind}},
		}
	}
	tests := map[string]struct {
		answers   map[string]any // responses by path; a number is a status code; other paths are not found
		forgotten bool
		deleted   string // the path
		says      string
	}{
		"kind and definition are gone": {
			map[string]any{definitionsPath: metav1.PartialObjectMetadataList{TypeMeta: crds.TypeMeta}}, true, "", "",
		},
		"a definition of another kind of the group": {
			map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": crd("Gizmo")}, true, "", "",
		},
		"served again": {
			map[string]any{version: gadgets, version + object: gadget("v1")}, true, version + object, "",
		},
		"served in another version": {
			map[string]any{
				group:                           metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{Version: "v2"}}},
				"/apis/example.com/v2":          newer,
				"/apis/example.com/v2" + object: gadget("v2"),
			}, true, "/apis/example.com/v2" + object, "",
		},
		"discovery is stale": {
			map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": crd("Gadget")}, false, "",
			"the cluster does not serve the kind Gadget.example.com, but has its CustomResourceDefinition gadgets.example.com",
		},
		"its API server is down":        {map[string]any{version: http.StatusServiceUnavailable}, false, "", "not now"},
		"its group cannot be read":      {map[string]any{group: http.StatusServiceUnavailable}, false, "", "not now"},
		"definitions cannot be read":    {map[string]any{definitionsPath: http.StatusForbidden}, false, "", "whether the kind Gadget.example.com is gone for good cannot be told: not now"},
		"its definition cannot be read": {map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": http.StatusForbidden}, false, "", "cannot be told: not now"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked, deleted []string
			s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				w.Header().Set("Content-Type", "application/json")
				switch a := test.answers[r.URL.Path].(type) {
				case nil:
					apiserver.Refuse(w, http.StatusNotFound, "the server could not find the requested resource")
				case int:
					apiserver.Refuse(w, a, "not now")
				default:
					if r.Method == http.MethodDelete {
						deleted = append(deleted, r.URL.Path)
						a = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
					}
					json.NewEncoder(w).Encode(a)
				}
			}))
			s.replaceWorks([]*work.Work{{Placement: web, Remove: true}})
			it := inventory.Item{Group: "example.com", Version: "v1", Kind: "Gadget", Namespace: "web", Name: "one", Hash: "hash", UID: "1"}
			s.inventories.owned.Inventory(web).Items.Put(it)
			if err := s.kinds.Resolve(t.Context(), map[schema.GroupVersionKind]bool{it.GroupVersionKind(): true}); err != nil {
				t.Fatal(err)
			}
			s.kinds = discovery.New(s.conn.Discovery) // discovery did not list the kind when the session began
			s.finder = discovery.NewFinder(s.conn, s.kinds)
			for range deletionAttempts {
				s.record.progress.RetryAll()
				s.pruner.prune(t.Context(), s.owned.Stales(it.ID()), map[api.PlacementKey]bool{})
			}
			if forgotten := !s.inventory(web).Items.Has(it.ID()); forgotten != test.forgotten {
				t.Errorf("the inventory has forgotten it: %t, want %t; asked for %q", forgotten, test.forgotten, asked)
			}
			if want := slices.DeleteFunc([]string{test.deleted}, func(p string) bool { return p == "" }); !slices.Equal(deleted, want) {
				t.Errorf("deleted %q, want %q", deleted, want)
			}
			says := s.failure(it.ID()).NotDeleted
			if (says == "") != (test.says == "") || !strings.Contains(says, test.says) {
				t.Errorf("it says %q, want %q", says, test.says)
			}
		})
	}
}

// deletionAttempts is how often a deletion fails until the report says so, if the reason may pass by itself.
const deletionAttempts = 3

// The Pods of a workload are gone before the removal of its placement counts as finished. When a
// single object is removed, or an object cannot have dependents that outlive it, nothing waits.
func TestPropagationOfDeletions(t *testing.T) {
	const foreground, background = metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	kinds := map[string]struct {
		group, kind string
		removed     metav1.DeletionPropagation // when the placement is removed
	}{
		"a Deployment":            {"apps", "Deployment", foreground},
		"a Job":                   {"batch", "Job", foreground},
		"a ReplicationController": {"", "ReplicationController", foreground},
		"a custom resource":       {"example.com", "Gadget", foreground},
		"a ConfigMap":             {"", "ConfigMap", background},
		"a Role":                  {"rbac.authorization.k8s.io", "Role", background},
		"a definition":            {"apiextensions.k8s.io", "CustomResourceDefinition", background},
	}
	for name, test := range kinds {
		t.Run(name, func(t *testing.T) {
			s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
			st := owned.Stale{Inventory: s.inventories.owned.Inventory(web).View(), Item: &inventory.Item{Group: test.group, Kind: test.kind, Name: "one"}}
			for removes, want := range map[bool]metav1.DeletionPropagation{true: test.removed, false: background} {
				s.replaceWorks([]*work.Work{{Placement: web, Remove: removes}})
				if got := s.pruner.propagation(st); got != want {
					t.Errorf("the placement is removed: %t: %s, want %s", removes, got, want)
				}
			}
		})
	}
}

// A Namespace is not deleted while it has objects of the fleet that stay.
func TestNamespaceWaitsForItsObjects(t *testing.T) {
	namespace := inventory.Item{Version: "v1", Kind: "Namespace", Name: "web"}
	other := api.PlacementKey{Name: "other"}
	tests := map[string]struct {
		item inventory.Item // what is to be deleted
		live *observed.Object
		in   string // the namespace of the object
		want string
	}{
		"an object stays":                {namespace, &observed.Object{Fleet: "prod"}, "web", "ConfigMap one"},
		"an object is being deleted":     {namespace, &observed.Object{Fleet: "prod", Terminating: true}, "web", ""},
		"an object is gone":              {namespace, nil, "web", ""},
		"an object of another namespace": {namespace, &observed.Object{Fleet: "prod"}, "shop", ""},
		"it is no Namespace":             {inventory.Item{Version: "v1", Kind: "ConfigMap", Name: "web"}, &observed.Object{Fleet: "prod"}, "web", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			watchConfigMaps(t, s)
			it := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: test.in, Name: "one"}
			s.inventories.owned.Inventory(other).Items.Put(it)
			if test.live != nil {
				s.record.objects.Put(it.ID(), test.live)
			}
			if got := s.pruner.remainingIn(t.Context(), &test.item); got != test.want {
				t.Errorf("it has %q, want %q", got, test.want)
			}
		})
	}
}

// What becomes of a stale object depends on its state on the cluster, its annotations and what
// holds its deletion.
func TestRemovals(t *testing.T) {
	marked := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := oneManifest().Object.Content.DeepCopy()
		o.SetNamespace("default")
		o.SetLabels(map[string]string{api.ManagedByLabel: "prod", "app": "web"})
		o.SetAnnotations(map[string]string{api.PlacementAnnotation: "crp/web", "note": "x"})
		if change != nil {
			change(o)
		}
		return o
	}
	tests := map[string]struct {
		work    work.Work
		abandon bool // the inventory says that the objects stay
		live    *unstructured.Unstructured
		removed bool // the object is no longer in the inventory
		there   bool // the object is still on the cluster
		marked  bool // and has the label
		event   history.Event
		held    string
	}{
		"deleted":          {live: marked(nil), removed: true, event: history.Deleted},
		"gone already":     {removed: true},
		"no longer ours":   {live: marked(func(o *unstructured.Unstructured) { o.SetLabels(nil) }), removed: true, there: true},
		"of another fleet": {live: marked(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{api.ManagedByLabel: "test"}) }), removed: true, there: true},
		"to be kept by its owner": {live: marked(func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{api.PruneAnnotation: api.PruneDisabled})
		}), removed: true, there: true, event: history.Released},
		"left by a deleted placement":  {work: work.Work{Remove: true, Abandon: true}, abandon: true, live: marked(nil), removed: true, there: true, event: history.Released},
		"left, by the first news":      {work: work.Work{Remove: true, Abandon: true}, live: marked(nil), removed: true, there: true, event: history.Released},
		"held by its work":             {work: work.Work{DeletionBlocks: []work.DeletionBlock{{Why: "the selection is empty"}}}, live: marked(nil), there: true, marked: true, held: "the selection is empty"},
		"held, and a commit allows it": {work: work.Work{DeletionBlocks: []work.DeletionBlock{{Why: "the selection is empty"}}, AllowDelete: true}, live: marked(nil), removed: true, event: history.Deleted},
		"with a finalizer":             {live: marked(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/log"}) }), there: true, marked: true, event: history.Deleted},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &work.Work{})
			f.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
			it := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one", Hash: "h"}
			if test.live != nil {
				stored, err := f.user.Create(t.Context(), test.live, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				it.UID = stored.GetUID()
			}
			test.work.Placement = web
			f.inventories.owned.Inventory(web).Items.Put(it)
			f.inventory(web).Abandon = test.abandon
			f.setWorks([]*work.Work{&test.work})
			var events []history.Event
			f.cfg.Record = func(all ...history.Entry) { events = append(events, eventsOf(all)...) }
			f.pruner.prune(t.Context(), f.owned.Stales(it.ID()), map[api.PlacementKey]bool{})
			if removed := !f.owned.Owns(web, it.ID()); removed != test.removed {
				t.Errorf("removed from the inventory: %t", removed)
			}
			live, err := f.user.Get(t.Context(), "one", metav1.GetOptions{})
			if there := err == nil; there != test.there {
				t.Fatalf("on the cluster: %t (%v)", there, err)
			}
			if test.there && (live.GetLabels()[api.ManagedByLabel] == "prod") != test.marked {
				t.Errorf("labels: %v", live.GetLabels())
			}
			if test.event == history.Released && (live.GetAnnotations()[api.PlacementAnnotation] != "" || live.GetDeletionTimestamp() != nil) {
				t.Errorf("released, and still has %v", live.GetAnnotations())
			}
			if want := slices.DeleteFunc([]history.Event{test.event}, func(e history.Event) bool { return e == "" }); !slices.Equal(events, want) {
				t.Errorf("history: %v, want %v", events, want)
			}
			if got := f.blocker.blocked[it.ID()].why; got != test.held {
				t.Errorf("held: %q, want %q", got, test.held)
			}
		})
	}
}
