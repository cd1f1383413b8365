package status

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
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
	// Effect is empty if nothing is written, and freeze if only new content is held. A freeze of no
	// placement is one of the whole fleet.
	Effect ledger.Effect `json:"effect,omitempty"`
}

// suspensions returns the suspensions in force, by subject.
func suspensions(in Input) []Suspension {
	inForce := suspensionsInForce(in)
	var out []Suspension
	for _, subject := range slices.SortedFunc(maps.Keys(inForce), ledger.Subject.Compare) {
		s := inForce[subject]
		x := Suspension{Subject: subject.String(), Object: s.Object, Cluster: s.Cluster, By: s.By, Reason: s.Reason, Since: s.Since, Until: s.Until, Effect: s.Effect}
		if s.Placement != (api.PlacementKey{}) {
			x.Placement = s.Placement.String()
		}
		out = append(out, x)
	}
	return out
}

func suspensionsInForce(in Input) map[ledger.Subject]ledger.Suspension {
	out := map[ledger.Subject]ledger.Suspension{}
	for _, s := range in.Ledger.Suspensions() {
		if !s.Ended(in.Now) {
			out[s.Subject] = s
		}
	}
	return out
}

// suspensionEvents returns events about new and ended suspensions. Those from before a restart
// are not changes.
func suspensionEvents(was, is map[ledger.Subject]ledger.Suspension, in Input) []event.Event {
	if was == nil {
		return nil
	}
	var out []event.Event
	for _, s := range slices.SortedFunc(maps.Keys(is), ledger.Subject.Compare) {
		if was[s] != is[s] {
			out = append(out, aboutSubject(s, in, event.Normal(api.Suspended, s.String()+" is "+is[s].String())))
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(was), ledger.Subject.Compare) {
		if _, still := is[s]; !still {
			out = append(out, aboutSubject(s, in, event.Normal(api.Resumed, s.String()+" is no longer "+s.Effect.Verb())))
		}
	}
	return out
}

func aboutSubject(s ledger.Subject, in Input, e event.Event) event.Event {
	e.Cluster = s.Cluster
	switch {
	case s.Placement != api.PlacementKey{}:
		var created time.Time
		if known := in.Ledger.Placement(s.Placement); known != nil {
			created = known.Created
		}
		return event.AboutPlacement(s.Placement, created, in.Now, []event.Event{e})[0]
	case s.Cluster != "":
		return event.AboutCluster(s.Cluster, metadata.ClusterUID(s.Cluster, in.Ledger.Declared()[metadata.ClusterID(s.Cluster)].Created), in.Now, []event.Event{e})[0]
	}
	return event.AboutRepository(in.Now, []event.Event{e})[0]
}

// suspended says why a subject is suspended; empty if it is not.
func suspended(in Input, s ledger.Subject) string {
	if x, ok := in.Ledger.Suspension(s); ok && !x.Ended(in.Now) {
		return x.String()
	}
	return ""
}
