package ledger

import (
	"reflect"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Drift is the record of an object that others changed after it was applied, kept after it
// was restored. Values of Secrets are masked.
type Drift struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	State    api.DriftState
	// Mode is the drift rule by which it is held; empty if it is not.
	Mode string `json:",omitempty"`
	// Message says what is done about the drift and what ends it, if there is more to say than
	// State.
	Message string `json:",omitempty"`
	// Count is how often the object drifted since FirstSeen.
	Count int
	// FirstSeen is when it first drifted, LastSeen when it last did or was last found drifted.
	FirstSeen, LastSeen time.Time
	// Since is when it drifted last: earlier drifts had ended by then. It is zero in records of
	// versions that did not have it.
	Since time.Time `json:",omitzero"`
	// Generation is the generation of the live object when it was last seen; zero if it was
	// gone.
	Generation int64 `json:",omitempty"`
	// Deleted says that the object was gone when it was last seen.
	Deleted bool `json:",omitempty"`
	// Paths are the fields that differed when it was last seen.
	Paths []api.Difference `json:",omitempty"`
	// By are the actors who changed it, the newest first; empty if they are not known, as for a
	// deletion.
	By []api.Actor `json:",omitempty"`
}

// Drifts returns the drifts on a cluster, by placement, as last reported. They must not be
// changed.
func (l *Ledger) Drifts(cluster string) map[api.PlacementKey][]Drift {
	out := map[api.PlacementKey][]Drift{}
	for key, p := range l.placements {
		if e := p.entries[cluster]; e != nil && len(e.drifts()) > 0 {
			out[key] = e.drifts()
		}
	}
	return out
}

// PatchDetails returns the differences without the actors.
func (o *ObjectState) PatchDetails() []api.PatchDetail {
	var out []api.PatchDetail
	for _, d := range o.Diffs {
		out = append(out, d.PatchDetail)
	}
	return out
}

// drifts returns the recorded drifts of one placement on one cluster.
func (e *Entry) drifts() []Drift {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Drifts
}

// sameDrifts reports whether two lists of drifts are the same for a reader.
func sameDrifts(a, b []Drift) bool {
	return slices.EqualFunc(a, b, func(x, y Drift) bool { return reflect.DeepEqual(x, y) })
}
