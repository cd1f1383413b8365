package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// A Drift is one object on one cluster that differs, or has differed, from the hub. KubeFleet's
// status has no fields for the actors and for restored objects. Values of Secrets are masked.
type Drift struct {
	Placement string `json:"placement"`
	Cluster   string `json:"cluster"`
	api.ResourceIdentifier
	State api.DriftState `json:"state"`
	// Addition says that Paths are what others have added beside what the manifest sets. An object may have
	// such a drift beside another one.
	Addition bool   `json:"addition,omitempty"`
	Rule     string `json:"mode,omitempty"`    // the drift rule by which it is held or an addition is offered; empty if it is not
	Message  string `json:"message,omitempty"` // what happens with the drift, if State does not say enough
	Count    int    `json:"count,omitempty"`   // how many times the object has drifted; zero if it is foreign
	// FirstSeen and LastSeen are when the difference was first and last seen. Since is when the
	// present difference was first seen; earlier ones had ended by then.
	FirstSeen time.Time `json:"firstSeen"`
	Since     time.Time `json:"since"`
	LastSeen  time.Time `json:"lastSeen"`
	// Generation and Paths are the generation of the live object (zero if it was gone) and the
	// fields that differed when it was last seen. Deleted says that it was gone then.
	Generation int64            `json:"generation,omitempty"`
	Deleted    bool             `json:"deleted,omitempty"`
	Paths      []api.Difference `json:"paths,omitempty"`
	// Digest identifies the fields and values of which Paths has only a part; empty if it has all.
	// It is not shown.
	Digest string      `json:"-"`
	By     []api.Actor `json:"by,omitempty"` // who changed it, the newest first; empty if they are not known
}

// Differs reports whether the object differs from Git now, in fields that nobody has left to
// others.
func (d Drift) Differs() bool {
	switch d.State {
	case api.DriftStanding, api.DriftHeld, api.DriftAdded, api.DriftContested, api.DriftForeign:
		return true
	}
	return false
}

// drifts returns the drifts of a placement's objects on some clusters.
func drifts(p *plan.Placement, clusters ...*plan.OnCluster) []Drift {
	var out []Drift
	for _, c := range clusters {
		from := len(out)
		if e := c.Entry; e != nil { // drift is recorded independently of the content
			all := e.Seen.Unusual().Drifts
			for i := range all {
				out = append(out, drift(p, c, &all[i]))
			}
		}
		if seen := c.LastKnown(); seen != nil {
			for i := range seen.Exceptions {
				if o := &seen.Exceptions[i]; len(o.Diffs) > 0 && !o.Drift {
					out = append(out, foreign(p, c, o))
				}
			}
		}
		conditions.SortBy(out[from:], func(d Drift) api.ResourceIdentifier { return d.ResourceIdentifier })
	}
	return out
}

func drift(p *plan.Placement, c *plan.OnCluster, d *protocol.Drift) Drift {
	o := protocol.ObjectState{ID: d.ID, Version: d.Version, Envelope: d.Envelope}
	return Drift{
		Placement: p.Key.String(), Cluster: c.Binding.Cluster, ResourceIdentifier: o.Identifier(),
		State: d.State, Addition: d.Addition, Rule: d.Rule, Message: d.Message, Count: d.Count, FirstSeen: d.FirstSeen, LastSeen: d.LastSeen, Since: cmp.Or(d.Since, d.FirstSeen),
		Generation: d.Generation, Deleted: d.Deleted, Paths: d.Paths, Digest: d.Digest, By: d.By,
	}
}

// foreign returns an object that differs, and that the placement does not own or only compares.
func foreign(p *plan.Placement, c *plan.OnCluster, o *protocol.ObjectState) Drift {
	d := Drift{
		Placement: p.Key.String(), Cluster: c.Binding.Cluster, ResourceIdentifier: o.Identifier(),
		State: api.DriftForeign, Message: o.Applied.Message(), FirstSeen: o.FirstSeen, LastSeen: o.LastSeen, Since: o.FirstSeen,
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
