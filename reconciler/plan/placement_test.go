package plan

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The decisions are those on selected clusters, and one more for each missing cluster.
func TestShortDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		selected, others, wanted, want int
	}{
		"none is missing":  {2, 5, 2, 2},
		"one is missing":   {2, 5, 3, 3},
		"many are missing": {2, 5, 10, 7},
		"all are selected": {3, 0, 3, 3},
		"no clusters":      {0, 0, 3, 0},
		"none is selected": {0, 4, 1, 1},
		"more than wanted": {3, 2, 1, 3},
	} {
		o := placement.Outcome{Wanted: test.wanted, Found: test.selected}
		for i := range test.selected + test.others {
			o.Decisions = append(o.Decisions, placement.Decision{Selected: i < test.selected})
		}
		if got := len(shortDecisions(o)); got != test.want {
			t.Errorf("%s: %d decisions, want %d", name, got, test.want)
		}
	}
}

// Bindings that were rebuilt after the ledger was lost are assigned to the current policy, up to
// the number of clusters that it requests, those with the larger names first.
func TestAdoptFound(t *testing.T) {
	two := int32(2)
	pickN := &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &two}
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		bindings string // NAME=found, bound or leaving
		want     string // the adopted ones
	}{
		"no policy":              {nil, "a=found b=found", "a b"},
		"as many as wanted":      {pickN, "a=found b=found", "a b"},
		"more than wanted":       {pickN, "a=found b=found c=found", "b c"},
		"some are bound already": {pickN, "a=found b=bound c=found", "c"},
		"one is unscheduled":     {pickN, "a=found b=leaving c=found", "a c"},
		"all are bound already":  {pickN, "a=bound b=bound c=found", ""},
		"PickFixed":              {&api.PlacementPolicy{PlacementType: api.PickFixed}, "a=found", ""},
		"only unscheduled":       {nil, "a=leaving", ""},
		"no bindings":            {pickN, "", ""},
	} {
		var bs []placement.Binding
		for word := range strings.FieldsSeq(test.bindings) {
			name, what, _ := strings.Cut(word, "=")
			b := placement.Binding{Cluster: name, Unscheduled: what == "leaving"}
			if what == "bound" {
				b.Policy = "earlier"
			}
			bs = append(bs, b)
		}
		var adopted []string
		for _, b := range adoptFound(test.policy, bs) {
			if b.Policy == placement.PolicyHash(test.policy) {
				adopted = append(adopted, b.Cluster)
			}
		}
		if got := strings.Join(adopted, " "); got != test.want {
			t.Errorf("%s: adopted %q, want %q", name, got, test.want)
		}
	}
}
