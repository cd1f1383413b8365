package member_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// withValue makes the work want its ConfigMap with a value, or no ConfigMap if the value is empty.
func (a *watched) withValue(value string) []*work.Work {
	a.content, a.hash = a.configMap(), "h-"+value
	a.content.Object["data"] = map[string]any{"key": value}
	w := a.work()
	if w.AllowDelete = true; value == "" {
		w.Manifests = nil
	}
	return []*work.Work{w}
}

// A cluster that is restored to an earlier state while the agent runs gets the desired state again, and
// that is reported once: what has changed since the backup, what was created, and what was deleted.
func TestRestoredClusterIsRepaired(t *testing.T) {
	for name, values := range map[string][2]string{"changed": {"one", "two"}, "created": {"", "two"}, "deleted": {"one", ""}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := simulated.New(simulated.Options{}).Cluster("east")
				a := &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, Transport: cluster.RoundTripper(), QPS: -1}}
				a.start()
				defer a.stop()
				a.Set(a.withValue(values[0]))
				synctest.Wait()
				backup := cluster.Snapshot()
				a.Set(a.withValue(values[1]))
				synctest.Wait()
				time.Sleep(2 * time.Minute) // it is observed
				expectValue(t, cluster.Config(), values[1])
				cluster.Restore(backup)
				expectValue(t, cluster.Config(), values[0])
				time.Sleep(20 * time.Second)
				expectValue(t, cluster.Config(), values[1])
				time.Sleep(5 * time.Minute)
				if n := len(a.restores()); n != 1 {
					t.Errorf("reported %d restores: %v", n, a.restores())
				}
			})
		})
	}
}

// A restore is noticed although the versions of the cluster have reached again what was known, by other
// writes, before a probe could compare them.
func TestRestoreThatHasCaughtUpIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := simulated.New(simulated.Options{}).Cluster("east")
		a := &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, Transport: cluster.RoundTripper(), QPS: -1}}
		a.start()
		defer a.stop()
		a.Set(a.withValue("one"))
		synctest.Wait()
		backup := cluster.Snapshot()
		a.Set(a.withValue("two"))
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		cluster.Restore(backup)
		for i := range 50 {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("other-", i)}}}
			if _, err := mapsOf(t, cluster.Config()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		expectValue(t, cluster.Config(), "two")
		if n := len(a.restores()); n != 1 {
			t.Errorf("reported %d restores: %v", n, a.restores())
		}
	})
}

// What was deleted or set back in our namespace while no agent ran does not keep objects from being
// deleted that Git has deleted since.
func TestUnlistedObjectsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := simulated.New(simulated.Options{}).Cluster("east")
		a := &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, Transport: cluster.RoundTripper(), QPS: -1}}
		a.start()
		a.Set(a.withValue("one"))
		synctest.Wait()
		a.stop()
		if a.seen.Inventory == 0 {
			t.Fatal("the serial number of the inventory is not reported")
		}
		copied := get(t, mapsOf(t, cluster.Config()))
		copied.SetName("copied") // as a controller does, with the labels of what it copies
		copied.SetUID("")
		copied.SetResourceVersion("")
		copied.SetManagedFields(nil)
		if _, err := mapsOf(t, cluster.Config()).Create(t.Context(), copied, metav1.CreateOptions{FieldManager: "copier"}); err != nil {
			t.Fatal(err)
		}
		elsewhere := inNamespace(t, cluster.Config(), metav1.NamespaceSystem) // as a backup tool does, with all metadata
		copied = get(t, mapsOf(t, cluster.Config()))
		copied.SetNamespace(metav1.NamespaceSystem)
		copied.SetUID("")
		copied.SetResourceVersion("")
		copied.SetManagedFields(nil)
		if _, err := elsewhere.Apply(t.Context(), "mutated", copied, metav1.ApplyOptions{FieldManager: api.FieldManager, Force: true}); err != nil {
			t.Fatal(err)
		}
		deleteInventories(t, cluster.Config())
		a.record = protocol.MemberRecord{Inventories: map[api.PlacementKey]uint64{a.seen.Placement: a.seen.Inventory}}
		first := a.withValue("")
		stays := a.configMap()
		stays.SetName("stays")
		first[0].Manifests = []*work.Manifest{{Object: &api.Object{ID: api.IDOf(stays), Content: stays, Hash: "h"}}}
		a.startWith(first)
		time.Sleep(20 * time.Second)
		expectValue(t, cluster.Config(), "")
		if _, err := mapsOf(t, cluster.Config()).Get(t.Context(), "copied", metav1.GetOptions{}); err != nil {
			t.Errorf("an object that was not applied: %v", err)
		}
		if _, err := elsewhere.Get(t.Context(), "mutated", metav1.GetOptions{}); err != nil {
			t.Errorf("a copy in a namespace in which the fleet has nothing: %v", err)
		}
		a.stop()
		if n := len(a.restores()); n != 1 {
			t.Errorf("reported %d restores: %v", n, a.restores())
		}
	})
}

