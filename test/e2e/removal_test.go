package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// finalizeNamespace removes a deleted namespace, as the namespace controller, which does not run here,
// would do.
func finalizeNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	namespaces := client.CoreV1().Namespaces()
	ns, err := namespaces.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(context.Background(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A placement is removed when all of its objects are gone: objects that were deleted and still
// exist, because of finalizers, are named and waited for, also after a restart, and deleted
// only once.
func TestRemovedPlacementIsReportedUntilItsObjectsAreGone(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "held", "a"), configMap(ns, "plain", "a"))})
	a.applied(key, "1")
	finalizers := func(patch string) {
		t.Helper()
		_, err := a.client.CoreV1().ConfigMaps(ns).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+patch+`}}`), metav1.PatchOptions{FieldManager: "theirs"})
		noError(t, err)
	}
	finalizers(`["example.com/backup"]`)
	waits := func(w protocol.WorkSeen) bool {
		return !w.Removed && slices.Equal(w.Unusual().Lingering, []api.ID{{Kind: "ConfigMap", Namespace: ns, Name: "held"}})
	}
	gone := []*work.Work{{Placement: key, Remove: true, AllowDelete: true}}
	a.Set(gone)
	a.until(key, "waiting", waits)
	a.eventually("the rest is gone", func() (bool, error) {
		_, err := a.get(ns, "plain")
		return err != nil, nil
	})
	a.Set(gone)
	a.until(key, "waiting still", waits)
	if n := a.countRequests(http.MethodDelete, "held"); n != 1 {
		t.Errorf("deleted %d times", n)
	}
	a.stop()
	a.start()
	a.Set(gone)
	a.until(key, "waiting after a restart", waits)
	if written := a.writes(); len(written) > 0 || len(a.inventory()) != 1 {
		t.Errorf("after a restart: %v; inventories: %d", written, len(a.inventory()))
	}
	finalizers("null")
	a.until(key, "removed", func(w protocol.WorkSeen) bool { return w.Removed && len(w.Unusual().Lingering) == 0 })
	if len(a.inventory()) != 0 {
		t.Error("the inventory is still there")
	}
}

// An object that was deleted with its placement and is wanted again before it is gone is
// created again afterwards. That is not reported as drift, also after a restart, and until then
// the placement is not reported as applied.
func TestPlacementRestoredBeforeItsObjectsAreGone(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%t", restarted), func(t *testing.T) {
			a := newAgent(t)
			key, name := api.PlacementKey{Name: "web"}, a.fleet+"-back"
			works := []*work.Work{workOf("web", "1", namespaceOf(name), configMap(name, "one", "a"))}
			a.Set(works)
			a.applied(key, "1")
			a.Set([]*work.Work{{Placement: key, Remove: true, AllowDelete: true}})
			a.until(key, "waiting", func(w protocol.WorkSeen) bool { return len(w.Unusual().Lingering) > 0 })
			if restarted {
				a.stop()
				a.start()
			}
			a.Set(works)
			a.until(key, "not applied", func(w protocol.WorkSeen) bool {
				return slices.ContainsFunc(w.Exceptions, func(s protocol.ObjectState) bool {
					return s.ID.Kind == "Namespace" && !s.Applied.OK && strings.Contains(s.Applied.Message(), "it is created anew once it is gone")
				})
			})
			finalizeNamespace(t, a.client, name)
			a.until(key, "there again", func(w protocol.WorkSeen) bool { return w.Done && len(w.Exceptions) == 0 })
			if _, err := a.get(name, "one"); err != nil {
				t.Error(err)
			}
			if last := a.until(key, "reported", func(protocol.WorkSeen) bool { return true }); len(last.Unusual().Drifts) > 0 {
				t.Errorf("it is reported as drift: %+v", last.Unusual().Drifts)
			}
		})
	}
}
