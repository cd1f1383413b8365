package placement_test

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An example is one policy and one fleet, with the numbers of KubeFleet's worked examples.
type example struct {
	fleet  fleet // nil stands for theFleet
	policy *api.PlacementPolicy
	want   string
	// reasons are expected reasons of some clusters.
	reasons map[string]string
}

const filteredBy = "ClusterUnschedulable, "

func run(t *testing.T, examples map[string]example) {
	t.Helper()
	for name, e := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e.fleet == nil {
				e.fleet = theFleet()
			}
			o := placement.Schedule(placement.Request{Key: crp, Policy: e.policy, Clusters: e.fleet})
			if got := tell(o); got != e.want {
				t.Errorf("got\n%s\nwant\n%s", got, e.want)
			}
			for cluster, want := range e.reasons {
				if got := reasonOf(t, o, cluster); got != want {
					t.Errorf("reason of %s:\n%s\nwant\n%s", cluster, got, want)
				}
			}
		})
	}
}

var (
	eastProd = api.Toleration{Key: "east", Operator: api.TolerationEqual, Value: "prod", Effect: api.NoSchedule}
	anyWest  = api.Toleration{Key: "west", Operator: api.TolerationExists}
)

const mismatch = filteredBy + "cluster does not match with any of the required cluster affinity terms"

func TestPickAllTakesWhatPassesTheFilters(t *testing.T) {
	run(t, map[string]example{
		"1: no policy": {
			want: "in: m1 m2 m3 m4 m5 m6 m7\nout: m8 m9\ntrue 7 of 7",
			reasons: map[string]string{
				"m1": `Successfully scheduled resources for placement in "m1" (affinity score: 0, topology spread score: 0): picked by scheduling policy`,
				"m8": filteredBy + silent,
				"m9": filteredBy + notJoined,
			}},
		"2: the first objection is the reason": {
			policy: pickAll(require("env=prod,region in (east,west)")),
			want:   "in: m1 m2 m6\nout: m3 m4 m5 m7 m8 m9\ntrue 3 of 3",
			reasons: map[string]string{
				"m3": mismatch, "m4": mismatch, "m8": filteredBy + silent, "m9": mismatch,
			}},
		"3: terms are alternatives": {
			policy: pickAll(require("env=canary"), require("region notin (east,central)")),
			want:   "in: m3 m6 m7\nout: m1 m2 m4 m5 m8 m9\ntrue 3 of 3"},
		"4: all expressions of a term must hold": {
			policy: pickAll(require("node-count Ge 4; rating Lt 45; " + res + "allocatable-cpu Ne 14; " + res + "available-memory Gt 4Gi")),
			want:   "in: m3\nout: m1 m2 m4 m5 m6 m7 m8 m9\ntrue 1 of 1"},
		"5: four terms of one property each": {
			policy: pickAll(require("node-count Ge 8"), require("rating Gt 99"), require(res+"total-cpu Eq 12"), require(res+"total-memory Le 4Gi")),
			want:   "in: m1 m3 m4 m5 m7\nout: m2 m6 m8 m9\ntrue 5 of 5"},
		"6: labels and properties": {
			policy: pickAll(require("region=east; node-count Ge 4")),
			want:   "in: m2 m3\nout: m1 m4 m5 m6 m7 m8 m9\ntrue 2 of 2"},
		"7: alternatives of labels and of properties": {
			policy: pickAll(require("env=prod,region=west"), require("rating Ge 40; "+res+"total-cpu Gt 12")),
			want:   "in: m5 m6\nout: m1 m2 m3 m4 m7 m8 m9\ntrue 2 of 2"},
		"11: a taint keeps away": {
			fleet: theFleet().tainted("m1", "m4", "m7"), policy: pickAll(),
			want:    "in: m2 m3 m5 m6\nout: m1 m4 m7 m8 m9\ntrue 4 of 4",
			reasons: map[string]string{"m1": filteredBy + "taint east=prod:NoSchedule cannot be tolerated"}},
		"12: tolerations let in": {
			fleet: theFleet().tainted("m1", "m4", "m7"), policy: pickAll(tolerate(eastProd, anyWest)),
			want: "in: m1 m2 m3 m5 m6 m7\nout: m4 m8 m9\ntrue 6 of 6"},
		"12a: taints after affinity": {
			fleet:   theFleet().tainted("m1", "m2", "m6"),
			policy:  pickAll(require("env=prod,region in (east,west)"), tolerate(eastProd)),
			want:    "in: m1 m2\nout: m3 m4 m5 m6 m7 m8 m9\ntrue 2 of 2",
			reasons: map[string]string{"m6": filteredBy + "taint west=prod:NoSchedule cannot be tolerated"}},
		"14: nothing matches": {
			policy: pickAll(require("env=none")),
			want:   "in:\nout: m1 m2 m3 m4 m5 m6 m7 m8 m9\ntrue 0 of 0"},
		"52: the documented sample": {
			fleet:  clusters("k1 environment=production,k2 environment=test,k3 environment=production").ill("k3"),
			policy: pickAll(require("environment=production")),
			want:   "in: k1\nout: k2 k3\ntrue 1 of 1"},
		"an empty term matches every cluster": {
			policy: pickAll(require("env=none"), require("")),
			want:   "in: m1 m2 m3 m4 m5 m6 m7\nout: m8 m9\ntrue 7 of 7"},
		"an empty list of terms is no constraint": {
			policy: pickAll(func(p *api.PlacementPolicy) { affinity(p).Required = &api.ClusterSelector{} }),
			want:   "in: m1 m2 m3 m4 m5 m6 m7\nout: m8 m9\ntrue 7 of 7"},
		"no expression holds of a property that is missing": {
			fleet: clusters("a,b").set("x", "a=1"), policy: pickAll(require("x Ne 7")),
			want: "in: a\nout: b\ntrue 1 of 1"},
		"quantities are compared as such": {
			fleet: clusters("a,b").set("x", "a=1000m b=4Gi"), policy: pickAll(require("x Eq 1"), require("x Gt 4G")),
			want: "in: a b\ntrue 2 of 2"},
	})
}

