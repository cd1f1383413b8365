package e2e

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Held drift stays until Git has the change, and then nothing but the inventory is written; or
// until it is to be reverted.
func TestHeldDriftIsAcceptedOrPutBack(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(c *member.Config) { c.DriftMode = api.DriftReport })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"))})
	a.applied(key, "1")
	one := situation{a, ns, "one"}
	heldAt := func(value string) protocol.Drift {
		t.Helper()
		return a.awaitDrift(key, "one", "held at "+value, func(d protocol.Drift) bool {
			return d.State == api.DriftHeld && len(d.Paths) == 1 && d.Paths[0].ValueInMember == value
		})
	}
	resolve := func(d protocol.Drift, r protocol.DriftDecision) {
		r.Fingerprint = protocol.Fingerprint(d.Paths, d.Digest)
		a.SetDriftDecisions(protocol.DriftDecisions{{Placement: key, ID: d.ID}: r})
	}
	live := func() string {
		t.Helper()
		cm, err := a.client.CoreV1().ConfigMaps(ns).Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["key"]
	}

	a.sent.Reset()
	noError(t, one.edit(ctx, `{"data":{"key":"b"}}`))
	d := heldAt("b")
	resolve(d, protocol.DriftDecision{Message: "offered as a pull request"})
	a.awaitDrift(key, "one", "told what is waited for", func(d protocol.Drift) bool { return d.Message == "offered as a pull request" })
	resolve(protocol.Drift{ID: d.ID}, protocol.DriftDecision{PutBack: true}) // with the ID of another change
	if seen := a.until(key, "applied", func(w protocol.WorkSeen) bool { return w.Applied() }); len(seen.Exceptions) != 1 || !seen.Exceptions[0].Applied.OK {
		t.Errorf("a held object does not count as applied: %+v", seen.Exceptions)
	}

	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	a.awaitDrift(key, "one", "accepted", func(d protocol.Drift) bool { return d.State == api.DriftEnded })
	a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-2"), nil })
	if objects, inventories := split(a.writes()); len(objects) > 0 || len(inventories) != 1 {
		t.Errorf("written: %v %v", objects, inventories)
	}

	// The member does not show by ownership what the same writer changes next.
	noError(t, one.edit(ctx, `{"data":{"key":"c"}}`))
	d = heldAt("c")
	a.stop()
	noError(t, one.edit(ctx, `{"data":{"key":"e"}}`)) // while gitfleet is not running, and the ledger is lost
	a.start()
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	heldAt("e")
	noError(t, one.edit(ctx, `{"data":{"key":"c"}}`))
	heldAt("c")
	a.stop()
	a.startWith(protocol.MemberRecord{Drifts: map[api.PlacementKey][]protocol.Drift{key: {d}}})
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	a.until(key, "all looked at", func(w protocol.WorkSeen) bool { return w.Done })
	heldAt("c")
	if got := live(); got != "c" {
		t.Errorf("after a restart it is %q", got)
	}
	resolve(d, protocol.DriftDecision{PutBack: true, Message: "the pull request was closed"})
	d = a.awaitDrift(key, "one", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired })
	if got := live(); got != "b" || d.Message != "the pull request was closed" {
		t.Errorf("reverted to %q: %s", got, d.Message)
	}

	if d.Count != 2 {
		t.Errorf("counted %d times", d.Count)
	}

	a.SetDriftDecisions(nil)
	noError(t, one.edit(ctx, `{"data":{"key":"c"}}`)) // the same change again is held again
	heldAt("c")
	noError(t, one.edit(ctx, `{"data":{"key":"b"}}`))
	a.awaitDrift(key, "one", "ended", func(d protocol.Drift) bool { return d.State == api.DriftEnded })

	noError(t, a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "one", metav1.DeleteOptions{}))
	a.awaitDrift(key, "one", "created anew", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Deleted })
}

