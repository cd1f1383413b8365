package placement_test

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A step changes some inputs of the scheduler and schedules again. Nil fields are not changed.
type step struct {
	fleet  fleet
	policy *api.PlacementPolicy
	// held replaces the bindings of the last decision.
	held []placement.Binding
	want string
	// holds are the bindings afterwards.
	holds string
}

func walk(t *testing.T, stories map[string][]step) {
	t.Helper()
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := placement.Request{Key: crp, Clusters: theFleet()}
			for i, s := range steps {
				if s.fleet != nil {
					r.Clusters = s.fleet
				}
				if s.policy != nil {
					r.Policy = s.policy
				}
				if s.held != nil {
					r.Bindings = s.held
				}
				o := placement.Schedule(r)
				if got := tell(o); s.want != "" && got != s.want {
					t.Errorf("step %d: got\n%s\nwant\n%s", i, got, s.want)
				}
				if got := holds(o.Bindings); s.holds != "" && got != s.holds {
					t.Errorf("step %d: holds %s, want %s", i, got, s.holds)
				}
				r.Bindings = o.Bindings
			}
		})
	}
}

func TestPickAllKeepsWhatItChose(t *testing.T) {
	range26 := pickAll(require("node-count Ge 2; node-count Le 6"))
	range48 := pickAll(require("node-count Ge 4; node-count Le 8"))
	canary := pickAll(require("env=canary,region in (east,west)"))
	example3 := pickAll(require("env=canary"), require("region notin (east,central)"))
	busy := pickAll(require(res + "available-cpu Ge 6"))
	walk(t, map[string][]step{
		"8: a new policy judges anew": {
			{policy: range26, holds: "m1 m2 m3 m4 m6"},
			{policy: range48, want: "in: m2 m3 m5 m7\nout: m1 m4 m6 m8 m9\ntrue 4 of 4", holds: "-m1 m2 m3 -m4 m5 -m6 m7"},
		},
		"9: the same policy only adds": {
			{policy: busy, holds: "m3 m5"},
			{fleet: theFleet().set(res+"available-cpu", "m3=4 m5=4 m7=8"), holds: "m3 m5 m7"},
		},
		"10: a new policy keeps the content": {
			{policy: example3, held: bound(canary, "*m3 m7"), holds: "*m3 m6 m7"},
		},
		"13: a taint moves nothing": {
			{holds: "m1 m2 m3 m4 m5 m6 m7"},
			{fleet: theFleet().tainted("m1", "m2"), want: "in: m1 m2 m3 m4 m5 m6 m7\nout: m8 m9\ntrue 7 of 7"},
		},
		"an absent policy is PickAll": {
			{held: bound(nil, "*m1 *m8")},
			{policy: pickAll(), holds: "*m1 m2 m3 m4 m5 m6 m7 *m8"},
		},
		"a cluster that comes back is restored": {
			{policy: pickAll(), held: bound(pickAll(), "-*m1"), holds: "*m1 m2 m3 m4 m5 m6 m7"},
		},
		"a cluster on its way out that does not match stays there": {
			{policy: range48, held: bound(range48, "-*m1"), holds: "-*m1 m2 m3 m5 m7"},
		},
		"a cluster that left is let go": {
			{policy: range48, holds: "m2 m3 m5 m7"},
			{fleet: theFleet().without("m3"), want: "in: m2 m5 m7\nout: m1 m4 m6 m8 m9\ntrue 3 of 3", holds: "m2 -m3 m5 m7"},
		},
		"an ill cluster goes only when the policy changes": {
			{policy: range48},
			{fleet: theFleet().ill("m3"), holds: "m2 m3 m5 m7"},
			{policy: pickAll(require("node-count Ge 4")), holds: "m2 -m3 m5 m7"},
		},
	})
}