func TestPickFixedTakesWhatIsNamed(t *testing.T) {
	run(t, map[string]example{
		"15: in order of the list, then what is not eligible, then what is not there": {
			policy: pickFixed("m1 m2 m4 m5 m6 m8 m9 mX"),
			want:   "in: m1- m2- m4- m5- m6-\nout: m8 m9 mX m3 m7\nfalse 5 of 8",
			reasons: map[string]string{
				"m1": `Successfully scheduled resources for placement in "m1": picked by scheduling policy`,
				"m8": `Cluster "m8" is not eligible for resource placement yet: ` + silent,
				"mX": `Specified cluster "mX" is not found`,
				"m3": `Cluster "m3" is not named by the placement policy`,
			}},
		"17: taints do not matter": {
			fleet: theFleet().tainted("m1", "m4", "m6"), policy: pickFixed("m1 m4 m6"),
			want: "in: m1- m4- m6-\nout: m2 m3 m5 m7 m8 m9\ntrue 3 of 3"},
		"53: the documented sample": {
			fleet: clusters("cluster1,cluster2,cluster3"), policy: pickFixed("cluster1 cluster2"),
			want: "in: cluster1- cluster2-\nout: cluster3\ntrue 2 of 2"},
		"the order is that of the list": {
			fleet: clusters("a,b,c"), policy: pickFixed("c zz a"),
			want: "in: c- a-\nout: zz b\nfalse 2 of 3"},
		"an empty list has a status": {
			fleet: clusters("a"), policy: pickFixed(""),
			want:    "in:\nout: a\nfalse 0 of 0",
			reasons: map[string]string{"a": `Cluster "a" is not selected: the policy names no cluster`}},
	})
}

