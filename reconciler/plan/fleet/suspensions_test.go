package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An object that is suspended on every cluster is suspended on those with suspensions of their own
// as well. The suspension on the cluster gives the reason, and the objects are sorted.
func TestSuspendedObjects(t *testing.T) {
	suspend := func(by, cluster, object string) ledger.Suspension {
		return ledger.Suspension{Subject: ledger.Subject{Cluster: cluster, Object: api.ID{Kind: "ConfigMap", Name: object}}, By: by}
	}
	l := ledger.New()
	for _, s := range []ledger.Suspension{suspend("alice", "", "b"), suspend("alice", "", "d"), suspend("bob", "east", "b"), suspend("bob", "east", "a")} {
		l.Suspend(s)
	}
	var r Suspensions
	r.Update(l, noon)
	for cluster, want := range map[string]string{
		"east": "a suspended by bob, b suspended by bob, d suspended by alice", "west": "b suspended by alice, d suspended by alice",
	} {
		var got []string
		for _, o := range r.ObjectsOn(cluster) {
			got = append(got, o.ID.Name+" "+o.Why)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", cluster, text, want)
		}
	}
}

// The reason of a suspension is that of the placement, then that of the placement on the cluster,
// then that of the cluster. Each change of the suspensions counts once, and the first end is the time
// of the next change.
func TestSuspensionReasons(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	l := ledger.New()
	var r Suspensions
	for i, step := range []struct {
		s    ledger.Suspension
		want string
		wake time.Time
	}{
		{ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "c", Until: noon.Add(2 * time.Hour)}, "suspended by c until 2026-11-20T14:00:00Z", noon.Add(2 * time.Hour)},
		{ledger.Suspension{Subject: ledger.Subject{Placement: web, Cluster: "east"}, By: "b"}, "suspended by b", noon.Add(2 * time.Hour)},
		{ledger.Suspension{Subject: ledger.Subject{Placement: web}, By: "a", Until: noon.Add(time.Hour)}, "suspended by a until 2026-11-20T13:00:00Z", noon.Add(time.Hour)},
	} {
		l.Suspend(step.s)
		for range 2 {
			if wake := r.Update(l, noon); !wake.Equal(step.wake) || r.Version != uint64(i+1) {
				t.Errorf("%d: next change at %s, version %d", i, wake, r.Version)
			}
		}
		if got := r.Of(web, "east").Why; got != step.want {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
	if r.Update(l, noon.Add(time.Hour)); r.Of(web, "west").Why != "" || r.Of(web, "east").Why != "suspended by b" {
		t.Errorf("after the first has ended: %q and %q", r.Of(web, "west").Why, r.Of(web, "east").Why)
	}
	if got := r.NotSuspended([]string{"east", "west"}); !slices.Equal(got, []string{"west"}) {
		t.Errorf("not suspended are %v", got)
	}
}