func TestPickFixedKeepsWhatIsNamed(t *testing.T) {
	walk(t, map[string][]step{
		"16: another list": {
			{policy: pickFixed("m1 m2 m4"), holds: "m1 m2 m4"},
			{policy: pickFixed("m5 m6"), want: "in: m5- m6-\nout: m1 m2 m3 m4 m7 m8 m9\ntrue 2 of 2", holds: "-m1 -m2 -m4 m5 m6"},
		},
		"16a: a longer list": {
			{policy: pickFixed("m1 m2 m4 m5 m6"), held: bound(pickFixed("m1 m2 m4"), "*m1 *m2 m4"), holds: "*m1 *m2 m4 m5 m6"},
		},
		"a named cluster that falls ill stays": {
			{policy: pickFixed("m1 m2"), holds: "m1 m2"},
			{fleet: theFleet().ill("m1"), want: "in: m1- m2-\nout: m3 m4 m5 m6 m7 m8 m9\ntrue 2 of 2", holds: "m1 m2"},
			{policy: pickFixed("m3 m1"), want: "in: m3- m1-\nout: m2 m4 m5 m6 m7 m8 m9\ntrue 2 of 2", holds: "m1 -m2 m3"},
		},
		"an empty list keeps what is there": {
			{policy: pickFixed("m1 m2"), holds: "m1 m2"},
			{policy: pickFixed(""), want: "in: m1- m2-\nout: m3 m4 m5 m6 m7 m8 m9\nfalse 2 of 0", holds: "m1 m2"},
			{policy: pickFixed("m2"), holds: "-m1 m2"},
		},
		"a name that appears later is bound": {
			{policy: pickFixed("m1 mX"), want: "in: m1-\nout: mX m2 m3 m4 m5 m6 m7 m8 m9\nfalse 1 of 2"},
			{fleet: append(theFleet(), clusters("mX")...), want: "in: m1- mX-\nout: m2 m3 m4 m5 m6 m7 m8 m9\ntrue 2 of 2", holds: "m1 mX"},
		},
		"a cluster that left is not found": {
			{policy: pickFixed("m1 m2"), holds: "m1 m2"},
			{fleet: theFleet().without("m1"), want: "in: m2-\nout: m1 m3 m4 m5 m6 m7 m8 m9\nfalse 1 of 2", holds: "-m1 m2"},
		},
	})
}