func TestPickNTakesTheBest(t *testing.T) {
	const others = "\nout: m8 m9\n"
	run(t, map[string]example{
		"18: of equals the largest name": {
			policy:  pickN(3),
			want:    "in: m7 m6 m5\nlost: m4 m3 m2 m1" + others + "true 3 of 3",
			reasons: map[string]string{"m4": `Cluster "m4" does not score high enough (affinity score: 0, topology spread score: 0)`}},
		"19: fewer than wanted": {
			policy: pickN(10), want: "in: m7 m6 m5 m4 m3 m2 m1" + others + "false 7 of 10"},
		"20: none wanted": {
			policy: pickN(0), want: "in:\nlost: m7 m6 m5 m4 m3 m2 m1" + others + "true 0 of 0"},
		"21: m8 would match": {
			policy: pickN(2, require("region=east,env=prod")),
			want:   "in: m2 m1\nout: m3 m4 m5 m6 m7 m8 m9\ntrue 2 of 2"},
		"22: too few match": {
			policy: pickN(4, require("region=east,env=prod"), require("region=west,env notin (prod)")),
			want:   "in: m7 m2 m1\nout: m3 m4 m5 m6 m8 m9\nfalse 3 of 4"},
		"23: a preference": {
			policy: pickN(4, prefer(10, "region=central,env=prod")),
			want:   "in: m5(A10) m4(A10) m7 m6\nlost: m3 m2 m1" + others + "true 4 of 4"},
		"24: two preferences": {
			policy: pickN(4, prefer(10, "region=central,env=prod"), prefer(20, "region=east,env=canary")),
			want:   "in: m3(A20) m5(A10) m4(A10) m7\nlost: m6 m2 m1" + others + "true 4 of 4"},
		"25: a negative weight pushes down": {
			policy: pickN(3, prefer(-20, "env=prod"), prefer(20, "env=canary")),
			want:   "in: m7(A20) m3(A20) m6(A-20)\nlost: m5(A-20) m4(A-20) m2(A-20) m1(A-20)" + others + "true 3 of 3"},
		"26: small is good, and m8 counts for the range": {
			policy: pickN(3, sortBy(100, "", "node-count", api.Ascending)),
			want:   "in: m6(A86) m4(A86) m1(A86)\nlost: m2(A57) m3(A29) m7 m5" + others + "true 3 of 3"},
		"27: large is good": {
			policy: pickN(3, sortBy(100, "", "node-count", api.Descending)),
			want:   "in: m7(A100) m5(A100) m3(A71)\nlost: m2(A43) m6(A14) m4(A14) m1(A14)" + others + "true 3 of 3"},
		"28: preferences add up": {
			policy: pickN(3, sortBy(100, "", "node-count", api.Ascending), sortBy(80, "", "rating", api.Descending),
				sortBy(60, "", res+"allocatable-memory", api.Descending)),
			want: "in: m1(A168) m4(A146) m6(A135)\nlost: m2(A108) m3(A68) m7(A60) m5(A46)" + others + "true 3 of 3"},
		"29: labels limit a sorter": {
			policy: pickN(4, sortBy(100, "env=canary", res+"available-cpu", api.Descending)),
			want:   "in: m3(A75) m7(A50) m6 m5\nlost: m4 m2 m1" + others + "true 4 of 4"},
		"30: two sorters with labels": {
			policy: pickN(4, sortBy(100, "env=canary", res+"available-cpu", api.Descending), sortBy(100, "region=east", "rating", api.Descending)),
			want:   "in: m3(A100) m1(A100) m7(A50) m2(A50)\nlost: m6 m5 m4" + others + "true 4 of 4"},
		"31: a property nobody reports": {
			policy: pickN(3, sortBy(100, "", "nothing", api.Descending)),
			want:   "in: m7 m6 m5\nlost: m4 m3 m2 m1" + others + "true 3 of 3"},
		"31: a property equal everywhere": {
			fleet: theFleet().set("same", "m1=5 m2=5 m3=5 m4=5 m5=5 m6=5 m7=5"), policy: pickN(3, sortBy(100, "", "same", api.Ascending)),
			want: "in: m7 m6 m5\nlost: m4 m3 m2 m1" + others + "true 3 of 3"},
		"32: half is rounded away from zero": {
			policy: pickN(2, sortBy(33, "", "rating", api.Descending)),
			want:   "in: m1(A33) m4(A25)\nlost: m6(A17) m2(A17) m5(A8) m3(A8) m7" + others + "true 2 of 2"},
		"33: a negative sorter": {
			policy: pickN(2, sortBy(-50, "", "node-count", api.Descending)),
			want:   "in: m6(A-7) m4(A-7)\nlost: m1(A-7) m2(A-21) m3(A-36) m7(A-50) m5(A-50)" + others + "true 2 of 2"},
		"34: descending": {
			fleet: clusters("a,b,c").set("x", "a=0 b=1 c=2"), policy: pickN(3, sortBy(5, "", "x", api.Descending)),
			want: "in: c(A5) b(A3) a\ntrue 3 of 3"},
		"34: ascending": {
			fleet: clusters("a,b,c").set("x", "a=0 b=1 c=2"), policy: pickN(3, sortBy(5, "", "x", api.Ascending)),
			want: "in: a(A5) b(A3) c\ntrue 3 of 3"},
		"34: descending, negative": {
			fleet: clusters("a,b,c").set("x", "a=0 b=1 c=2"), policy: pickN(3, sortBy(-5, "", "x", api.Descending)),
			want: "in: a b(A-3) c(A-5)\ntrue 3 of 3"},
		"35: descending": {
			fleet: clusters("a,b,c").set("x", "a=10 b=20 c=100"), policy: pickN(3, sortBy(100, "", "x", api.Descending)),
			want: "in: c(A100) b(A11) a\ntrue 3 of 3"},
		"35: ascending": {
			fleet: clusters("a,b,c").set("x", "a=10 b=20 c=100"), policy: pickN(3, sortBy(100, "", "x", api.Ascending)),
			want: "in: a(A100) b(A89) c\ntrue 3 of 3"},
		"36: taints": {
			fleet: theFleet().tainted("m1", "m4", "m7"), policy: pickN(3),
			want: "in: m6 m5 m3\nlost: m2\nout: m1 m4 m7 m8 m9\ntrue 3 of 3"},
		"36a: all who match are tainted": {
			fleet: theFleet().tainted("m1", "m2"), policy: pickN(2, require("region=east,env=prod")),
			want: "in:\nout: m1 m2 m3 m4 m5 m6 m7 m8 m9\nfalse 0 of 2"},
		"36b: and are tolerated": {
			fleet: theFleet().tainted("m1", "m2"), policy: pickN(2, require("region=east,env=prod"), tolerate(eastProd)),
			want: "in: m2 m1\nout: m3 m4 m5 m6 m7 m8 m9\ntrue 2 of 2"},
		"50: the documented sample": {
			fleet: clusters("k1 critical-allowed=true critical-level=1,k2 critical-allowed=true critical-level=2," +
				"k3 critical-allowed=true,k4 critical-allowed=false critical-level=1,k5 critical-allowed=true critical-level=1"),
			policy: pickN(3, require("critical-allowed=true"), prefer(20, "critical-level=1")),
			want:   "in: k5(A20) k1(A20) k3\nlost: k2\nout: k4\ntrue 3 of 3"},
		"names are compared bytewise": {
			fleet: clusters("m10,m2,m9"), policy: pickN(1), want: "in: m9\nlost: m2 m10\ntrue 1 of 1"},
		"weight zero counts for nothing": {
			fleet: clusters("a,b").set("x", "a=9 b=1"), policy: pickN(1, sortBy(0, "", "x", api.Descending)),
			want: "in: b\nlost: a\ntrue 1 of 1"},
		"a cluster that lacks the property gets nothing for it": {
			fleet: clusters("a,b,c").set("x", "a=1 b=9"), policy: pickN(1, sortBy(10, "", "x", api.Ascending)),
			want: "in: a(A10)\nlost: c b\ntrue 1 of 1"},
	})
}

