package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The record of a placement has the current spec. The generation counts its changes, and a
// placement that was deleted begins again.
func TestUpdateRecord(t *testing.T) {
	created := noon.Add(-time.Hour)
	spec := &hub.Placement{SpecHash: "s2"}
	abandoning := &hub.Placement{SpecHash: "s2", Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{DeleteStrategy: &api.DeleteStrategy{PropagationPolicy: api.DeletePropagationAbandon}}}}
	current := ledger.Placement{Generation: 4, SpecHash: "s2", Commit: "v1", Created: created, Index: 7, Spec: &spec.Spec}
	with := func(change func(*ledger.Placement)) *ledger.Placement {
		r := current
		change(&r)
		return &r
	}
	former := []api.PlacementKey{{Name: "old"}}
	for name, test := range map[string]struct {
		record  *ledger.Placement
		spec    *hub.Placement
		rebuilt bool
		want    ledger.Placement
		changed bool
	}{
		"unchanged":    {&current, spec, false, current, false},
		"new":          {nil, spec, false, ledger.Placement{Generation: 1, SpecHash: "s2", Commit: "head", Created: noon, Index: -1}, true},
		"changed spec": {with(func(r *ledger.Placement) { r.SpecHash = "s1" }), spec, false, changedRecord(current, func(r *ledger.Placement) { r.Generation, r.Commit = 5, "head" }), true},
		"deleted before, with earlier keys": {with(func(r *ledger.Placement) { r.Deleted, r.Formerly = true, former }), spec, false,
			ledger.Placement{Generation: 1, SpecHash: "s2", Commit: "head", Created: noon, Index: -1, Formerly: former}, true},
		"new, after the ledger was lost":   {nil, spec, true, ledger.Placement{Generation: 1, SpecHash: "s2", Commit: "head", Created: noon, Index: -1, Rebuilt: true}, true},
		"rebuilt from inventories":         {&ledger.Placement{Index: -1, Rebuilt: true}, spec, false, ledger.Placement{Generation: 1, SpecHash: "s2", Commit: "head", Created: noon, Index: -1, Rebuilt: true}, true},
		"rebuilt, and deleted before":      {&ledger.Placement{Index: -1, Rebuilt: true, Deleted: true}, spec, false, ledger.Placement{Generation: 1, SpecHash: "s2", Commit: "head", Created: noon, Index: -1}, true},
		"recorded without a spec":          {with(func(r *ledger.Placement) { r.Spec = nil }), spec, false, current, true},
		"a strategy that abandons objects": {&current, abandoning, false, changedRecord(current, func(r *ledger.Placement) { r.Abandon = true }), true},
	} {
		t.Run(name, func(t *testing.T) {
			pl := &placementPlanner{planner: &planner{Input: Input{InForce: &hub.Snapshot{Commit: hub.Commit{Hash: "head", Time: noon}}, Rebuilt: test.rebuilt}, memo: NewMemo()}}
			pl.planner.memo.setInForce(pl.planner.InForce)
			p := &Placement{Spec: test.spec}
			pl.updateRecord(p, test.record)
			got := p.Record
			if changed := test.record == nil || !reflect.DeepEqual(got, *test.record); got.Spec == nil || changed != test.changed {
				t.Errorf("spec: %v, changed: %t", got.Spec, changed)
			}
			got.Spec, test.want.Spec = nil, nil
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func changedRecord(r ledger.Placement, change func(*ledger.Placement)) ledger.Placement {
	change(&r)
	return r
}

// The objects of a placement stay when it is deleted if its strategy says so, or if it never
// writes.
func TestAbandons(t *testing.T) {
	policy := func(p api.DeletePropagationPolicy) *api.DeleteStrategy {
		return &api.DeleteStrategy{PropagationPolicy: p}
	}
	for name, test := range map[string]struct {
		strategy api.RolloutStrategy
		want     bool
	}{
		"by default":         {api.RolloutStrategy{}, false},
		"Delete":             {api.RolloutStrategy{DeleteStrategy: policy(api.DeletePropagationDelete)}, false},
		"Abandon":            {api.RolloutStrategy{DeleteStrategy: policy(api.DeletePropagationAbandon)}, true},
		"ReportDiff":         {api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ReportDiff}}, true},
		"ReportDiff, Delete": {api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ReportDiff}, DeleteStrategy: policy(api.DeletePropagationDelete)}, true},
		"ServerSideApply":    {api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ServerSideApply}}, false},
	} {
		if got := abandons(api.PlacementSpec{Strategy: test.strategy}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// The bindings of a placement are those on declared clusters whose objects are not removed yet. The
// others are deleted.
func TestBindingsOfAPlacement(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	head := snapshot(t, "clusters a b c\nnamespace web\nplace web\n")
	l := ledger.New()
	l.SetPlacement(key, ledger.Placement{Created: noon})
	for _, b := range []placement.Binding{{Cluster: "a"}, {Cluster: "b", Removing: true}, {Cluster: "c", Removing: true}, {Cluster: "gone"}} {
		l.Bind(key, b)
	}
	l.Fold(protocol.WorkSeen{Cluster: "c", Placement: key, At: noon, WorkState: protocol.WorkState{Removed: true}})
	pl := &placementPlanner{planner: newPlanner(Input{InForce: head, Ledger: l, Memo: NewMemo(), Now: noon})}
	p := &Placement{Key: key}
	var names []string
	for _, b := range pl.bindings(p, l.Placement(key)) {
		names = append(names, b.Cluster)
	}
	if !slices.Equal(names, []string{"a", "b"}) || !slices.Equal(p.Unbind, []string{"gone"}) {
		t.Errorf("bindings on %v, to be deleted on %v", names, p.Unbind)
	}
	p.Clusters = on("a", "b")
	pl.listChanges(p, l.Placement(key))
	if !slices.Equal(p.Unbind, []string{"gone", "c"}) {
		t.Errorf("to be deleted on %v", p.Unbind)
	}
	if pl.bindings(p, nil) != nil {
		t.Error("a new placement has bindings")
	}
}

// A placement that is deleted from Git is removed from every cluster that is neither suspended nor
// paused. The ledger records when and by which commit it was deleted.
func TestRemovePlacement(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	for name, test := range map[string]struct {
		record  ledger.Placement
		b       placement.Binding
		change  func(*placementPlanner, *ledger.Ledger)
		want    placement.Binding
		changed bool // the record
	}{
		"deleted now": {ledger.Placement{}, placement.Binding{Assigned: revisionOne}, nil,
			placement.Binding{Assigned: revisionOne, Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, true},
		"deleted before": {ledger.Placement{Deleted: true}, placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}}, nil,
			placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}}, false},
		"deleted before, by an unknown commit": {ledger.Placement{Deleted: true}, placement.Binding{Unscheduled: true, Removing: true}, nil,
			placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, false},
		"leaving the cluster before": {ledger.Placement{}, placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}}, nil,
			placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, true},
		"paused": {ledger.Placement{}, placement.Binding{Assigned: revisionOne}, func(pl *placementPlanner, _ *ledger.Ledger) { pl.planner.paused = map[string]string{"east": "v1"} },
			placement.Binding{Assigned: revisionOne, Unscheduled: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, true},
		"paused during the removal": {ledger.Placement{Deleted: true}, placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}},
			func(pl *placementPlanner, _ *ledger.Ledger) { pl.planner.paused = map[string]string{"east": "v1"} }, placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}}, false},
		"suspended": {ledger.Placement{}, placement.Binding{Assigned: revisionOne}, func(pl *placementPlanner, l *ledger.Ledger) {
			l.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "alice"})
			pl.planner.memo.suspensions.Update(pl.planner.Ledger, pl.planner.Now)
		}, placement.Binding{Assigned: revisionOne, Unscheduled: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, true},
		"allowed": {ledger.Placement{}, placement.Binding{Assigned: revisionOne}, func(pl *placementPlanner, _ *ledger.Ledger) { pl.current.deleteAllowed = true },
			placement.Binding{Assigned: revisionOne, Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}, AllowDelete: true}, true},
		"its last content was allowed": {ledger.Placement{}, placement.Binding{Assigned: revisionOne, AllowDelete: true}, nil,
			placement.Binding{Assigned: revisionOne, Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v2"}}, true},
		"its removal was allowed": {ledger.Placement{Deleted: true}, placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}, AllowDelete: true}, nil,
			placement.Binding{Unscheduled: true, Removing: true, Circumstances: &placement.Circumstances{RemovedBy: "v1"}, AllowDelete: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New()
			l.SetPlacement(key, test.record)
			test.b.Cluster, test.want.Cluster = "east", "east"
			l.Bind(key, test.b)
			p := &Placement{Key: key}
			in := Input{InForce: snapshot(t, "clusters east\n"), Ledger: l, Memo: NewMemo(), Now: noon}
			in.InForce.Commit.Hash = "v2"
			pl := &placementPlanner{planner: newPlanner(in), current: &result{placement: p}}
			if test.change != nil {
				test.change(pl, l)
			}
			pl.removePlacement(p, l.Placement(key))
			if got := p.Clusters[0].Binding; !got.Equal(test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if changed := !reflect.DeepEqual(p.Record, *l.Placement(key)); !p.Record.Deleted || changed != test.changed || test.changed != p.Record.DeletedAt.Equal(noon) {
				t.Errorf("record: %+v, changed: %t", p.Record, changed)
			}
			if p.Forget {
				t.Error("it is forgotten before its objects are removed")
			}
		})
	}
}

