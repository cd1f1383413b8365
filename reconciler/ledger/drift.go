package ledger

import (
	"reflect"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Drift is the record of an object that others have changed after it was applied. It is kept
// after the drift was reverted. Values of Secrets are masked.
type Drift struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	State    api.DriftState
	// Rule is the drift rule by which the drift is held; empty if it is not held.
	Rule string `json:"Mode,omitempty"`
	// Message says what happens with the drift and what would end it, if State does not say
	// enough.
	Message string `json:",omitempty"`
	// Count is how many times the object has drifted since FirstSeen.
	Count int
	// FirstSeen is the time of the first drift. LastSeen is the time when the object drifted
	// last or was last seen drifted.
	FirstSeen, LastSeen time.Time
	// Since is the time when the present drift began; earlier ones had ended by then. It is
	// zero in records of old versions.
	Since time.Time `json:",omitzero"`
	// Generation is the generation of the live object when it was last seen; zero if it was
	// gone.
	Generation int64 `json:",omitempty"`
	// Deleted says that the object was gone when it was last seen.
	Deleted bool `json:",omitempty"`
	// Paths are the fields that differed when it was last seen.
	Paths []api.Difference `json:",omitempty"`
	// Digest identifies the fields and values of which Paths has only a part; empty if it has all.
	Digest string `json:",omitempty"`
	// By are the actors who changed the object, the newest first; empty if they are not known,
	// as for a deletion.
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

// sameDrifts reports whether two lists of drifts show the same to a user.
func sameDrifts(a, b []Drift) bool {
	return slices.EqualFunc(a, b, func(x, y Drift) bool { return reflect.DeepEqual(x, y) })
}
