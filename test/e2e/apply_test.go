package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// makeNamespace creates a namespace that gitfleet does not own.
func (a *agent) makeNamespace() string {
	a.t.Helper()
	ns := fleet.Namespace(a.t)
	if _, err := a.client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
	return ns
}

func (a *agent) get(namespace, name string) (*corev1.ConfigMap, error) {
	return a.client.CoreV1().ConfigMaps(namespace).Get(context.Background(), name, metav1.GetOptions{})
}

// inventory returns the ConfigMaps of the agent's inventory.
func (a *agent) inventory() []corev1.ConfigMap {
	a.t.Helper()
	list, err := a.client.CoreV1().ConfigMaps(api.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + a.fleet})
	if err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

// definition returns a CustomResourceDefinition; gadget returns an object of its kind.
func definition(group string) *work.Manifest {
	return definitionOf(group, "Gadget", map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

// definitionOf defines a namespaced kind whose spec has the given schema.
func definitionOf(group, kind string, spec map[string]any) *work.Manifest {
	singular := strings.ToLower(kind)
	return manifest("definition", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": singular + "s." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": singular + "s", "singular": singular, "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}},
			}},
		},
	})
}

func gadget(group, namespace, name string) *work.Manifest {
	return manifest("gadget", map[string]any{
		"apiVersion": group + "/v1", "kind": "Gadget", "metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"size": int64(3)},
	})
}

