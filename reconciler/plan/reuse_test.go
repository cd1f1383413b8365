package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A plan for a cluster is reused only if every field is the same: each is changed here.
func TestPlansThatDifferAreNotTheSame(t *testing.T) {
	changes := map[string]func(*OnCluster){
		"Binding":         func(c *OnCluster) { c.Binding = &placement.Binding{Cluster: "east", WasAvailable: true} },
		"Entry":           func(c *OnCluster) { c.Entry = &ledger.Entry{} },
		"latest":          func(c *OnCluster) { c.SetLatest(placement.Revision{Hash: "new"}) },
		"Content":         func(c *OnCluster) { c.Content = &work.Rendered{Hash: "new"} },
		"Err":             func(c *OnCluster) { c.Err = errors.New("x") },
		"Waits":           func(c *OnCluster) { c.Waits = "x" },
		"Deferred":        func(c *OnCluster) { c.Deferred = true },
		"Overdue":         func(c *OnCluster) { c.Overdue = true },
		"TimedOut":        func(c *OnCluster) { c.TimedOut = true },
		"DeleteAllowed":   func(c *OnCluster) { c.DeleteAllowed = true },
		"work":            func(c *OnCluster) { c.work = &work.Work{Keep: true} },
		"PreviousContent": func(c *OnCluster) { c.PreviousContent = &work.Rendered{Hash: "old"} },
		"Circumstances":   func(c *OnCluster) { c.Circumstances = &Circumstances{driftRule: "report"} },
		"notRenderable":   func(c *OnCluster) { c.notRenderable = true },
	}
	entry := &ledger.Entry{}
	fresh := func() *OnCluster {
		return &OnCluster{Entry: entry, Binding: &placement.Binding{Cluster: "east"}, latest: &placement.Revision{Hash: "a"}, work: &work.Work{}, PreviousContent: &work.Rendered{Hash: "a"}}
	}
	if !fresh().equals(fresh()) {
		t.Error("two equal plans are not the same")
	}
	for field := range reflect.TypeFor[OnCluster]().Fields() {
		change := changes[field.Name]
		if change == nil {
			t.Errorf("the field %s is not compared here, and maybe not in same", field.Name)
			continue
		}
		c := fresh()
		if change(c); c.equals(fresh()) || fresh().equals(c) {
			t.Errorf("plans with another %s are the same", field.Name)
		}
	}
}

// Circumstances are the same only if every field is: each is changed here. One that has a value is not empty.
func TestCircumstancesThatDifferAreNotTheSame(t *testing.T) {
	changes := map[string]func(*Circumstances){
		"Failure":          func(s *Circumstances) { s.Failure = "x" },
		"Suspended":        func(s *Circumstances) { s.Suspended = "x" },
		"Refusal":          func(s *Circumstances) { s.Refusal = "x" },
		"Deviation":        func(s *Circumstances) { s.Deviation.Early = []api.ID{{Kind: "Namespace", Name: "web"}} },
		"Yielded":          func(s *Circumstances) { s.Yielded = []Yielded{{}} },
		"provenContent":    func(s *Circumstances) { s.provenContent = &work.Rendered{} },
		"deferredUntil":    func(s *Circumstances) { s.deferredUntil = noon },
		"suspendedSince":   func(s *Circumstances) { s.suspendedSince = noon },
		"suspendedObjects": func(s *Circumstances) { s.suspendedObjects = []work.SuspendedObject{{}} },
		"driftRule":        func(s *Circumstances) { s.driftRule = "report" },
		"leftover":         func(s *Circumstances) { s.leftover = &work.Rendered{} },
		"loading":          func(s *Circumstances) { s.loading = "c1" },
	}
	for field := range reflect.TypeFor[Circumstances]().Fields() {
		change := changes[field.Name]
		if change == nil {
			t.Errorf("the field %s is not compared here, and maybe not in equals", field.Name)
			continue
		}
		c, other := &OnCluster{}, &OnCluster{}
		if c.change(change); c.Unusual().equals(other.Unusual()) || c.Unusual().empty() || c.Circumstances == nil {
			t.Errorf("circumstances with another %s are the same", field.Name)
		}
		if c.change(func(s *Circumstances) { *s = Circumstances{} }); c.Circumstances != nil {
			t.Errorf("circumstances without %s are kept", field.Name)
		}
	}
}

// There are as many plans for clusters as entries in the ledger. A field that is empty for nearly all of them belongs to their
// Circumstances.
func TestSizeOfPlans(t *testing.T) {
	if size := unsafe.Sizeof(OnCluster{}); size > 96 {
		t.Errorf("the plan for a cluster takes %d bytes", size)
	}
}