func TestPickNSpreads(t *testing.T) {
	zones := func() fleet { return clusters("a1 zone=a,a2 zone=a,a3 zone=a,b1 zone=b") }
	const region = filteredBy + `violated doNotSchedule topology spread constraint "region" (max skew 1)`
	run(t, map[string]example{
		"37: what is left was judged at the last pick": {
			policy:  pickN(2, spreadHard("region", 1)),
			want:    "in: m7(T-1) m5\nlost: m4 m3 m2 m1\nout: m6 m8 m9\ntrue 2 of 2",
			reasons: map[string]string{"m6": region}},
		"38: two hard constraints": {
			policy: pickN(2, spreadHard("region", 1), spreadHard("env", 1)),
			want:   "in: m7(T-2) m5(T1)\nlost: m4(T1) m2(T1) m1(T1)\nout: m3 m6 m8 m9\ntrue 2 of 2",
			reasons: map[string]string{
				"m3": filteredBy + `violated doNotSchedule topology spread constraint "env" (max skew 1)`, "m6": region,
			}},
		"39: a soft constraint": {
			policy: pickN(2, spreadSoft("region", 1)),
			want:   "in: m7(T-1) m5\nlost: m4 m3 m2 m1 m6(T-1000)\nout: m8 m9\ntrue 2 of 2"},
		"40: two soft constraints": {
			policy: pickN(2, spreadSoft("region", 1), spreadSoft("env", 1)),
			want:   "in: m7(T-2) m5(T1)\nlost: m4(T1) m2(T1) m1(T1) m6(T-999) m3(T-1000)\nout: m8 m9\ntrue 2 of 2"},
		"41: a domain nobody may be chosen from counts": {
			policy: pickN(2, require("region notin (west)"), spreadHard("region", 1)),
			want:   "in: m5(T-1) m3\nlost: m2 m1\nout: m4 m6 m7 m8 m9\ntrue 2 of 2"},
		"42: spread outranks affinity": {
			policy: pickN(6, prefer(30, "region=east"), spreadSoft("env", 1)),
			want:   "in: m3(A30,T-1) m2(A30,T1) m1(A30,T-1) m7(T1) m6(T-1) m5(T-1000)\nlost: m4(T-1000)\nout: m8 m9\ntrue 6 of 6"},
		"42a: hard and soft": {
			policy: pickN(3, require("env=prod"), prefer(40, "region=east"), spreadSoft("env", 2), spreadHard("region", 1)),
			want:   "in: m2(A40,T-2) m6(T-1) m5(T-999)\nlost: m4(T-999)\nout: m1 m3 m7 m8 m9\ntrue 3 of 3"},
		"44: an unusable domain keeps the others low": {
			fleet: zones().ill("b1"), policy: pickN(3, spreadHard("zone", 1)),
			want: "in: a3(T-1)\nout: a1 a2 b1\nfalse 1 of 3"},
		"45: as far as the skew allows": {
			fleet: zones().ill("b1"), policy: pickN(3, spreadHard("zone", 2)),
			want: "in: a3(T-1) a2(T-1)\nout: a1 b1\nfalse 2 of 3"},
		"46: a soft constraint only costs": {
			fleet: zones().ill("b1"), policy: pickN(3, spreadSoft("zone", 1)),
			want: "in: a3(T-1) a2(T-1000) a1(T-1000)\nout: b1\ntrue 3 of 3"},
		"47: who lacks the label is in no domain": {
			fleet: clusters("a1 zone=a,a2 zone=a,b1 zone=b,n1"), policy: pickN(4, spreadHard("zone", 1)),
			want: "in: n1 b1(T-1) a2(T1) a1(T-1)\ntrue 4 of 4"},
		"48: a single domain": {
			fleet: zones().without("b1"), policy: pickN(3, spreadHard("zone", 1)),
			want: "in: a3(T-1) a2(T-1) a1(T-1)\ntrue 3 of 3"},
		"49: all of the fleet": {
			policy: pickN(7, spreadHard("region", 1)),
			want:   "in: m7(T-1) m5 m3(T1) m6(T-1) m4 m2(T1) m1(T-1)\nout: m8 m9\ntrue 7 of 7"},
		"51: the documented sample": {
			fleet: clusters("k1 region=eu updateDay=mon,k2 region=eu updateDay=tue,k3 region=eu updateDay=mon," +
				"k4 region=us updateDay=tue,k5 region=us updateDay=tue,k6 region=us updateDay=wed"),
			policy: pickN(4, spreadHard("region", 2), spreadSoft("updateDay", 2)),
			want:   "in: k6(T-2) k3(T1) k5 k2\nlost: k1 k4(T-2)\ntrue 4 of 4"},
		"the empty value is a domain": {
			fleet: clusters("a zone=,b zone=x"), policy: pickN(2, spreadHard("zone", 1)),
			want: "in: b(T-1) a(T1)\ntrue 2 of 2"},
		"nobody has the label": {
			fleet: clusters("a,b"), policy: pickN(2, spreadHard("zone", 1)), want: "in: b a\ntrue 2 of 2"},
		"the hard constraints are named first": {
			fleet:   clusters("a1 zone=a rack=1,a2 zone=a rack=1,b1 zone=b rack=2").ill("b1"),
			policy:  pickN(2, spreadSoft("rack", 1), spreadHard("zone", 1)),
			want:    "in: a2(T-2)\nout: a1 b1\nfalse 1 of 2",
			reasons: map[string]string{"a1": filteredBy + `violated doNotSchedule topology spread constraint "zone" (max skew 1)`}},
	})
}

