package reconciler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// snapshotOf returns a commit that declares some clusters.
func snapshotOf(clusters ...string) *hub.Snapshot {
	s := &hub.Snapshot{}
	for _, name := range clusters {
		s.Clusters = append(s.Clusters, &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	return s
}

// resolveRenames resolves renames as a turn does.
func (f *dispatchedFleet) resolveRenames() (resolved bool) {
	waiting := f.agents.resolveRenames(f.commits.inForce, f.now.Sub(f.commits.source.Since), f.ledger)
	if waiting != nil {
		f.dispatch(f.ctx, waiting)
	}
	return waiting == nil
}

// holds makes a placement hold a cluster with an identity.
func (f *dispatchedFleet) holds(cluster, uid string) {
	f.ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: f.now, Healthy: true, UID: uid})
	f.ledger.SetPlacement(web, ledger.Placement{})
	f.ledger.Bind(web, placement.Binding{Cluster: cluster, Assigned: placement.Revision{Hash: "v1"}})
}

// A commit that renames a member is planned once the new name is known to be the same cluster. The
// cluster is not released, and keeps what it has.
func TestARenamedMemberIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.holds("east", "1")
		f.commits.inForce, f.commits.source.Since = snapshotOf("east-2"), f.now
		if f.resolveRenames() {
			t.Error("the commit is planned before the new member has answered")
		}
		synctest.Wait()
		if calls := append(f.calls, f.begun()...); !slices.Equal(calls, []string{"start east-2", "run east-2"}) {
			t.Errorf("calls %q", calls)
		}
		f.ledger.Fold(protocol.ClusterSeen{Cluster: "east-2", At: f.now, Healthy: true, UID: "1"})
		if !f.resolveRenames() || f.ledger.Cluster("east") != nil || f.ledger.SameAs("east-2") != "" {
			t.Error("the member was not renamed")
		}
		if e := f.ledger.Placement(web).Entry("east-2"); e == nil || e.Binding.Assigned.Hash != "v1" {
			t.Errorf("the cluster has %+v", e)
		}
	})
}

// The agent under the former name has ended before the cluster has its new name.
func TestARenameWaitsForTheFormerAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.stuck = make(chan struct{})
		f.holds("east", "1")
		f.ledger.Fold(protocol.ClusterSeen{Cluster: "east-2", At: f.now.Add(time.Second), Healthy: true, UID: "1"})
		f.commits.inForce = snapshotOf("east", "east-2")
		f.agents.start(f.ctx, f.commits.inForce.Clusters[0], protocol.MemberRecord{})
		if !f.resolveRenames() || f.ledger.SameAs("east-2") != "east" {
			t.Error("a declared member lost its cluster")
		}
		f.commits.inForce = snapshotOf("east-2")
		for range 2 {
			if f.resolveRenames() || f.ledger.SameAs("east-2") != "east" {
				t.Error("two agents are at work")
			}
		}
		close(f.stuck)
		synctest.Wait()
		if !f.resolveRenames() || f.ledger.SameAs("east-2") != "" {
			t.Error("the member was not renamed")
		}
	})
}

// What is no rename is planned: a new member that does not answer in time, is another cluster, or has
// a cluster of its own since before.
func TestWhatIsNoRenameIsPlanned(t *testing.T) {
	for name, test := range map[string]struct {
		declared []string
		prepare  func(*dispatchedFleet)
	}{
		"it does not answer in time": {[]string{"west"}, func(f *dispatchedFleet) { f.commits.source.Since = f.now.Add(-identifyTimeout) }},
		"it cannot be reached": {[]string{"west"}, func(f *dispatchedFleet) {
			f.ledger.Fold(protocol.ClusterSeen{Cluster: "west", At: f.now, Error: "refused"})
		}},
		"another cluster": {[]string{"west"}, func(f *dispatchedFleet) {
			f.ledger.Fold(protocol.ClusterSeen{Cluster: "west", At: f.now, Healthy: true, UID: "2"})
		}},
		"it holds something": {[]string{"west"}, func(f *dispatchedFleet) { f.holds("west", "1") }},
		"nothing is removed": {[]string{"east", "west"}, func(*dispatchedFleet) {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDispatchedFleet(t)
			f.holds("east", "1")
			f.commits.inForce, f.commits.source.Since = snapshotOf(test.declared...), f.now
			test.prepare(f)
			if !f.resolveRenames() || f.ledger.Cluster("east") == nil {
				t.Error("it counts as a rename")
			}
		})
	}
}

// While a member may be the new name of one that was removed, that is not released.
func TestReleaseWaitsForMembersThatHaveNotAnswered(t *testing.T) {
	f := newDispatchedFleet(t)
	f.holds("east", "1")
	f.commits.inForce = snapshotOf("west")
	if !f.agents.mayBeRenamed("east", f.commits.inForce, f.ledger, f.now) || f.agents.mayBeRenamed("east", f.commits.inForce, f.ledger, f.now.Add(renameGrace)) {
		t.Error("it waits for ever, or not at all")
	}
	f.ledger.Fold(protocol.ClusterSeen{Cluster: "west", At: f.now, Healthy: true, UID: "2"})
	if f.agents.mayBeRenamed("east", f.commits.inForce, f.ledger, f.now) {
		t.Error("it waits although all members are known")
	}
}

// A member that is declared again before it was released gets a new agent. That reports what is on the
// cluster, since its placements do not hold it any more.
func TestAMemberThatIsDeclaredAgainReportsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.holds("east", "1")
		dispatched := func(left []string, declared *hub.Snapshot, want ...string) {
			t.Helper()
			f.commits.inForce = declared
			f.dispatched(&plan.Plan{Members: declared.Clusters, Left: left}, want...)
		}
		dispatched(nil, snapshotOf("east"), "start east", "run east")
		dispatched([]string{"east"}, snapshotOf("west"), "start west", "run west")
		dispatched(nil, snapshotOf("east", "west"), "start east", "run east")
		dispatched(nil, snapshotOf("east", "west"))
	})
}
