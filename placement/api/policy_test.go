package api

import "testing"

// A policy is summarized by its type, and by the number of clusters of PickN.
func TestPolicySummary(t *testing.T) {
	for name, test := range map[string]struct {
		of   *PlacementPolicy
		want string
	}{
		"none":         {nil, "PickAll"},
		"no type":      {&PlacementPolicy{}, "PickAll"},
		"a number":     {&PlacementPolicy{PlacementType: PickN, NumberOfClusters: new(int32(0))}, "PickN 0"},
		"fixed names":  {&PlacementPolicy{PlacementType: PickFixed, ClusterNames: []string{"east"}}, "PickFixed"},
		"all clusters": {&PlacementPolicy{PlacementType: PickAll}, "PickAll"},
	} {
		if got := test.of.Summary(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