// A restore is reported once for an inventory that stays missing, as it does while its placement is
// suspended or has no objects.
func TestMissingInventoriesAreReportedOnce(t *testing.T) {
	tests := map[string]struct {
		suspended, value string
		serial           uint64 // that is reported in the end
		searches         int64
	}{
		"suspended": {"by a person", "one", 7, 1},
		"empty":     {"", "", 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := simulated.New(simulated.Options{}).Cluster("east")
				next := cluster.RoundTripper()
				var searches atomic.Int64
				var down atomic.Bool
				a := &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/api/v1/secrets" && r.URL.Query().Get("watch") == "" {
						searches.Add(1)
					}
					if down.Load() {
						return nil, errors.New("down")
					}
					return next.RoundTrip(r)
				})}}
				a.record = protocol.MemberRecord{Inventories: map[api.PlacementKey]uint64{{Name: "web"}: 7}}
				works := a.withValue(test.value)
				works[0].Suspended = test.suspended
				a.startWith(works)
				defer a.stop()
				time.Sleep(20 * time.Minute)
				for range 2 {
					down.Store(true) // so that a probe suspects a restore
					time.Sleep(time.Minute)
					down.Store(false)
					time.Sleep(20 * time.Minute)
				}
				if n := len(a.restores()); n != 1 {
					t.Errorf("reported %d restores: %v", n, a.restores())
				}
				if searches.Load() != test.searches || a.seen.Inventory != test.serial {
					t.Errorf("searched %d times, want %d; the serial number is %d, want %d", searches.Load(), test.searches, a.seen.Inventory, test.serial)
				}
			})
		})
	}
}

// A kind that is not answered for while objects are searched that no inventory lists is searched again
// with the next works, until there is an answer.
func TestUnlistedObjectsAreSearchedUntilAllKindsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := simulated.New(simulated.Options{}).Cluster("east")
		searches := 0
		next := cluster.RoundTripper()
		a := &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/api/v1/secrets" || r.URL.Query().Get("labelSelector") == "" {
				return next.RoundTrip(r)
			}
			if searches++; searches == 1 {
				return nil, errors.New("no answer")
			}
			return next.RoundTrip(r)
		})}}
		a.record = protocol.MemberRecord{Inventories: map[api.PlacementKey]uint64{{Name: "web"}: 7}}
		a.startWith(a.withValue("one"))
		defer a.stop()
		time.Sleep(20 * time.Second)
		for i, want := range []int{1, 2, 2} {
			if searches != want {
				t.Errorf("works %d: the Secrets were listed %d times, want %d", i, searches, want)
			}
			time.Sleep(10 * time.Minute)
			a.Set(a.withValue(fmt.Sprint("next-", i)))
			time.Sleep(20 * time.Second)
		}
	})
}

func deleteInventories(t *testing.T, config *rest.Config) {
	t.Helper()
	maps := inNamespace(t, config, api.Namespace)
	all, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if err := maps.Delete(t.Context(), all.Items[i].GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// expectValue checks the value of the ConfigMap; empty if it must not exist.
func expectValue(t *testing.T, config *rest.Config, want string) {
	t.Helper()
	live, err := mapsOf(t, config).Get(t.Context(), "mutated", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = &unstructured.Unstructured{Object: map[string]any{}}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := value(live); got != want {
		t.Errorf("the ConfigMap has %q, want %q", got, want)
	}
}
