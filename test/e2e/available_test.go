package e2e

import (
	"context"
	"fmt"
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

// available waits until the status of an object's availability contains a word.
func (a *agent) available(p api.PlacementKey, name, word string) {
	a.t.Helper()
	a.until(p, name+": "+word, func(w protocol.WorkSeen) bool {
		for _, e := range w.Exceptions {
			if e.ID.Name == name {
				return e.Applied.OK && strings.Contains(e.Available.Reason+": "+e.Available.Message(), word)
			}
		}
		return w.Done && word == "available"
	})
}

// annotated returns a manifest with annotations.
func annotated(m *work.Manifest, notes map[string]string) *work.Manifest {
	o := m.Object.Content.DeepCopy()
	o.SetAnnotations(notes)
	return manifest(m.Hash+fmt.Sprint(notes), o.Object)
}

// An object with an availability expression is available when that is true, whatever its kind;
// changes are noticed by the watch, without polling. If the expression cannot be evaluated, the
// object is not available, the message says why, and quotes no Secret.
func TestAvailableByExpression(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	group := ns + ".example.com"
	dynamics, err := dynamic.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	gadgets := dynamics.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}).Namespace(ns)
	one := annotated(gadget(group, ns, "one"), map[string]string{api.AvailableAnnotation: `object.spec.?phase.orValue("") == "Running"`})
	settings := annotated(configMap(ns, "settings", "a"), map[string]string{api.AvailableAnnotation: `object.data.ready == "yes"`})
	secret := annotated(manifest("secret", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": ns}, "data": map[string]any{"age": "Y2FuYXJ5LXZhbHVl"},
	}), map[string]string{api.AvailableAnnotation: `int(object.data.age) > 1`})
	plain := configMap(ns, "plain", "a")
	a.Set([]*work.Work{workOf("web", "1", definition(group), one, settings, plain, secret)})
	a.available(key, "one", "its expression does not hold")
	a.available(key, "settings", "its expression cannot be evaluated: no such key: ready")

	a.available(key, "token", "its expression cannot be evaluated: ")
	a.until(key, "reported without the Secret", func(w protocol.WorkSeen) bool { return !strings.Contains(fmt.Sprint(w), "Y2FuYXJ5") })

	a.sent.Reset()
	_, err = gadgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"phase":"Running"}}`), metav1.PatchOptions{})
	noError(t, err)
	noError(t, situation{a, ns, "settings"}.edit(ctx, `{"data":{"ready":"yes"}}`))
	a.available(key, "one", "available")
	a.available(key, "settings", "available")
	// Objects that others have written are read once, to compare their values; there are no
	// other requests.
	read := map[string]bool{}
	for _, request := range a.sent.Requests(fleet.Watches, fleet.Probes) {
		text := fmt.Sprint(request)
		edited := strings.HasPrefix(text, "GET ") && (strings.Contains(text, "/gadgets/one ") || strings.Contains(text, "/configmaps/settings "))
		if !edited || read[text] {
			t.Errorf("it asked: %s", text)
		}
		read[text] = true
	}
	_, err = gadgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"phase":"Broken"}}`), metav1.PatchOptions{})
	noError(t, err)
	a.available(key, "one", "its expression does not hold")

	// A kind of which only metadata were watched so far is now watched with complete objects.
	role := annotated(manifest("account", map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "robot", "namespace": ns},
	}), nil)
	a.Set([]*work.Work{workOf("web", "2", definition(group), settings, plain, role)})
	a.available(key, "robot", "available")
	asking := annotated(role, map[string]string{api.AvailableAnnotation: `size(object.?secrets.orValue([])) > 0`})
	a.Set([]*work.Work{workOf("web", "3", definition(group), settings, plain, asking)})
	a.available(key, "robot", "its expression does not hold")
	_, err = a.client.CoreV1().ServiceAccounts(ns).Patch(ctx, "robot", types.MergePatchType, []byte(`{"secrets":[{"name":"x"}]}`), metav1.PatchOptions{})
	noError(t, err)
	a.available(key, "robot", "available")
}

