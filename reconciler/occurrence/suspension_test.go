package occurrence

import (
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A suspension that begins or changes is an occurrence of who ordered it, and one that ends of who ended it or, if its time is over, of who
// had ordered it. The names of the events follow from its effect.
func TestChangesOfSuspensions(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web := ledger.Subject{Placement: api.PlacementKey{Name: "web"}}
	all := func(all ...ledger.Suspension) []ledger.Suspension { return all }
	suspension := func(s ledger.Subject, until time.Time) ledger.Suspension {
		return ledger.Suspension{Subject: s, By: "ada", Reason: "INC-1", Since: at.Add(-time.Hour), Until: until}
	}
	is := suspension(web, time.Time{})
	for name, test := range map[string]struct {
		was, is []ledger.Suspension
		want    []string
	}{
		"unchanged":     {all(is), all(is), nil},
		"begun":         {nil, all(is), []string{"suspended crp/web by ada: INC-1; begun"}},
		"with an end":   {nil, all(suspension(web, at.Add(time.Hour))), []string{"suspended crp/web by ada: INC-1, until 2026-03-01T13:00:00Z; begun"}},
		"changed":       {all(is), all(suspension(web, at.Add(time.Hour))), []string{"suspended crp/web by ada: INC-1, until 2026-03-01T13:00:00Z; begun"}},
		"ended":         {all(is), nil, []string{"resumed crp/web by bob: it was suspended by ada: INC-1; ended"}},
		"its time over": {all(suspension(web, at)), nil, []string{"ended crp/web by ada: it was suspended by ada until 2026-03-01T12:00:00Z: INC-1; ended"}},
		"a freeze":      {nil, all(suspension(ledger.Subject{Effect: ledger.Freezes}, time.Time{})), []string{"frozen  by ada: INC-1; begun"}},
		"it is over":    {all(suspension(ledger.Subject{Effect: ledger.Freezes}, time.Time{})), nil, []string{"unfrozen  by bob: it was frozen by ada: INC-1; ended"}},
		"a drained cluster, and an object": {
			all(suspension(ledger.Subject{Cluster: "east", Effect: ledger.Cordons}, time.Time{})), all(suspension(ledger.Subject{Object: one}, time.Time{})),
			[]string{"suspended ConfigMap/web/one by ada: INC-1; begun", "uncordoned east by bob: it was cordoned by ada: INC-1; ended"},
		},
	} {
		var got []string
		for _, o := range OfSuspensions(test.was, test.is, "bob", at) {
			text := string(o.Event) + " " + o.Placement + o.Cluster + o.Object + " by " + o.By + ": " + o.Message
			if o.Suspended != nil {
				text += "; begun"
			}
			if o.Resumed != nil {
				text += "; ended"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