// A CustomResourceDefinition and objects of its kind come with one commit: the definition is
// applied first, and the objects follow once the server serves their kind, without many
// discovery requests.
func TestCustomResourceWithItsDefinition(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns := fleet.Namespace(t)
	group := ns + ".example.com"
	key := api.PlacementKey{Name: "crd"}
	dynamics, err := dynamic.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	gadgets := dynamics.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}).Namespace(ns)

	a.Set([]*work.Work{workOf("crd", "1", namespaceOf(ns), gadget(group, ns, "one"), gadget(group, ns, "two"), definition(group))})
	a.applied(key, "1")
	for _, name := range []string{"one", "two"} {
		if _, err := gadgets.Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if n := len(a.sent.Requests(fleet.Watches, fleet.Probes)); n > 60 {
		t.Errorf("it took %d requests: %v", n, a.sent.Requests(fleet.Watches, fleet.Probes))
	}
	objects, _ := split(a.writes())
	if len(objects) > 6 { // each once, and one more for a gadget that was sent too early
		t.Errorf("writes: %v", objects)
	}

	// They are watched like all other objects.
	if err := gadgets.Delete(context.Background(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.eventually("restored", func() (bool, error) {
		_, err := gadgets.Get(context.Background(), "one", metav1.GetOptions{})
		return err == nil, err
	})
}

// An object of a kind that the cluster does not have is reported, does not prevent other
// objects from being applied, and is applied once somebody installs the kind.
func TestObjectIsAppliedWhenItsKindAppears(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns := fleet.Namespace(t)
	group := ns + ".example.com"
	a.Set([]*work.Work{workOf("cr", "1", namespaceOf(ns), configMap(ns, "fine", "a"), gadget(group, ns, "one"))})
	w := a.until(api.PlacementKey{Name: "cr"}, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	want := `Failed to apply the manifest (error: failed to decode manifest: failed to find GVR from member cluster client REST mapping: no matches for kind "Gadget" in version "` + group + `/v1": the cluster has no CustomResourceDefinition of kind Gadget in group ` + group + ` with version v1: place it together with the object, or install it there; it is looked for every few minutes)`
	if len(w.Exceptions) != 1 || w.Exceptions[0].Applied.Reason != api.DecodingErred || w.Exceptions[0].Applied.Message() != want {
		t.Errorf("exceptions: %+v\nwant %s", w.Exceptions, want)
	}
	if _, err := a.get(ns, "fine"); err != nil {
		t.Error(err)
	}
	dynamics, err := dynamic.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	crds := dynamics.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(context.Background(), definition(group).Object.Content.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.applied(api.PlacementKey{Name: "cr"}, "1")
}

// Abandoned objects stay as they are, and nothing marks them as gitfleet's any more: no label,
// no annotation, no managed field, no inventory. Fields of other managers stay.
func TestAbandonedObjectsHaveNoOwner(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := fleet.Namespace(t), api.PlacementKey{Name: "web"}, context.Background()
	w := workOf("web", "1", namespaceOf(ns), configMap(ns, "alone", "a"), configMap(ns, "shared", "a"))
	w.Abandon = true
	a.Set([]*work.Work{w})
	a.applied(key, "1")
	if err := (situation{a, ns, "shared"}).edit(ctx, `{"data":{"theirs":"1"},"metadata":{"labels":{"theirs":"1"},"annotations":{"theirs":"1"}}}`); err != nil {
		t.Fatal(err)
	}
	before, err := a.get(ns, "alone")
	if err != nil {
		t.Fatal(err)
	}
	a.sent.Reset()
	a.Set([]*work.Work{{Placement: key, Remove: true, Abandon: true}})
	a.until(key, "released", func(w protocol.WorkSeen) bool { return w.Removed })
	for _, line := range a.writes() {
		if strings.HasPrefix(line, "DELETE") && !strings.Contains(line, "/gitfleet-system/") {
			t.Errorf("it deleted something: %s", line)
		}
	}
	for name, theirs := range map[string]int{"alone": 0, "shared": 1} {
		cm, err := a.get(ns, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(cm.Labels) != theirs || len(cm.Annotations) != theirs || cm.Data["key"] != "a" || cm.Data["other"] != "same" {
			t.Errorf("%s: labels %v, annotations %v, data %v", name, cm.Labels, cm.Annotations, cm.Data)
		}
		for _, e := range cm.ManagedFields {
			if strings.HasPrefix(e.Manager, "gitfleet") {
				t.Errorf("%s: %s still manages %s", name, e.Manager, e.FieldsV1)
			}
		}
		if name == "alone" && cm.UID != before.UID {
			t.Error("it is another object")
		}
	}
	namespace, err := a.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp != nil || namespace.Labels[api.ManagedByLabel] != "" {
		t.Errorf("the namespace: %v %v", namespace, err)
	}
	if got := a.inventory(); len(got) > 0 {
		t.Errorf("there still is an inventory: %s", got[0].Name)
	}
	// From now on gitfleet does not change them.
	if err := (situation{a, ns, "alone"}).edit(ctx, `{"data":{"key":"b"}}`); err != nil {
		t.Fatal(err)
	}
	never := workOf("web", "2", configMap(ns, "alone", "a"))
	never.Strategy.WhenToTakeOver = api.TakeOverNever
	a.Set([]*work.Work{never})
	a.until(key, "not ours", func(w protocol.WorkSeen) bool { return w.Done && verdict(w, "alone") == api.NotTakenOver })
}

// Two fleets on one cluster respect each other: each keeps the objects that it owns, neither
// writes to nor deletes the other's, and an object that the first gives up is taken over by the
// second.
func TestTwoFleetsOnOneCluster(t *testing.T) {
	t.Parallel()
	first, second := newAgent(t), newAgent(t)
	ns, key := first.makeNamespace(), api.PlacementKey{Name: "web"}
	first.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "first"))})
	first.applied(key, "1")
	second.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "second"), configMap(ns, "two", "second"))})
	w := second.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if len(w.Exceptions) != 1 || w.Exceptions[0].Applied.Reason != api.FailedToTakeOver || !strings.Contains(w.Exceptions[0].Applied.Message(), "Fleet:"+first.fleet) {
		t.Errorf("the second says: %+v", w.Exceptions)
	}
	is := func(want string) {
		t.Helper()
		if cm, err := first.get(ns, "one"); err != nil || cm.Data["key"] != want || cm.Labels[api.ManagedByLabel] == "" {
			t.Errorf("the object: %v %v", cm, err)
		}
	}
	is("first")

	second.Set([]*work.Work{{Placement: key, Remove: true}})
	second.until(key, "removed", func(w protocol.WorkSeen) bool { return w.Removed })
	is("first")
	if len(first.inventory()) != 1 || len(second.inventory()) != 0 {
		t.Errorf("inventories: %d and %d", len(first.inventory()), len(second.inventory()))
	}
	if _, err := first.get(ns, "two"); !apierrors.IsNotFound(err) {
		t.Errorf("the second left something: %v", err)
	}

	second.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "second"))})
	second.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done && w.Revision.Hash == "2" && !w.Applied() })
	first.Set([]*work.Work{{Placement: key, Remove: true}})
	first.until(key, "removed", func(w protocol.WorkSeen) bool { return w.Removed })
	second.applied(key, "2")
	is("second")
	for _, line := range first.writes() {
		if strings.Contains(line, "/two") {
			t.Errorf("the first touched what is the second's: %s", line)
		}
	}
}