// An annotation that somebody sets on the live object is not evaluated as an expression, not
// even while drift is not reverted.
func TestAvailabilityExpressionOnTheLiveObjectIsIgnored(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	ready := map[string]string{api.AvailableAnnotation: `object.data.key == "ready"`}
	first, second := annotated(configMap(ns, "first", "a"), ready), annotated(configMap(ns, "second", "a"), ready)
	a.Set([]*work.Work{workOf("web", "1", first, second)})
	a.available(key, "first", "its expression does not hold")
	a.available(key, "second", "its expression does not hold")

	suspended := workOf("web", "1", first, second)
	suspended.Suspended = "by a test"
	a.Set([]*work.Work{suspended})
	noError(t, situation{a, ns, "first"}.edit(ctx, `{"metadata":{"annotations":{"`+api.AvailableAnnotation+`":"true"}}}`))
	noError(t, situation{a, ns, "second"}.edit(ctx, `{"data":{"key":"ready"}}`))
	unavailable := func(w protocol.WorkSeen) string {
		var names []string
		for _, e := range w.Exceptions {
			if !e.Available.OK {
				names = append(names, e.ID.Name)
			}
		}
		return strings.Join(names, " ")
	}
	a.until(key, "the second is available, the first is not", func(w protocol.WorkSeen) bool { return unavailable(w) == "first" })
}

// An object that asks to be kept is released when it is no longer wanted, and the rest is
// deleted.
func TestRetainedObjectIsReleased(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	kept := annotated(configMap(ns, "kept", "a"), map[string]string{api.PruneAnnotation: api.PruneDisabled})
	a.Set([]*work.Work{workOf("web", "1", kept, configMap(ns, "gone", "a"), configMap(ns, "stays", "a"))})
	a.applied(key, "1")
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "stays", "a"))})
	a.eventually("deleted", func() (bool, error) {
		_, err := a.get(ns, "gone")
		return apierrors.IsNotFound(err), err
	})
	var cm *corev1.ConfigMap
	a.eventually("released", func() (bool, error) {
		var err error
		cm, err = a.get(ns, "kept")
		return err == nil && cm.Labels[api.ManagedByLabel] == "", err
	})
	for _, e := range cm.ManagedFields {
		if e.Manager == api.FieldManager {
			t.Errorf("our field manager still owns %s", e.FieldsV1)
		}
	}
	if cm.Data["key"] != "a" {
		t.Errorf("it holds %v", cm.Data)
	}
	a.Set([]*work.Work{workOf("web", "3", annotated(configMap(ns, "stays", "a"), map[string]string{api.PruneAnnotation: api.PruneDisabled}))})
	a.applied(key, "3")
	a.Set([]*work.Work{{Placement: key, Remove: true, AllowDelete: true}})
	a.until(key, "removed", func(w protocol.WorkSeen) bool { return w.Removed })
	if _, err := a.client.CoreV1().ConfigMaps(ns).Get(ctx, "stays", metav1.GetOptions{}); err != nil {
		t.Errorf("with its placement: %v", err)
	}
}

// Objects that ask to be kept are not deleted, so they do not count for the limit of deletions;
// neither do objects that somebody has deleted already. That also holds for an agent that has
// only just started.
func TestRetainedObjectsDelayNoDeletion(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(cfg *member.Config) { cfg.DeletionLimit = member.DeletionLimit{Percent: 20, Objects: 2} })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	ms := []*work.Manifest{configMap(ns, "stays", "a"), configMap(ns, "goes", "a"), configMap(ns, "gone", "a")}
	for _, name := range []string{"kept-1", "kept-2", "kept-3"} {
		ms = append(ms, annotated(configMap(ns, name, "a"), map[string]string{api.PruneAnnotation: api.PruneDisabled}))
	}
	a.Set([]*work.Work{workOf("web", "1", ms...)})
	a.applied(key, "1")
	a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })
	a.stop()
	if err := a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.Set([]*work.Work{workOf("web", "2", ms[:1]...)})
	if seen := a.until(key, "reported", func(w protocol.WorkSeen) bool { return w.Revision.Hash == "2" && w.Done }); len(seen.Unusual().BlockedDeletions) > 0 {
		t.Errorf("held: %v", seen.Unusual().BlockedDeletions)
	}
	a.eventually("deleted, and the others released", func() (bool, error) {
		_, err := a.get(ns, "goes")
		list, listed := a.client.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: api.ManagedByLabel})
		return apierrors.IsNotFound(err) && listed == nil && len(list.Items) == 1, err
	})
	for _, name := range []string{"kept-1", "kept-2", "kept-3"} {
		if _, err := a.get(ns, name); err != nil {
			t.Error(err)
		}
	}
}
