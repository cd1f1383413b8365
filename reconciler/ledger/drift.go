package ledger

import (
	"reflect"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Drift is what is remembered of one object that others changed after we had
// applied it, also when it was put back long ago. Values of Secrets are masked.
type Drift struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	State    api.DriftState
	// Message says what is done about it and what would end it, where there is
	// something to say.
	Message string `json:",omitempty"`
	// Count is how often it moved away since it was first seen to.
	Count int
	// FirstSeen is when it first moved away, LastSeen when it last did or was
	// last found so.
	FirstSeen, LastSeen time.Time
	// Generation is the live object's, when it was last seen; zero if it was gone.
	Generation int64 `json:",omitempty"`
	// Deleted says that it was gone altogether when it was last seen.
	Deleted bool `json:",omitempty"`
	// Paths are the fields that differed when it was last seen.
	Paths []api.Difference `json:",omitempty"`
	// By are all who had changed it then, the newest first; nobody where that
	// cannot be told, as of a deletion.
	By []api.Actor `json:",omitempty"`
}

// Drifts returns what is remembered of drifts on a cluster, by placement. It is
// what its members said last, and is not to be changed.
func (l *Ledger) Drifts(cluster string) map[api.PlacementKey][]Drift {
	out := map[api.PlacementKey][]Drift{}
	for key, p := range l.placements {
		if e := p.entries[cluster]; e != nil && len(e.drifts()) > 0 {
			out[key] = e.drifts()
		}
	}
	return out
}

// PatchDetails returns the differences alone, without who made them.
func (o *ObjectState) PatchDetails() []api.PatchDetail {
	var out []api.PatchDetail
	for _, d := range o.Diffs {
		out = append(out, d.PatchDetail)
	}
	return out
}

// drifts are those that are remembered of one placement on one cluster.
func (e *Entry) drifts() []Drift {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Drifts
}

// sameDrifts reports whether two memories are the same to whoever reads them.
func sameDrifts(a, b []Drift) bool {
	return slices.EqualFunc(a, b, func(x, y Drift) bool { return reflect.DeepEqual(x, y) })
}