// A deleted placement is forgotten once no cluster holds it.
func TestDeletedPlacementIsForgotten(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	l := ledger.New()
	l.SetPlacement(key, ledger.Placement{Deleted: true})
	l.Bind(key, placement.Binding{Cluster: "east", Unscheduled: true, Removing: true})
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: noon, WorkState: protocol.WorkState{Removed: true}})
	p := Resolve(Input{InForce: snapshot(t, "clusters east\n"), Ledger: l, Memo: NewMemo(), Now: noon})
	if pl := p.Placements.At(0); !pl.Forget {
		t.Errorf("plan: %+v", pl)
	}
	p.UpdateLedger(l)
	if l.Placement(key) != nil {
		t.Error("the ledger still has it")
	}
}

// A cluster that is selected again before its objects are removed gets its revision back. After
// that it is a new binding.
func TestCancelRemoval(t *testing.T) {
	removing := placement.Binding{Cluster: "east", Assigned: revisionOne, Unscheduled: true, Removing: true}
	again := placement.Binding{Cluster: "east"}
	for name, test := range map[string]struct {
		entry  *ledger.Entry
		b      placement.Binding
		paused bool
		want   placement.Binding
	}{
		"being removed":          {&ledger.Entry{Binding: removing}, again, false, placement.Binding{Cluster: "east", Assigned: revisionOne, AssignedAt: noon}},
		"being removed, paused":  {&ledger.Entry{Binding: removing}, again, true, removing},
		"removed":                {&ledger.Entry{Binding: removing, Seen: &protocol.WorkState{Removed: true}}, again, false, again},
		"new":                    {nil, again, false, again},
		"assigned":               {&ledger.Entry{Binding: removing}, placement.Binding{Cluster: "east", Assigned: revisionTwo}, false, placement.Binding{Cluster: "east", Assigned: revisionTwo}},
		"bound without revision": {&ledger.Entry{Binding: again}, again, false, again},
	} {
		pl := &planner{Input: Input{Now: noon}}
		if test.paused {
			pl.paused = map[string]string{"east": "v1"}
		}
		c := &OnCluster{Binding: &test.b, Entry: test.entry}
		if pl.cancelRemoval(c); *c.Binding != test.want {
			t.Errorf("%s: %+v, want %+v", name, c.Binding, test.want)
		}
	}
}

