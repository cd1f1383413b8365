package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A dispatchedFleet dispatches plans to members that record the calls.
type dispatchedFleet struct {
	*historyScene
	ctx   context.Context
	calls []string
	// runs are the members that have begun to run, in goroutines of their own.
	runs struct {
		sync.Mutex
		calls []string
	}
	left chan struct{}
	// report is the function with which the newest member reports.
	report func(protocol.Observation)
	// stuck, if not nil, keeps members from ending until it is closed.
	stuck chan struct{}
}

func newDispatchedFleet(t *testing.T) *dispatchedFleet {
	ctx, cancel := context.WithCancel(t.Context())
	f := &dispatchedFleet{historyScene: newHistoryScene(t), ctx: ctx, left: make(chan struct{})}
	t.Cleanup(func() {
		cancel()
		f.running.Wait()
	})
	f.cfg.Now = func() time.Time { return f.now }
	f.cfg.Member = func(c *hub.Cluster, report func(protocol.Observation)) Member {
		f.call("start %s %s", c.Name, credentials(c))
		f.report = report
		return &recordedMember{f, c.Name}
	}
	return f
}

// newStoredFleet is newDispatchedFleet with a ledger in a file.
func newStoredFleet(t *testing.T) *dispatchedFleet {
	store, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := newDispatchedFleet(t)
	f.cfg.Store = store
	return f
}

func (f *dispatchedFleet) call(format string, args ...any) {
	f.calls = append(f.calls, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// dispatched dispatches a plan, and compares the calls with those that are expected.
func (f *dispatchedFleet) dispatched(p *plan.Plan, want ...string) {
	f.t.Helper()
	if !f.dispatch(f.ctx, p) {
		f.call("not saved")
	}
	synctest.Wait()
	if calls := append(f.calls, f.begun()...); !slices.Equal(calls, want) {
		f.t.Errorf("calls %q, want %q", calls, want)
	}
	f.calls = nil
}

// begun returns the calls of Run since the last time.
func (f *dispatchedFleet) begun() []string {
	f.runs.Lock()
	defer f.runs.Unlock()
	calls := f.runs.calls
	f.runs.calls = nil
	return calls
}

type recordedMember struct {
	f    *dispatchedFleet
	name string
}

func (m *recordedMember) SetMembership(now protocol.Membership) {
	m.f.call("fleet %s %s %d", m.name, now.Name, len(now.Adopted))
}
func (m *recordedMember) Set(works []*work.Work) { m.f.call("set %s %d", m.name, len(works)) }
func (m *recordedMember) Leave() <-chan struct{} {
	m.f.call("leave %s", m.name)
	return m.f.left
}
func (m *recordedMember) Check() { m.f.call("check %s", m.name) }
func (m *recordedMember) SetRecord(r protocol.MemberRecord) {
	if len(r.Drifts) > 0 {
		m.f.call("drifts %s %d", m.name, len(r.Drifts))
	}
}
func (m *recordedMember) SetDriftDecisions(all protocol.DriftDecisions) {
	m.f.call("decisions %s %d", m.name, len(all))
}
func (m *recordedMember) Run(ctx context.Context) {
	m.f.runs.Lock()
	m.f.runs.calls = append(m.f.runs.calls, "run "+m.name)
	m.f.runs.Unlock()
	<-ctx.Done()
	if m.f.stuck != nil {
		<-m.f.stuck
	}
}

// fleetPlan returns a plan for one cluster with works of some revisions; none means that nothing was
// planned.
func fleetPlan(context string, revisions ...string) *plan.Plan {
	c := &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{api.ContextAnnotation: context}}}}
	p := &plan.Plan{Members: []*hub.Cluster{c}}
	if len(revisions) > 0 {
		p.Works = map[string][]*work.Work{"east": {}}
	}
	for _, hash := range revisions {
		p.Works["east"] = append(p.Works["east"], &work.Work{Placement: web, Revision: placement.Revision{Hash: hash}})
	}
	return p
}

func TestWorksAreSentWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.ledger.SetFleet(protocol.Fleet{Name: "prod"})
		f.dispatched(fleetPlan("a"), "start east a", "run east")
		f.dispatched(fleetPlan("a", "v1"), "fleet east prod 0", "set east 1")
		f.dispatched(fleetPlan("a", "v1"))
		f.dispatched(fleetPlan("a", "v2"), "set east 1")
		none := fleetPlan("a")
		none.Works = map[string][]*work.Work{}
		f.dispatched(none, "set east 0")
		f.agents.driftDecisions = map[string]protocol.DriftDecisions{"east": {{Placement: web}: {PutBack: true}}}
		f.dispatched(none, "decisions east 1")
		f.dispatched(none)
		f.ledger.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs"})
		f.dispatched(none, "fleet east prod 1")
	})
}

