package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

func TestPlacementsLookAtEachOther(t *testing.T) {
	others := map[string][]string{"db": {"m1", "m4", "m8"}, "cache": {"m4", "m5"}}
	tests := map[string]struct {
		policy *api.PlacementPolicy
		want   string
		notes  []string
	}{
		"where another one is": {pickAll(followed("db")), "in: m1 m4\nout: m2 m3 m5 m6 m7 m8 m9\ntrue 2 of 2", nil},
		"where both are":       {pickN(2, followed("db", "cache")), "in: m4\nout: m1 m2 m3 m5 m6 m7 m8 m9\nfalse 1 of 2", nil},
		"where neither is":     {pickAll(avoided("db", "cache")), "in: m2 m3 m6 m7\nout: m1 m4 m5 m8 m9\ntrue 4 of 4", nil},
		"with one, without the other": {
			policy: func() *api.PlacementPolicy {
				p := pickAll(followed("db"))
				p.Affinity.PlacementAntiAffinity = []api.PlacementReference{{Name: "cache"}}
				return p
			}(),
			want: "in: m1\nout: m2 m3 m4 m5 m6 m7 m8 m9\ntrue 1 of 1"},
		"one that does not exist is nowhere": {
			pickAll(followed("gone")), "in:\nout: m1 m2 m3 m4 m5 m6 m7 m8 m9\ntrue 0 of 0",
			[]string{`spec.policy.affinity.placementAffinity: there is no placement "gone", so it holds no cluster`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := placement.Schedule(placement.Request{Key: crp, Policy: test.policy, Clusters: theFleet(), Others: others})
			if got := tell(o); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if !slices.Equal(o.Notes, test.notes) {
				t.Errorf("notes %q, want %q", o.Notes, test.notes)
			}
		})
	}
}

