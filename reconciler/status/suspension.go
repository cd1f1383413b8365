package status

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Suspension is what somebody wants left as it is: watched and told of, and
// never written. Of Placement and Object at most one is not empty.
type Suspension struct {
	// Subject names it for a person.
	Subject   string `json:"subject"`
	Placement string `json:"placement,omitempty"`
	Object    api.ID `json:"object,omitzero"`
	// Cluster is empty for every cluster.
	Cluster string    `json:"cluster,omitempty"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	// Until is zero if it does not end by itself.
	Until time.Time `json:"until,omitzero"`
}

// suspensions are those in force, by subject.
func suspensions(in Input) []Suspension {
	var out []Suspension
	for _, s := range in.Ledger.Suspensions() {
		if s.Ended(in.Now) {
			continue
		}
		x := Suspension{
			Subject: s.Subject.String(), Object: s.Object, Cluster: s.Cluster,
			By: s.By, Reason: s.Reason, Since: s.Since, Until: s.Until,
		}
		if s.Placement != (api.PlacementKey{}) {
			x.Placement = s.Placement.String()
		}
		out = append(out, x)
	}
	return out
}

// suspended says why something is left as it is; empty if it is not.
func suspended(in Input, s ledger.Subject) string {
	if x, ok := in.Ledger.Suspension(s); ok && !x.Ended(in.Now) {
		return x.String()
	}
	return ""
}