func TestNamespaceOfAResourcePlacementMustExist(t *testing.T) {
	f := theFleet()
	for _, name := range []string{"m1", "m2", "m3"} {
		f.get(name).Namespaces = []string{"ns"}
	}
	f.get("m4").Namespaces = []string{"other"}
	f.get("m5").NamespacesUnknown = true
	rp := api.PlacementKey{Namespace: "ns", Name: "web"}

	o := placement.Schedule(placement.Request{Key: rp, Clusters: f})
	if got, want := tell(o), "in: m1 m2 m3 m6 m7\nout: m4 m5 m8 m9\ntrue 5 of 5"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := reasonOf(t, o, "m4"), filteredBy+"target namespace does not exist on cluster"; got != want {
		t.Errorf("m4: %s, want %s", got, want)
	}
	if got, want := reasonOf(t, o, "m5"), filteredBy+"cluster has no namespace information available"; got != want {
		t.Errorf("m5: %s, want %s", got, want)
	}

	o = placement.Schedule(placement.Request{Key: crp, Clusters: f})
	if got, want := tell(o), "in: m1 m2 m3 m4 m5 m6 m7\nout: m8 m9\ntrue 7 of 7"; got != want {
		t.Errorf("of a ClusterResourcePlacement: got\n%s\nwant\n%s", got, want)
	}
}
