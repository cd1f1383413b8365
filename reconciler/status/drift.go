package status

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Drift is one object on one cluster that differs, or has differed, from the hub. KubeFleet's
// status has no fields for the actors and for restored objects. Values of Secrets are masked.
type Drift struct {
	Placement string `json:"placement"`
	Cluster   string `json:"cluster"`
	api.ResourceIdentifier
	State api.DriftState `json:"state"`
	// Mode is the drift rule by which it is held; empty if it is not.
	Mode string `json:"mode,omitempty"`
	// Message says what happens with the drift, if State does not say enough.
	Message string `json:"message,omitempty"`
	// Count is how many times the object has drifted; zero if it is foreign.
	Count int `json:"count,omitempty"`
	// FirstSeen and LastSeen are when the difference was first and last seen.
	FirstSeen time.Time `json:"firstSeen"`
	// Since is when the present difference was first seen; earlier ones had ended by then.
	Since    time.Time `json:"since"`
	LastSeen time.Time `json:"lastSeen"`
	// Generation is the generation of the live object when it was last seen; zero if it was
	// gone.
	Generation int64 `json:"generation,omitempty"`
	// Deleted says that the object was gone when it was last seen.
	Deleted bool `json:"deleted,omitempty"`
	// Paths are the fields that differ, or differed when the object was last seen.
	Paths []api.Difference `json:"paths,omitempty"`
	// Digest identifies the fields and values of which Paths has only a part; empty if it has all.
	// It is not shown.
	Digest string `json:"-"`
	// By are the actors who changed it, the newest first; empty if they are not known.
	By []api.Actor `json:"by,omitempty"`
}

// drifts returns the drifts of a placement's objects.
func drifts(p *plan.Placement) []Drift {
	var out []Drift
	for _, c := range p.Clusters {
		from := len(out)
		if e := c.Entry; e != nil && e.Seen != nil { // drift is recorded independently of the content
			for i := range e.Seen.Drifts {
				out = append(out, drift(p, c, &e.Seen.Drifts[i]))
			}
		}
		if seen := c.Seen(); seen != nil {
			for i := range seen.Exceptions {
				if o := &seen.Exceptions[i]; len(o.Diffs) > 0 && !o.Drift {
					out = append(out, foreign(p, c, o))
				}
			}
		}
		sortBy(out[from:], func(d Drift) api.ResourceIdentifier { return d.ResourceIdentifier })
	}
	return out
}

func drift(p *plan.Placement, c *plan.OnCluster, d *ledger.Drift) Drift {
	o := ledger.ObjectState{ID: d.ID, Version: d.Version, Envelope: d.Envelope}
	since := d.Since
	if since.IsZero() {
		since = d.FirstSeen
	}
	return Drift{
		Placement: p.Key.String(), Cluster: c.Binding.Cluster, ResourceIdentifier: identifier(&o),
		State: d.State, Mode: d.Mode, Message: d.Message, Count: d.Count, FirstSeen: d.FirstSeen, LastSeen: d.LastSeen, Since: since,
		Generation: d.Generation, Deleted: d.Deleted, Paths: d.Paths, Digest: d.Digest, By: d.By,
	}
}

// foreign returns an object that differs and is not owned, or is only compared.
func foreign(p *plan.Placement, c *plan.OnCluster, o *ledger.ObjectState) Drift {
	d := Drift{
		Placement: p.Key.String(), Cluster: c.Binding.Cluster, ResourceIdentifier: identifier(o),
		State: api.DriftForeign, Message: o.Applied.Message, FirstSeen: o.FirstSeen, LastSeen: o.LastSeen, Since: o.FirstSeen,
		Generation: o.Generation, Paths: o.Diffs,
	}
	for _, path := range o.Diffs {
		for _, a := range path.By {
			if !slices.Contains(d.By, a) {
				d.By = append(d.By, a)
			}
		}
	}
	slices.SortStableFunc(d.By, func(a, b api.Actor) int { return b.Time.Compare(a.Time) })
	return d
}
