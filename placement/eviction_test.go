package placement

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
)

// evictableText returns bindings a, b, c, … from one letter each: A available, N not, F failed, R being removed, U not
// released, S suspended.
func evictableText(text string) (all []EvictableBinding) {
	for i, state := range text {
		all = append(all, EvictableBinding{
			Cluster: string(rune('a' + i)), Released: state != 'U', Available: strings.ContainsRune("ARS", state), Failed: state == 'F', Removing: state == 'R',
			Blocked: map[rune]string{'S': "it is suspended"}[state],
		})
	}
	return all
}

func budgetOf(text string) *api.DisruptionBudgetSpec {
	field, value, set := strings.Cut(text, " ")
	v := intstr.Parse(value)
	switch {
	case text == "":
		return nil
	case !set:
		return &api.DisruptionBudgetSpec{}
	case field == "max":
		return &api.DisruptionBudgetSpec{MaxUnavailable: &v}
	}
	return &api.DisruptionBudgetSpec{MinAvailable: &v}
}

// The judgements and messages are those of KubeFleet.
func TestJudge(t *testing.T) {
	pick := func(n int32) *api.PlacementPolicy {
		return &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &n}
	}
	counts := func(a, n int) string {
		return fmt.Sprintf(" by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d", a, n)
	}
	const invalid, blocked, allowed = "invalid: ", "blocked: Eviction is blocked", "executed: Eviction is allowed"
	const misconfigured = " by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		budget   string
		bindings string // the eviction is from a
		want     string
	}{
		"PickFixed":                      {&api.PlacementPolicy{PlacementType: api.PickFixed}, "", "A", invalid + "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction"},
		"not there":                      {nil, "", "", invalid + "Failed to find scheduler decision for placement in cluster targeted by eviction"},
		"being removed":                  {nil, "min 5", "R", allowed + ", resources propagated by placement is currently being removed from cluster targeted by eviction"},
		"nothing released":               {nil, "", "U", blocked + ", placement has not propagated resources to target cluster yet"},
		"suspended":                      {nil, "", "S", blocked + ", it is suspended"},
		"failed":                         {nil, "min 5", "FA", allowed + ", placement has failed"},
		"no budget":                      {nil, "", "A", allowed + ", no ClusterResourcePlacementDisruptionBudget specified"},
		"an empty budget":                {nil, "none", "AA", blocked + counts(2, 2)},
		"PickAll with max":               {nil, "max 1", "AA", blocked + misconfigured},
		"PickAll with a share":           {nil, "min 10%", "AA", blocked + misconfigured},
		"max 0":                          {pick(1), "max 0", "A", blocked + counts(1, 1)},
		"max 1":                          {pick(1), "max 1", "A", allowed + counts(1, 1)},
		"max 1, one is not":              {pick(2), "max 1", "AN", blocked + counts(1, 2)},
		"max 1, one is removed":          {pick(2), "max 1", "AR", blocked + counts(1, 2)},
		"max 10% of 1 is rounded up":     {pick(1), "max 10%", "A", allowed + counts(1, 1)},
		"max 100%, none is available":    {pick(2), "max 100%", "NN", blocked + counts(0, 2)},
		"min 0, none is available":       {nil, "min 0", "N", blocked + counts(0, 1)},
		"min 0":                          {nil, "min 0", "A", allowed + counts(1, 1)},
		"min 1":                          {nil, "min 1", "A", blocked + counts(1, 1)},
		"min 1 of two":                   {nil, "min 1", "AA", allowed + counts(2, 2)},
		"min 1 of two, one removed":      {nil, "min 1", "AR", blocked + counts(1, 2)},
		"min 100% of 2, three available": {pick(2), "min 100%", "AAA", allowed + counts(3, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evictable{Policy: test.policy, Budget: budgetOf(test.budget), Bindings: evictableText(test.bindings)}
			j := e.Judge("a")
			got := map[[2]bool]string{{false, false}: invalid, {true, false}: "blocked: ", {true, true}: "executed: "}[[2]bool{j.Valid, j.Executed}] + j.Message
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	deleting := Evictable{Deleting: true, Bindings: evictableText("A")}
	if j := deleting.Judge("a"); j.Valid || j.Message != "Found deleting ClusterResourcePlacement targeted by eviction" {
		t.Errorf("deleting: %+v", j)
	}
}

// However many evictions are judged one after the other, a budget is kept.
func TestEvictionsKeepTheBudget(t *testing.T) {
	three := int32(3)
	for _, budget := range []string{"min 1", "min 2", "max 1", "max 2", "min 50%", "max 34%"} {
		for bits := range 1 << 5 {
			text := ""
			for i := range 5 {
				text += string("AN"[bits>>i&1])
			}
			e := Evictable{Policy: &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &three}, Budget: budgetOf(budget), Bindings: evictableText(text)}
			before := strings.Count(text, "A")
			left := before
			for i := range e.Bindings {
				if e.Judge(e.Bindings[i].Cluster).Executed {
					e.Bindings[i].Removing = true
					left -= map[bool]int{true: 1}[e.Bindings[i].Available]
				}
			}
			least := map[string]int{"min 1": 1, "min 2": 2, "max 1": 4, "max 2": 3, "min 50%": 2, "max 34%": 3}[budget]
			if left < min(least, before) {
				t.Errorf("%s with %s: %d are left available, want %d", budget, text, left, least)
			}
		}
	}
}