// A member that has nothing to do is sent its empty works once, since it deletes nothing before.
func TestEmptyWorksAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		empty := fleetPlan("a")
		empty.Works = map[string][]*work.Work{}
		f.dispatched(empty, "start east a", "set east 0", "run east")
		f.dispatched(empty)
	})
}

func TestNoWorksAreSentBeforeTheLedgerIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.ledger.Fold(protocol.ClusterSeen{Cluster: "east", At: f.now}) // not urgent, and saved all the same
		f.cfg.Store = fullStore{}
		f.dispatched(fleetPlan("a", "v1"), "start east a", "not saved", "run east")
		f.cfg.Store = ledger.Memory()
		f.dispatched(fleetPlan("a", "v1"), "set east 1")
		if f.ledger.Unsaved() {
			t.Error("the works were sent before the ledger was saved")
		}
	})
}

// A cluster of a large fleet gets its works once its entries are saved, which may take several saves. If one fails, the next turn
// plans again.
func TestWorksWaitForTheEntriesOfTheirCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStoredFleet(t)
		f.ledger.SetPlacement(web, ledger.Placement{})
		for i := range 2000 { // which are saved before east
			f.ledger.Bind(web, placement.Binding{Cluster: fmt.Sprintf("c%04d", i)})
		}
		f.ledger.Bind(web, placement.Binding{Cluster: "east", Assigned: placement.Revision{Hash: "v1"}})
		p := fleetPlan("a", "v1")
		f.dispatched(p, "start east a", "run east")
		store := f.cfg.Store
		f.cfg.Store = fullStore{}
		if f.sendUnsent(f.ctx, f.now); f.agents.unsent != nil || !f.due.Equal(f.now.Add(time.Second)) {
			t.Errorf("without a save: waits %v, due %s", f.agents.unsent, f.due)
		}
		f.cfg.Store = store
		f.dispatched(p)
		f.sendUnsent(f.ctx, f.now)
		if f.sendUnsent(f.ctx, f.now); !slices.Equal(f.calls, []string{"set east 1"}) || f.agents.unsent != nil || f.ledger.Unsaved() {
			t.Errorf("once it is saved: %q, waits %v", f.calls, f.agents.unsent)
		}
	})
}

// Very many observations are saved in parts, one each turn, and works are sent after the last one: a crash before that could take back
// observations that the works follow from.
func TestWorksWaitForAllObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStoredFleet(t)
		for i := range 3000 {
			f.ledger.Fold(protocol.ClusterSeen{Cluster: fmt.Sprintf("c%04d", i), At: f.now})
		}
		f.dispatched(fleetPlan("a", "v1"), "start east a", "run east")
		for turns := 1; f.agents.unsent != nil; turns++ {
			if len(f.calls) > 0 || turns > 2 {
				t.Fatalf("after %d turns: %q", turns, f.calls)
			}
			f.sendUnsent(f.ctx, f.now)
		}
		if !slices.Equal(f.calls, []string{"set east 1"}) || f.ledger.Unsaved() {
			t.Errorf("once everything is saved: %q, unsaved %t", f.calls, f.ledger.Unsaved())
		}
	})
}

// If the ledger had other content for a while that was not saved, it has forgotten how far the content that was sent has come. The
// member reports that again, also if it is sent nothing for it.
func TestContentThatReplacesWithheldContentIsReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHistoryScene(t)
		commit := func(hash, data string) {
			t.Helper()
			c.commit(hash, fmt.Sprintf(strings.Replace(small, "unavailable 1", "unavailable 9", 1), data))
		}
		commit("c1", "a")
		c.seen("east", "")
		c.seen("west", "")
		c.turns(1)
		c.turn()
		first := c.commits.inForce
		c.cfg.Now, c.cfg.Source, c.cfg.Publish = func() time.Time { return c.now }, quietSource{}, func(*status.Report) {}
		f := &dispatchedFleet{historyScene: c}
		c.cfg.Member = func(cluster *hub.Cluster, _ func(protocol.Observation)) Member {
			return &recordedMember{f, cluster.Name}
		}
		turn := func(want ...string) {
			t.Helper()
			c.now, c.due = c.now.Add(time.Second), time.Time{}
			c.Reconciler.turn(t.Context())
			if !slices.Equal(f.calls, want) {
				t.Errorf("calls %q, want %q", f.calls, want)
			}
			f.calls = nil
		}
		turn("set east 1", "set west 1")
		commit("c2", "b")
		store := c.cfg.Store
		c.cfg.Store = fullStore{}
		turn()
		c.cfg.Store = store
		c.commits.inForce = first
		turn("check east", "check west")
		turn()

		commit("c3", "c")
		c.cfg.Store = fullStore{}
		turn()
		turn()
		c.cfg.Store = store
		turn("set east 1", "set west 1")
	})
}