// An inventory cannot be lost by accident: if it is deleted, edited, or loses its label, it is
// restored, and nothing happens to the objects.
func TestChangedInventoryIsRestored(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := fleet.Namespace(t), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", many(ns, 2, "a")...)})
	a.applied(key, "1")
	a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })
	before := a.inventory()[0]
	inventories := a.client.CoreV1().ConfigMaps(api.Namespace)
	edit := func(patch string) func() error {
		return func() error {
			_, err := inventories.Patch(ctx, before.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			return err
		}
	}
	for name, tamper := range map[string]func() error{
		"deleted":                func() error { return inventories.Delete(ctx, before.Name, metav1.DeleteOptions{}) },
		"edited":                 edit(`{"binaryData":{"inventory":"AAAA"}}`),
		"emptied":                edit(`{"binaryData":null}`),
		"without its label":      edit(`{"metadata":{"labels":null}}`),
		"with another digest":    edit(`{"metadata":{"annotations":{"gitfleet.dev/inventory-digest":"0"}}}`),
		"with a field of theirs": edit(`{"data":{"theirs":"1"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			a.sent.Reset()
			if err := tamper(); err != nil {
				t.Fatal(err)
			}
			a.eventually("restored", func() (bool, error) {
				got, err := inventories.Get(ctx, before.Name, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				got.Annotations["gitfleet.dev/inventory-serial"] = before.Annotations["gitfleet.dev/inventory-serial"] // counts writes
				back := fmt.Sprint(got.BinaryData, got.Labels, got.Annotations) == fmt.Sprint(before.BinaryData, before.Labels, before.Annotations)
				_, written := split(a.writes())
				return back && (len(written) > 0 || name == "with a field of theirs"), nil // a write is recorded after its response: it must not count for the next case
			})
			objects, written := split(a.writes())
			if len(objects) > 0 || len(written) > 1 {
				t.Errorf("writes: %v %v", objects, written)
			}
		})
	}
	// It still records what is owned: after a restart, unwanted objects are deleted.
	a.stop()
	a.start()
	a.Set([]*work.Work{workOf("web", "2", many(ns, 1, "a")...)})
	a.applied(key, "2")
	if _, err := a.get(ns, "cm-001"); !apierrors.IsNotFound(err) {
		t.Errorf("an unwanted object still exists: %v", err)
	}
}

// A namespace that somebody deletes is created again, with all owned objects in it, as soon as
// Kubernetes has removed it; until then the requests to the server are few.
func TestDeletedNamespaceIsRestored(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := fleet.Namespace(t), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", many(ns, 5, "a")...)})
	a.applied(key, "1")
	before, err := a.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.sent.Reset()
	if err := a.client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// As the namespace controller does: delete the contents, then remove the finalizer.
	if err := a.client.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	a.until(key, "waiting for the namespace", func(w protocol.WorkSeen) bool {
		return slices.ContainsFunc(w.Exceptions, func(e protocol.ObjectState) bool {
			return e.ID.Name == "cm-000" && strings.Contains(e.Applied.Message(), "because it is being terminated")
		})
	})
	going, err := a.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	going.Spec.Finalizers = nil
	if _, err := a.client.CoreV1().Namespaces().Finalize(ctx, going, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.eventually("back with its contents", func() (bool, error) {
		list, err := a.client.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + a.fleet})
		return err == nil && len(list.Items) == 5, err
	})
	a.applied(key, "1")
	after, err := a.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err != nil || after.UID == before.UID || after.Labels[api.ManagedByLabel] != a.fleet {
		t.Errorf("the namespace: %v, %v", after, err)
	}
	// The five objects and the namespace, and a few attempts that came too early.
	if objects, _ := split(a.writes()); len(objects) > 6+5*6 {
		t.Errorf("%d writes: %v", len(objects), objects)
	}
}

// With force, conflicts with other managers are overridden; without it, they are reported with
// the managers' names, and nothing changes.
func TestForceConflicts(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns := a.makeNamespace()
	strategies := map[string]api.ApplyStrategy{
		"client-side": {Type: api.ClientSideApply},
		"default":     {},
		"forced":      {Type: api.ServerSideApply, ServerSideApplyConfig: &api.ServerSideApplyConfig{ForceConflicts: true}},
		"unforced":    {Type: api.ServerSideApply},
	}
	var all []*work.Work
	for name, strategy := range strategies {
		if err := (situation{a, ns, name}).create(context.Background(), "theirs", false); err != nil {
			t.Fatal(err)
		}
		w := workOf(name, "1", configMap(ns, name, "a"))
		w.Strategy = strategy
		all = append(all, w)
	}
	a.Set(all)
	for name := range strategies {
		w := a.until(api.PlacementKey{Name: name}, "tried", func(w protocol.WorkSeen) bool { return w.Done })
		cm, err := a.get(ns, name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "unforced" {
			if !w.Applied() || cm.Data["key"] != "a" {
				t.Errorf("%s: %+v, %v", name, w.Exceptions, cm.Data)
			}
			continue
		}
		if cm.Data["key"] != "theirs" || w.Applied() {
			t.Errorf("%s: overwritten: %v", name, cm.Data)
			continue
		}
		got := w.Exceptions[0].Applied
		if got.Reason != api.ManifestApplyFailed || !strings.Contains(got.Message(), `conflict with "helm"`) || !strings.Contains(got.Message(), ".data.key") {
			t.Errorf("%s: %s: %s", name, got.Reason, got.Message())
		}
	}
}

// An object with an owner on the member is taken over only where that is allowed, and the
// refusal names the owner.
func TestObjectsWithOwners(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, ctx := a.makeNamespace(), context.Background()
	owner, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"owned", "shared"} {
		cm := &corev1.ConfigMap{Data: map[string]string{"key": "a", "other": "same"}, ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}}}
		if _, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alone, together := workOf("alone", "1", configMap(ns, "owned", "a")), workOf("together", "1", configMap(ns, "shared", "a"))
	alone.Strategy.WhenToTakeOver, together.Strategy.WhenToTakeOver = api.TakeOverIfNoDiff, api.TakeOverIfNoDiff
	together.Strategy.AllowCoOwnership = true
	a.Set([]*work.Work{alone, together})
	a.applied(together.Placement, "1")
	w := a.until(alone.Placement, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	want := fmt.Sprintf("the object is already owned by some other sources(s) and co-ownership is disallowed (existingOwnerRefs: [{APIVersion:v1 Kind:ConfigMap Name:owner UID:%s}])", owner.UID)
	if len(w.Exceptions) != 1 || w.Exceptions[0].Applied.Reason != api.FailedToTakeOver || !strings.Contains(w.Exceptions[0].Applied.Message(), want) {
		t.Errorf("it says %+v\nwant %s", w.Exceptions, want)
	}
	for name, want := range map[string]string{"owned": "", "shared": a.fleet} {
		cm, err := a.get(ns, name)
		if err != nil || cm.Labels[api.ManagedByLabel] != want || len(cm.OwnerReferences) != 1 {
			t.Errorf("%s: %v, %v", name, cm, err)
		}
	}
}

// Only objects in an inventory are ever deleted: an object that somebody created again under
// the same name is not owned.
func TestReplacedObjectIsNotDeleted(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"))})
	a.applied(key, "1")
	a.stop()
	if err := a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := (situation{a, ns, "one"}).create(ctx, "theirs", false); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "two", "a"))})
	a.applied(key, "2")
	if cm, err := a.get(ns, "one"); err != nil || cm.Data["key"] != "theirs" {
		t.Errorf("foreign object: %v, %v", cm, err)
	}
	for _, q := range a.sent.Objects() {
		if q.Method == http.MethodDelete {
			t.Errorf("it asked to delete: %s", q)
		}
	}
}

// A deletion has the object's UID as precondition: if the object is replaced in between, the
// new one stays.
func TestDeletionHasTheUIDAsPrecondition(t *testing.T) {
	t.Parallel()
	var a *agent
	var ns string
	replace := func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/one") {
				ctx := context.Background()
				if err := a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				if err := (situation{a, ns, "one"}).create(ctx, "theirs", false); err != nil {
					t.Error(err)
				}
			}
			return next.RoundTrip(r)
		})
	}
	a = newAgent(t, func(cfg *member.Config) { cfg.Wrap = replace })
	ns = a.makeNamespace()
	key := api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"))})
	a.applied(key, "1")
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "two", "a"))})
	a.applied(key, "2")
	if cm, err := a.get(ns, "one"); err != nil || cm.Data["key"] != "theirs" {
		t.Errorf("foreign object: %v, %v", cm, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