// After a report about one cluster, the plans for the other ones are those of before.
func TestOneReportChangesOneCluster(t *testing.T) {
	in := large(t, 10, 3)
	settle(t, &in)
	key := Resolve(in).Placements.At(0).Key
	reported := Resolve(in).Placements.At(0).Clusters[3]
	resolve := func(untrackable int) *Plan {
		o := report(reported.Binding.Cluster, reported.work, in.Now)
		o.Untrackable = untrackable
		in.Ledger.Fold(o)
		return Resolve(in)
	}
	before := resolve(1)
	after := resolve(0).Placement(key)
	for i, c := range after.Clusters {
		if was := before.Placement(key).Clusters[i]; (c == was) == (c.Binding.Cluster == reported.Binding.Cluster) {
			t.Errorf("%s: the plan for the cluster is the same: %t", c.Binding.Cluster, c == was)
		}
	}
}

// What the rollout records of clusters does not cause a placement to be scheduled again.
func TestRolloutsDoNotScheduleAgain(t *testing.T) {
	in := large(t, 10, 1)
	settle(t, &in)
	before := Resolve(in).Placements.At(0)
	in.Memo.decisions = nil // a placement that is scheduled again gets its own
	b := *before.Clusters[3].Binding
	b.WasAvailable, b.AssignedAt = !b.WasAvailable, in.Now
	in.Ledger.Bind(before.Key, b)
	after := Resolve(in).Placements.At(0)
	if &after.Schedule.Decisions[0] != &before.Schedule.Decisions[0] {
		t.Error("the placement was scheduled again")
	}
	if fresh := placement.Schedule(*after.SchedulerInput()).Bindings; !slices.EqualFunc(fresh, after.bindings(), placement.Binding.Equal) || len(fresh) == 0 {
		t.Errorf("bindings %+v, scheduled again %+v", after.bindings(), fresh)
	}
	b.Policy = "another"
	in.Ledger.Bind(before.Key, b)
	if last := Resolve(in).Placements.At(0); &last.Schedule.Decisions[0] == &after.Schedule.Decisions[0] {
		t.Error("the placement was not scheduled again, although the policy of a binding is another one")
	}
}

// A plan stays as it is when the next one is made, also where bindings have changed that are not in the ledger yet.
func TestPlansDoNotChangeEarlierOnes(t *testing.T) {
	in := large(t, 30, 3)
	settle(t, &in)
	for i := range 3 {
		changed := *in.InForce
		changed.Commit.Hash = fmt.Sprint("next", i)
		changed.Clusters = slices.Delete(slices.Clone(changed.Clusters), 5, 7) // others are selected, or none
		in.InForce = &changed
		was := Resolve(in)
		var before []placement.Binding
		for p := range was.Placements.Values() {
			for _, c := range p.Clusters {
				before = append(before, *c.Binding)
			}
		}
		was.UpdateLedger(in.Ledger)
		in.Now = in.Now.Add(time.Second)
		now := Resolve(in)
		for p := range was.Placements.Values() {
			for _, c := range p.Clusters {
				if *c.Binding != before[0] {
					t.Fatalf("%s on %s is %+v in the earlier plan now; it was %+v", p.Key, before[0].Cluster, *c.Binding, before[0])
				}
				before = before[1:]
			}
		}
		for _, c := range now.Placements.At(0).Clusters {
			if c.Binding != &c.Entry.Binding {
				t.Errorf("%s has a binding of its own, although nothing in it has changed", c.Binding.Cluster)
			}
		}
	}
}

// A plan keeps only the assignments that change a revision. A fleet in which nothing changes has none, and as many clusters
// with a revision as before.
func TestPlansKeepOnlyChangedAssignments(t *testing.T) {
	in := large(t, 10, 1)
	first := Resolve(in).Placements.At(0)
	if n := len(first.Clusters); first.Assigned != n || len(first.Rollout.Assign) != n {
		t.Errorf("%d clusters have a revision, and %d get one now; want %d", first.Assigned, len(first.Rollout.Assign), n)
	}
	settle(t, &in)
	if p := Resolve(in).Placements.At(0); p.Assigned != len(p.Clusters) || len(p.Rollout.Assign) != 0 {
		t.Errorf("%d of %d clusters have a revision, and %d get one now; want all and none", p.Assigned, len(p.Clusters), len(p.Rollout.Assign))
	}
}

// The bindings of the scheduler are not kept twice. What was decided with other bindings is not reused, also if there are none now.
func TestPlansKeepBindingsOnce(t *testing.T) {
	in := large(t, 10, 1)
	settle(t, &in)
	before := Resolve(in).Placements.At(0)
	if before.Request.Bindings != nil || before.Schedule.Bindings != nil || len(before.bindings()) != len(before.Clusters) {
		t.Errorf("it has %d and %d bindings beside those of %d clusters", len(before.Request.Bindings), len(before.Schedule.Bindings), len(before.Clusters))
	}
	for _, c := range before.Clusters {
		in.Ledger.Unbind(before.Key, c.Binding.Cluster)
	}
	after := Resolve(in).Placements.At(0)
	if len(after.Changed) != len(before.Clusters) || len(after.SchedulerInput().Bindings) != 0 {
		t.Errorf("without bindings, %d clusters are bound again, want %d; the scheduler had %d", len(after.Changed), len(before.Clusters), len(after.SchedulerInput().Bindings))
	}
}