// Bindings are the same if only their scores are different values in memory.
func TestSameBinding(t *testing.T) {
	score := func(affinity int32) *placement.Score { return &placement.Score{Affinity: affinity} }
	for name, test := range map[string]struct {
		a, b placement.Binding
		want bool
	}{
		"equal":           {placement.Binding{Cluster: "a"}, placement.Binding{Cluster: "a"}, true},
		"equal scores":    {placement.Binding{Score: score(1)}, placement.Binding{Score: score(1)}, true},
		"other scores":    {placement.Binding{Score: score(1)}, placement.Binding{Score: score(2)}, false},
		"one has a score": {placement.Binding{Score: score(1)}, placement.Binding{}, false},
		"other fields":    {placement.Binding{Score: score(1), Order: 1}, placement.Binding{Score: score(1), Order: 2}, false},
	} {
		if got := test.a.Equal(test.b); got != test.want || test.b.Equal(test.a) != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// The history of a placement has the last changes of its content. A rollout starts when the commit
// was first seen, and finishes when the content is available on every cluster.
func TestRolloutTimes(t *testing.T) {
	pl := &placementPlanner{planner: &planner{Input: Input{Now: noon}}}
	p := &Placement{Spec: &hub.Placement{}, Record: ledger.Placement{Index: -1}}
	for i := range maxRevisions + 2 {
		pl.planner.InForceSeenAt = noon.Add(time.Duration(i) * time.Minute)
		pl.startRollout(p)
	}
	last := p.Record.Revisions[maxRevisions-1]
	if r := p.Record; len(r.Revisions) != maxRevisions || r.Revisions[0].Index != 2 || last.Index != maxRevisions+1 || r.Index != last.Index || !r.RolloutStarted.Equal(pl.planner.InForceSeenAt) || !last.At.Equal(pl.planner.InForceSeenAt) {
		t.Errorf("record: %+v", p.Record)
	}
	pl.planner.InForceSeenAt = time.Time{}
	if pl.startRollout(p); !p.Record.RolloutStarted.Equal(noon) {
		t.Errorf("an unseen head starts its rollout at %s", p.Record.RolloutStarted)
	}
	if pl.finishRollout(p); !p.Record.RollingOut() {
		t.Error("finished before the content is available on every cluster")
	}
	p.Rollout.Settled, p.Schedule.Fulfilled = true, true
	for why, missing := range map[string]func(){
		"a member has not answered": func() { p.Absent = []Absence{{Usability: fulfilment.Unanswered}} },
		"there are no members":      func() { p.NoMembers = true },
		"too few are found":         func() { p.Schedule.Fulfilled = false },
	} {
		before := *p
		missing()
		if pl.finishRollout(p); !p.Record.RollingOut() {
			t.Errorf("finished although %s", why)
		}
		*p = before
	}
	if pl.finishRollout(p); !p.Record.RolloutFinished.Equal(noon) {
		t.Errorf("finished at %s", p.Record.RolloutFinished)
	}
	pl.planner.Now = noon.Add(time.Hour)
	if pl.finishRollout(p); !p.Record.RolloutFinished.Equal(noon) {
		t.Errorf("finished again at %s", p.Record.RolloutFinished)
	}
}

// Placements are planned after those that their affinities name, and renamed ones after their new
// keys.
func TestSequence(t *testing.T) {
	near := func(name, other string) *hub.Placement {
		p := &hub.Placement{Key: api.PlacementKey{Name: name}}
		if other != "" {
			p.Spec.Policy = affinityTo(other)
		}
		return p
	}
	l := ledger.New()
	l.SetPlacement(api.PlacementKey{Name: "a-old"}, ledger.Placement{Deleted: true, Into: api.PlacementKey{Name: "web"}})
	l.SetPlacement(api.PlacementKey{Name: "b-deleted"}, ledger.Placement{Deleted: true})
	l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{})
	in := Input{InForce: &hub.Snapshot{Placements: []*hub.Placement{near("c", "web"), near("d", ""), near("web", "")}}, Ledger: l}
	var names []string
	for _, key := range sequence(in) {
		names = append(names, key.Name)
	}
	if got := strings.Join(names, " "); got != "b-deleted web c d a-old" {
		t.Errorf("planned in the order %s", got)
	}
}

// affinityTo returns a policy for clusters that have another placement.
func affinityTo(name string) *api.PlacementPolicy {
	return &api.PlacementPolicy{PlacementType: api.PickAll, Affinity: &api.Affinity{PlacementAffinity: []api.PlacementReference{{Name: name}}}}
}

// An annotation of a placement overrides the availability timeout of the fleet.
func TestAvailableTimeoutAnnotation(t *testing.T) {
	for name, test := range map[string]struct {
		line    string
		after   time.Duration
		stopped bool
	}{
		"before the timeout of the fleet":     {"place web unavailable 1", 9 * time.Minute, false},
		"after the timeout of the fleet":      {"place web unavailable 1", 11 * time.Minute, true},
		"after the timeout of the placement":  {"place web unavailable 1 timeout 2m", 3 * time.Minute, true},
		"before the timeout of the placement": {"place web unavailable 1 timeout 20m", 11 * time.Minute, false},
		"the placement has no timeout":        {"place web unavailable 1 timeout 0s", time.Hour, false},
		"failures do not stop it":             {"place web unavailable 1 goes-on", 11 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.in.MaxUnreachable = new(intstr.FromInt32(0))
			fleet := "clusters a b\nnamespace web\n" + test.line + "\nconfigmap web/one "
			s.commit("v1", nil, []byte(fleet+"old\n"))
			for _, step := range []string{"seen a b", "plan", "done", "plan"} {
				s.do(strings.Fields(step))
			}
			s.commit("v2", nil, []byte(fleet+"new\n"))
			s.resolve()
			s.do([]string{"slow", "web", "a"})
			s.in.Now = s.in.Now.Add(test.after)
			if stopped := s.resolve().Placements.At(0).Rollout.Stopped == "a"; stopped != test.stopped {
				t.Errorf("stopped: %t, want %t", stopped, test.stopped)
			}
		})
	}
}