// Works of more and more placements, which wait for a save while a large fleet is filled, make no member check what it has.
func TestWithheldAdditionsAreNotChecked(t *testing.T) {
	f := &dispatchedFleet{}
	of := func(name, revision string) *work.Work {
		return &work.Work{Placement: api.PlacementKey{Name: name}, Revision: placement.Revision{Hash: revision}}
	}
	a, b, c := of("a", "1"), of("b", "1"), of("c", "1")
	m := &runningMember{member: &recordedMember{f, "east"}, sent: true, works: []*work.Work{a}}
	sent := func(works ...*work.Work) {
		before := m.works
		m.works = works
		m.release(before)
	}
	m.withhold([]*work.Work{a, b})
	m.withhold([]*work.Work{a, b, c})
	sent(a, b, c)
	m.withhold([]*work.Work{of("a", "2"), b, c})
	sent(of("a", "2"), b, c)
	if len(f.calls) > 0 {
		t.Errorf("calls %q, want none", f.calls)
	}
	m.withhold([]*work.Work{of("a", "3"), b, c})
	sent(of("a", "2"), b)
	if want := []string{"check east"}; !slices.Equal(f.calls, want) {
		t.Errorf("calls %q, want %q", f.calls, want)
	}
}

// With other credentials there is a new agent. It begins once the previous one has ended, whose
// observations do not count any more.
func TestNewCredentialsStartANewAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.stuck = make(chan struct{})
		f.dispatched(fleetPlan("a", "v1"), "start east a", "set east 1", "run east")
		former := f.report
		f.dispatched(fleetPlan("b", "v1"), "start east b", "set east 1")
		former(protocol.ClusterSeen{Cluster: "east", At: f.now})
		if n := len(f.inbox.drain().seen); n != 0 {
			t.Errorf("%d observations of the former agent", n)
		}
		f.report(protocol.ClusterSeen{Cluster: "east", At: f.now})
		if n := len(f.inbox.drain().seen); n != 1 {
			t.Errorf("%d observations of the new agent", n)
		}
		close(f.stuck)
		synctest.Wait()
		if calls := f.begun(); !slices.Equal(calls, []string{"run east"}) {
			t.Errorf("once the former agent has ended: %q", calls)
		}
	})
}

func TestAClusterThatIsNotDeclaredHasNoAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.dispatched(fleetPlan("a", "v1"), "start east a", "set east 1", "run east")
		f.dispatched(&plan.Plan{Works: map[string][]*work.Work{}})
		if len(f.agents.members) > 0 {
			t.Errorf("members %v", f.agents.members)
		}
	})
}

// A cluster that leaves the fleet is released once, and forgotten when that is done or after
// offboardTimeout.
func TestOffboarding(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(*dispatchedFleet)
		tells string
	}{
		"released":      {func(f *dispatchedFleet) { close(f.left) }, ""},
		"not answering": {func(f *dispatchedFleet) { f.now = f.now.Add(offboardTimeout) }, " | it did not answer, so that labels, annotations and inventories of gitfleet stay there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newDispatchedFleet(t)
				f.ledger.SetFleet(protocol.Fleet{Name: "prod"})
				f.seen("east", "")
				f.text.Reset()
				left := &plan.Plan{Left: []string{"east"}, Works: map[string][]*work.Work{}}
				f.dispatched(left, "start east", "fleet east prod 0", "leave east", "run east")
				f.now = f.now.Add(offboardTimeout - time.Nanosecond)
				f.dispatched(left)
				if f.ledger.Cluster("east") == nil {
					t.Error("forgotten too early")
				}
				f.now = f.now.Add(-offboardTimeout + time.Nanosecond)
				test.end(f)
				f.dispatched(left)
				if f.ledger.Cluster("east") != nil || len(f.agents.members) > 0 {
					t.Errorf("not forgotten: %v, %v", f.ledger.Cluster("east"), f.agents.members)
				}
				f.tells("member left east" + test.tells + "\n")
			})
		})
	}
}

// A cluster that is declared again while it leaves gets a new agent.
func TestAClusterThatComesBackGetsANewAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.dispatched(fleetPlan("a", "v1"), "start east a", "set east 1", "run east")
		f.dispatched(&plan.Plan{Left: []string{"east"}, Works: map[string][]*work.Work{}}, "leave east")
		f.dispatched(fleetPlan("a", "v1"), "start east a", "set east 1", "run east")
	})
}

// A new agent gets the recorded drifts.
func TestANewAgentGetsTheRecordedDrifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newDispatchedFleet(t)
		f.ledger.SetPlacement(web, ledger.Placement{})
		f.ledger.Bind(web, placement.Binding{Cluster: "east", Assigned: placement.Revision{Hash: "v1"}})
		f.ledger.Fold(protocol.WorkSeen{Cluster: "east", Placement: web, At: f.now, WorkState: protocol.WorkState{Incidents: &protocol.Incidents{Drifts: []protocol.Drift{{ID: one}}}}})
		f.dispatched(fleetPlan("a"), "start east a", "drifts east 1", "run east")
	})
}
