package placement_test

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Bindings store this hash. If it changed, every placement of every fleet would be scheduled
// again. So these values must never change.
func TestPolicyHashIsForEver(t *testing.T) {
	everything := pickN(3,
		require("env in (prod); nodes Ge 3"), prefer(7, "tier"), sortBy(-5, "", "cost", api.Ascending),
		spreadHard("zone", 1), spreadSoft("rack", 2), tolerate(eastProd, anyWest), followed("db"))
	everything.Affinity.PlacementAntiAffinity = []api.PlacementReference{{Name: "cache"}}
	tests := map[string]struct {
		policy *api.PlacementPolicy
		want   string
	}{
		"absent":     {nil, "8cc57dee59684ff88766e26936c8fb125f4bde234a2beb5c54aded4569db0d5a"},
		"names":      {pickFixed("b a"), "d877b9577e3fc823a57b516b2fd29f9ba962cc5b20e15587b0c3f1120602c701"},
		"everything": {everything, "4035060d5170ebd6fe4c41988f0f3ebefd0bb55b6219957f11a38cd0fdea7fb2"},
	}
	for name, test := range tests {
		if got := placement.PolicyHash(test.policy); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestPolicyHashKnowsOnlyTheMeaning(t *testing.T) {
	one := int32(1)
	tests := map[string]struct {
		a, b *api.PlacementPolicy
		same bool
	}{
		"absent is PickAll":             {nil, pickAll(), true},
		"the default type":              {&api.PlacementPolicy{}, pickAll(), true},
		"another N":                     {pickN(1), pickN(2), true},
		"an affinity that asks nothing": {pickAll(), pickAll(func(p *api.PlacementPolicy) { affinity(p).Required = &api.ClusterSelector{} }), true},
		"lists that are empty": {pickN(1), func() *api.PlacementPolicy {
			p := pickN(1)
			p.ClusterNames, p.Tolerations, p.TopologySpreadConstraints = []string{}, []api.Toleration{}, []api.TopologySpreadConstraint{}
			return p
		}(), true},
		"the default of a constraint": {
			policy(api.PickN, func(p *api.PlacementPolicy) {
				p.TopologySpreadConstraints = []api.TopologySpreadConstraint{{TopologyKey: "zone"}}
			}),
			policy(api.PickN, func(p *api.PlacementPolicy) {
				p.TopologySpreadConstraints = []api.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: &one, WhenUnsatisfiable: api.DoNotSchedule}}
			}), true},
		"the default of a toleration": {
			pickAll(tolerate(api.Toleration{Key: "k", Value: "v"})),
			pickAll(tolerate(api.Toleration{Key: "k", Value: "v", Operator: api.TolerationEqual})), true},

		"another type":             {pickAll(), pickN(1), false},
		"another name":             {pickFixed("a"), pickFixed("b"), false},
		"another order of names":   {pickFixed("a b"), pickFixed("b a"), false},
		"another weight":           {pickN(1, prefer(1, "a=b")), pickN(1, prefer(2, "a=b")), false},
		"another placement beside": {pickAll(followed("x")), pickAll(avoided("x")), false},
		"an empty term":            {pickAll(), pickAll(require("")), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if same := placement.PolicyHash(test.a) == placement.PolicyHash(test.b); same != test.same {
				t.Errorf("same: %t, want %t", same, test.same)
			}
		})
	}
}

func TestReferencedProperties(t *testing.T) {
	tests := map[string]struct {
		policy *api.PlacementPolicy
		want   []string
	}{
		"no policy":   {nil, nil},
		"no affinity": {pickAll(), nil},
		"labels":      {pickN(1, require("env=prod"), prefer(1, "env=prod")), nil},
		"each once": {pickN(1, require("nodes Ge 3; cost Lt 5"), require("nodes Ge 9"), prefer(1, "env=prod"),
			sortBy(1, "", "cost", api.Ascending), sortBy(1, "", "age", api.Descending)), []string{"nodes", "cost", "age"}},
	}
	for name, test := range tests {
		if got := placement.ReferencedProperties(test.policy); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