func TestSequencePutsOthersFirst(t *testing.T) {
	key := func(name string) api.PlacementKey { return api.PlacementKey{Name: name} }
	tests := map[string]struct {
		policies map[api.PlacementKey]*api.PlacementPolicy
		want     string
	}{
		"by key":   {map[api.PlacementKey]*api.PlacementPolicy{key("b"): nil, key("a"): pickN(1), {Namespace: "ns", Name: "0"}: nil}, "[crp/a crp/b rp/ns/0]"},
		"a chain":  {map[api.PlacementKey]*api.PlacementPolicy{key("a"): pickAll(followed("b")), key("b"): pickAll(avoided("c")), key("c"): nil}, "[crp/c crp/b crp/a]"},
		"a circle": {map[api.PlacementKey]*api.PlacementPolicy{key("a"): pickAll(avoided("b")), key("b"): pickAll(avoided("a")), key("c"): nil}, "[crp/b crp/a crp/c]"},
		"itself":   {map[api.PlacementKey]*api.PlacementPolicy{key("a"): pickAll(avoided("a"))}, "[crp/a]"},
		"nobody":   {map[api.PlacementKey]*api.PlacementPolicy{key("a"): pickAll(followed("gone"))}, "[crp/a]"},
		"names are of the same namespace": {map[api.PlacementKey]*api.PlacementPolicy{
			{Namespace: "n", Name: "a"}: pickAll(followed("z")), key("z"): nil, {Namespace: "n", Name: "z"}: nil,
		}, "[crp/z rp/n/z rp/n/a]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(placement.Sequence(test.policies)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Two placements with mutual anti-affinity are stable after the first turn.
func TestPlacementsThatAvoidEachOtherSettle(t *testing.T) {
	policies := map[api.PlacementKey]*api.PlacementPolicy{
		{Name: "a"}: pickN(3, avoided("b")), {Name: "b"}: pickN(3, avoided("a")),
	}
	held := map[string][]placement.Binding{}
	turn := func() string {
		now := ""
		for _, key := range placement.Sequence(policies) {
			others := map[string][]string{}
			for name := range policies {
				others[name.Name] = names(held[name.Name])
			}
			o := placement.Schedule(placement.Request{
				Key: key, Policy: policies[key], Clusters: theFleet(), Bindings: held[key.Name], Others: others,
			})
			held[key.Name] = o.Bindings
			now += key.Name + " " + holds(o.Bindings) + "; "
		}
		return now
	}
	first := turn()
	if want := "b m5 m6 m7; a m2 m3 m4; "; first != want {
		t.Errorf("settled on %s, want %s", first, want)
	}
	if again := turn(); again != first {
		t.Errorf("then moved to %s", again)
	}
}

func names(bindings []placement.Binding) []string {
	var all []string
	for _, b := range bindings {
		if !b.Unscheduled {
			all = append(all, b.Cluster)
		}
	}
	return all
}

func TestTolerations(t *testing.T) {
	taint := api.Taint{Key: "k", Value: "v", Effect: api.NoSchedule}
	tests := map[string]struct {
		toleration api.Toleration
		want       bool
	}{
		"equal":                  {api.Toleration{Key: "k", Operator: api.TolerationEqual, Value: "v", Effect: api.NoSchedule}, true},
		"equal by default":       {api.Toleration{Key: "k", Value: "v"}, true},
		"another value":          {api.Toleration{Key: "k", Value: "w"}, false},
		"another key":            {api.Toleration{Key: "l", Value: "v"}, false},
		"another effect":         {api.Toleration{Key: "k", Value: "v", Effect: "NoExecute"}, false},
		"exists":                 {api.Toleration{Key: "k", Operator: api.TolerationExists}, true},
		"exists with any key":    {api.Toleration{Operator: api.TolerationExists}, true},
		"exists, another key":    {api.Toleration{Key: "l", Operator: api.TolerationExists}, false},
		"exists, another effect": {api.Toleration{Operator: api.TolerationExists, Effect: "NoExecute"}, false},
		"no such operator":       {api.Toleration{Key: "k", Operator: "Like", Value: "v"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := clusters("a")
			f[0].Taints = []api.Taint{taint}
			o := placement.Schedule(placement.Request{Key: crp, Policy: pickAll(tolerate(test.toleration)), Clusters: f})
			if got := o.Found == 1; got != test.want {
				t.Errorf("tolerated: %t, want %t", got, test.want)
			}
		})
	}
}

func TestNotesNameWhatCannotBeRead(t *testing.T) {
	f := theFleet()
	for i := range f {
		f[i].Malformed = map[string]string{"version": "v1." + f[i].Name}
	}
	p := pickN(1, require("version Ge 1"), require("rating Like 3"), sortBy(1, "", "moons", api.Descending))
	affinity(p).Required.ClusterSelectorTerms[1].LabelSelector = labelsOf("env")
	affinity(p).Required.ClusterSelectorTerms[1].LabelSelector.MatchExpressions[0].Operator = "Like"
	o := placement.Schedule(placement.Request{Key: crp, Policy: p, Clusters: f})

	const at = "spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[1]"
	want := []string{
		at + `.labelSelector: "Like" is not a valid label selector operator, so it matches no cluster`,
		at + `.propertySelector.matchExpressions[0]: operator "Like" is none of Gt, Ge, Eq, Ne, Lt, Le, so it matches no cluster`,
		`property "version" is not a quantity on 9 cluster(s) and counts as unknown there: m1 ("v1.m1"), m2 ("v1.m2"), m3 ("v1.m3"), m4 ("v1.m4"), m5 ("v1.m5") and 4 more`,
		`no cluster reports property "moons"`,
	}
	if !slices.Equal(o.Notes, want) {
		t.Errorf("notes\n%q\nwant\n%q", o.Notes, want)
	}
	if got, want := reasonOf(t, o, "m2"), mismatch+`; property "version" is unknown, because its value "v1.m2" is not a quantity`; got != want {
		t.Errorf("m2: %s, want %s", got, want)
	}
}

// A policy that validation would have refused changes no binding.
func TestBrokenPolicyMovesNothing(t *testing.T) {
	for name, p := range map[string]*api.PlacementPolicy{"type": policy("PickBest"), "N": policy(api.PickN)} {
		o := placement.Schedule(placement.Request{Key: crp, Policy: p, Clusters: theFleet(), Bindings: bound(nil, "*m1 -m2")})
		if got, want := holds(o.Bindings), "*m1 -m2"; got != want || o.Fulfilled {
			t.Errorf("%s: holds %s, fulfilled: %t, want %s and not", name, got, o.Fulfilled, want)
		}
		if got, want := tell(o), "in: m1\nout: m2 m3 m4 m5 m6 m7 m8 m9\nfalse 1 of 0"; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestScheduledMessage(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{placement.ScheduledReason(true), "SchedulingPolicyFulfilled"},
		{placement.ScheduledMessage(true, 3), "found all cluster needed as specified by the scheduling policy, found 3 cluster(s)"},
		{placement.ScheduledReason(false), "SchedulingPolicyUnfulfilled"},
		{placement.ScheduledMessage(false, 0), "could not find all clusters needed as specified by the scheduling policy, found 0 cluster(s) instead"},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
	}
}