// A deleted object stays deleted until it is to be restored, or until Git does not have it any
// more. Meanwhile it counts as applied and available.
func TestADeletedObjectIsHeld(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(c *member.Config) { c.DriftMode = api.DriftPropose })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	both := []*work.Work{workOf("web", "1", configMap(ns, "kept", "a"), configMap(ns, "one", "a"))}
	a.Set(both)
	a.applied(key, "1")
	objects := a.client.CoreV1().ConfigMaps(ns)
	deleted := func() protocol.Drift {
		t.Helper()
		noError(t, objects.Delete(ctx, "one", metav1.DeleteOptions{}))
		return a.awaitDrift(key, "one", "held", func(d protocol.Drift) bool { return d.State == api.DriftHeld && d.Deleted })
	}
	d := deleted()
	a.until(key, "applied and available", func(w protocol.WorkSeen) bool { return w.Applied() && w.Available() && len(w.Exceptions) == 0 })

	a.SetDriftDecisions(protocol.DriftDecisions{{Placement: key, ID: d.ID}: {Fingerprint: protocol.Fingerprint(nil, ""), PutBack: true, Message: "the pull request was closed"}})
	a.awaitDrift(key, "one", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Deleted })
	if _, err := objects.Get(ctx, "one", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	a.SetDriftDecisions(nil)
	d = deleted()
	a.stop()
	a.startWith(protocol.MemberRecord{Drifts: map[api.PlacementKey][]protocol.Drift{key: {d}}})
	a.Set(both)
	a.until(key, "all looked at", func(w protocol.WorkSeen) bool { return w.Done && w.Available() })
	if _, err := objects.Get(ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a restart: %v", err)
	}

	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "kept", "a"))})
	a.until(key, "given up", func(w protocol.WorkSeen) bool {
		return w.Revision.Hash == "2" && w.Done && len(w.Unusual().Drifts) == 0
	})
}

// The annotation of an object takes precedence over that of its placement, that over the one of
// the cluster, and that over the mode of the fleet. Held drift is reverted once its mode has
// ended.
func TestDriftModesOfObjectsAndPlacements(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	reverted := configMap(ns, "reverted", "a")
	reverted.Object.Content.SetAnnotations(map[string]string{api.DriftAnnotation: "revert"})
	cluster := ""
	placed := func(mode string) {
		w := workOf("web", "1", configMap(ns, "held", "a"), reverted)
		w.Drift, w.ClusterDrift = mode, cluster
		a.Set([]*work.Work{w})
	}
	placed("report")
	a.applied(key, "1")
	for _, name := range []string{"held", "reverted"} {
		noError(t, situation{a, ns, name}.edit(ctx, `{"data":{"key":"b"}}`))
	}
	a.awaitDrift(key, "reverted", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Rule == "" })
	a.awaitDrift(key, "held", "held", func(d protocol.Drift) bool { return d.State == api.DriftHeld && d.Rule == "report" })
	placed("propose until 2030-01-31T00:00:00Z")
	d := a.awaitDrift(key, "held", "held by another mode", func(d protocol.Drift) bool {
		return d.State == api.DriftHeld && d.Rule == "propose until 2030-01-31T00:00:00Z"
	})
	a.SetDriftDecisions(protocol.DriftDecisions{{Placement: key, ID: d.ID}: {Fingerprint: protocol.Fingerprint(d.Paths, d.Digest), CompareAgain: true}})
	placed("propose until 2020-01-31T00:00:00Z")
	a.awaitDrift(key, "held", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired })

	cluster = "report"
	placed("propose until 2020-01-31T00:00:00Z")
	a.applied(key, "1")
	noError(t, situation{a, ns, "held"}.edit(ctx, `{"data":{"key":"c"}}`))
	a.awaitDrift(key, "held", "held by the mode of the cluster", func(d protocol.Drift) bool { return d.State == api.DriftHeld && d.Rule == "report" })
}
