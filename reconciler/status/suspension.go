package status

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Suspension is something that is watched and reported but not written, because a user
// suspended it. At most one of Placement and Object is set.
type Suspension struct {
	Subject   string    `json:"subject"` // what is suspended, as text
	Placement string    `json:"placement,omitempty"`
	Object    api.ID    `json:"object,omitzero"`
	Cluster   string    `json:"cluster,omitempty"` // empty for every cluster
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"` // zero if there is no end
	// Effect is empty if nothing is written, and freeze if only new content waits. A freeze of no
	// placement is one of the whole fleet.
	Effect ledger.Effect `json:"effect,omitempty"`
}

// suspensions returns the suspensions in force, by subject.
func suspensions(in Input) []Suspension {
	var out []Suspension
	for _, s := range in.Ledger.Suspensions() {
		if s.Ended(in.Now) {
			continue
		}
		x := Suspension{Subject: s.Subject.String(), Object: s.Object, Cluster: s.Cluster, By: s.By, Reason: s.Reason, Since: s.Since, Until: s.Until, Effect: s.Effect}
		if s.Placement != (api.PlacementKey{}) {
			x.Placement = s.Placement.String()
		}
		out = append(out, x)
	}
	return out
}

// suspended says why a subject is suspended; empty if it is not.
func suspended(in Input, s ledger.Subject) string {
	if x, ok := in.Ledger.Suspension(s); ok && !x.Ended(in.Now) {
		return x.String()
	}
	return ""
}
