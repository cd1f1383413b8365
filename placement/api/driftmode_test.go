package api

import (
	"testing"
	"time"
)

// The most specific rule that is valid and has not ended applies.
func TestDriftRules(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	const over, until = "report until 2026-06-01T00:00:00Z", "propose until 2026-06-01T00:00:01Z"
	for name, test := range map[string]struct {
		rules DriftRules
		want  string
	}{
		"nothing written":                     {DriftRules{Fleet: DriftRevert}, "revert"},
		"a cluster before the fleet":          {DriftRules{Cluster: "report", Fleet: DriftRevert}, "report"},
		"a placement before its clusters":     {DriftRules{Placement: "propose", Cluster: "report", Fleet: DriftRevert}, "propose"},
		"a kind before placements":            {DriftRules{Kind: DriftRevert, Placement: "propose", Cluster: "report", Fleet: DriftPropose}, "revert"},
		"an object before its kind":           {DriftRules{Object: "report", Kind: DriftRevert, Placement: "propose", Cluster: "propose", Fleet: DriftRevert}, "report"},
		"a kind before clusters":              {DriftRules{Kind: DriftPropose, Cluster: "report", Fleet: DriftRevert}, "propose"},
		"until a time":                        {DriftRules{Cluster: until, Fleet: DriftRevert}, until},
		"an object whose time is over":        {DriftRules{Object: over, Kind: DriftPropose, Fleet: DriftRevert}, "propose"},
		"a placement whose time is over":      {DriftRules{Placement: over, Cluster: "propose", Fleet: DriftRevert}, "propose"},
		"the times of all are over":           {DriftRules{Object: over, Placement: over, Cluster: over, Fleet: DriftRevert}, "revert"},
		"invalid values count as not written": {DriftRules{Object: "merge", Placement: "propose until tomorrow", Cluster: "report", Fleet: DriftRevert}, "report"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.rules.At(now).String(); got != test.want {
				t.Errorf("%+v: %s, want %s", test.rules, got, test.want)
			}
		})
	}
}

// Drift is present until it is reverted or has ended by itself.
func TestPresentDrift(t *testing.T) {
	for state, want := range map[DriftState]bool{
		DriftStanding: true, DriftHeld: true, DriftAdded: true, DriftContested: true, DriftIgnored: true, DriftAltered: true, DriftForeign: true,
		DriftRepaired: false, DriftEnded: false,
	} {
		if state.Present() != want {
			t.Errorf("%s is present: %t", state, !want)
		}
	}
}