func TestPickNMovesNothingItNeedNot(t *testing.T) {
	plain := pickN(3)
	p57 := pickN(5)
	held57 := func() []placement.Binding {
		return bound(p57, "m5(T0,A10) m2(T0,A0) *m7(T0,A0) *m6(T0,A5) *m4(T-1,A50)")
	}
	p42a := pickN(3, require("env=prod"), prefer(40, "region=east"), spreadSoft("env", 2), spreadHard("region", 1))
	north := func(taints ...api.Taint) fleet {
		return append(theFleet(), placement.Cluster{Name: "p1", Labels: map[string]string{"region": "north"}, Taints: taints})
	}
	taint := api.Taint{Key: "k", Value: "v", Effect: api.NoSchedule}

	walk(t, map[string][]step{
		"42b: a new policy under spread": {
			{policy: p42a, holds: "m2 m5 m6"},
			{policy: pickN(3, prefer(50, "region=central"), spreadSoft("env", 2)),
				want:  "in: m5(A50,T-1) m7(T1) m4(A50,T-1)\nlost: m6(T-1) m3(T-1) m2(T-1) m1(T-1)\nout: m8 m9\ntrue 3 of 3",
				holds: "-m2 m4 m5 -m6 m7"},
		},
		"43: held clusters win ties through all picks": {
			{policy: pickN(3, spreadHard("region", 1)), held: bound(plain, "m1 m4 m6"),
				want:  "in: m6(T-1) m4 m1(T1)\nlost: m3(T1) m2(T1)\nout: m5 m7 m8 m9\ntrue 3 of 3",
				holds: "m1 m4 m6"},
		},
		"49a: a tainted cluster's domain counts": {
			{policy: pickN(2, spreadHard("region", 1)), holds: "m5 m7"},
			{fleet: north(taint), policy: pickN(3, spreadHard("region", 1)),
				want: "in: m7(T-1) m5 m3\nlost: m2 m1\nout: m4 m6 m8 m9 p1\ntrue 3 of 3"},
		},
		"49b: and is chosen where the taint is tolerated": {
			{policy: pickN(2, spreadHard("region", 1), tolerate(api.Toleration{Key: "k", Operator: api.TolerationExists})), holds: "m5 m7"},
			{fleet: north(taint), policy: pickN(3, spreadHard("region", 1), tolerate(api.Toleration{Key: "k", Operator: api.TolerationExists})),
				want: "in: m7(T-1) m5 p1\nlost: m3 m2 m1\nout: m4 m6 m8 m9\ntrue 3 of 3"},
		},
		"55: more are added": {
			{policy: pickN(1), holds: "m7"},
			{policy: pickN(3), want: "in: m7 m6 m5\nlost: m4 m3 m2 m1\nout: m8 m9\ntrue 3 of 3"},
		},
		"56: fewer, the smallest names go": {
			{policy: pickN(3)},
			{policy: pickN(1), want: "in: m7\nlost: m6 m5 m4 m3 m2 m1\nout: m8 m9\ntrue 1 of 1", holds: "-m5 -m6 m7"},
		},
		"57: what has no content goes first": {
			{policy: pickN(4), held: held57(), holds: "-m2 *m4 m5 *m6 *m7"},
		},
		"58: then the lowest topology score": {
			{policy: pickN(2), held: held57(), holds: "-m2 -*m4 -m5 *m6 *m7"},
		},
		"59: held clusters win ties": {
			{policy: pickN(3), held: bound(pickAll(), "m1 m2 m3"), want: "in: m3 m2 m1\nlost: m7 m6 m5 m4\nout: m8 m9\ntrue 3 of 3", holds: "m1 m2 m3"},
		},
		"60: but only ties": {
			{policy: pickN(2, prefer(10, "region=central")), held: bound(plain, "m1 m4"),
				want: "in: m4(A10) m5(A10)\nlost: m7 m6 m3 m2 m1\nout: m8 m9\ntrue 2 of 2", holds: "-m1 m4 m5"},
		},
		"61: affinity outranks what is held": {
			{policy: pickN(2, prefer(10, "region=central")), held: bound(plain, "m1 m2"), holds: "-m1 -m2 m4 m5"},
		},
		"62: who left is replaced": {
			{policy: plain, holds: "m5 m6 m7"},
			{fleet: theFleet().without("m7"), want: "in: m6 m5 m4\nlost: m3 m2 m1\nout: m8 m9\ntrue 3 of 3", holds: "m4 m5 m6 -m7"},
		},
		"63: who is ill is kept, until the policy changes": {
			{policy: plain},
			{fleet: theFleet().ill("m7"), holds: "m5 m6 m7"},
			{policy: pickN(3, prefer(0, "env=prod")), holds: "m4 m5 m6 -m7"},
		},
		"64: who comes back fills up": {
			{policy: pickN(10), want: "in: m7 m6 m5 m4 m3 m2 m1\nout: m8 m9\nfalse 7 of 10"},
			{fleet: func() fleet { f := theFleet(); f.get("m8").Ineligible = ""; return f }(),
				want: "in: m7 m6 m5 m4 m3 m2 m1 m8\nout: m9\nfalse 8 of 10"},
		},
		"65: a better one changes nothing": {
			{policy: pickN(3, sortBy(100, "", "shine", api.Descending)), holds: "m5 m6 m7"},
			{fleet: theFleet().set("shine", "m1=9 m2=1"), holds: "m5 m6 m7"},
		},
		"66: the same again": {
			{policy: plain, want: "in: m7 m6 m5\nlost: m4 m3 m2 m1\nout: m8 m9\ntrue 3 of 3"},
			{want: "in: m7 m6 m5\nlost: m4 m3 m2 m1\nout: m8 m9\ntrue 3 of 3"},
		},
		"a new policy with a smaller N": {
			{policy: pickN(1), held: bound(plain, "*m1"), holds: "*m1"},
			{policy: pickN(0), holds: "-*m1"},
		},
		"an evicted cluster may come again": {
			{policy: plain, holds: "m5 m6 m7"},
			{held: bound(plain, "m5 m6"), holds: "m5 m6 m7"},
		},
		"a cluster never scored goes before one that was": {
			{policy: pickN(1), held: func() []placement.Binding {
				b := bound(plain, "m1 m2")
				b[1].Score = nil
				return b
			}(), holds: "m1 -m2"},
		},
	})
}

// Scheduling does not change what the rollout has recorded in a binding.
func TestBindingsKeepTheirContent(t *testing.T) {
	old, new := pickN(3), pickN(3, prefer(5, "env=prod"))
	held := bound(old, "*m1 -*m2 *m3")
	before := slices.Clone(held)
	o := placement.Schedule(placement.Request{Key: crp, Policy: new, Clusters: theFleet(), Bindings: held})
	for i, b := range before {
		if held[i] != b {
			t.Errorf("Schedule changed its input %+v to %+v", b, held[i])
		}
		for _, after := range o.Bindings {
			if after.Cluster == b.Cluster && (after.Assigned != b.Assigned || after.AssignedAt != b.AssignedAt) {
				t.Errorf("%s was assigned %v, and now %v", b.Cluster, b.Assigned, after.Assigned)
			}
		}
	}
}
