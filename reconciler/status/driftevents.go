package status

import (
	"cmp"

	"github.com/gitfleet/gitfleet/placement/api"
)

// driftEvents adds events about objects that others changed, about what was done, and about the
// end of a drift.
func (h *eventBuilder) driftEvents(now []Drift) {
	type place struct{ cluster, object string }
	at := func(d *Drift) place { return place{d.Cluster, sortKey(d.ResourceIdentifier)} }
	known := map[place]*Drift{}
	if h.old != nil {
		for i := range h.old.drifts {
			known[at(&h.old.drifts[i])] = &h.old.drifts[i]
		}
	}
	var events []Event
	for i := range now {
		d := &now[i]
		if e, news := driftEvent(d, known[at(d)]); news {
			events = append(events, e)
		}
		if i+1 == len(now) || now[i+1].Cluster != d.Cluster {
			h.addLimited(d.Cluster, h.commitOn(d.Cluster), events)
			events = nil
		}
	}
}

func (h *eventBuilder) commitOn(cluster string) string {
	if c := h.p.On(cluster); c != nil {
		return c.Binding.Assigned.Commit
	}
	return ""
}

// driftEvent returns the event for one object if it drifted again or its state has changed.
func driftEvent(d, was *Drift) (e Event, news bool) {
	if was != nil && was.State == d.State && was.Count >= d.Count {
		return Event{}, false
	}
	who := "somebody"
	if len(d.By) > 0 {
		who = few(d.By, api.Actor.String)
	}
	did := " was changed by " + who + ": " + few(d.Paths, func(p api.Difference) string { return p.Path })
	if d.Deleted {
		did = " was deleted"
	}
	object := d.ID().String()
	switch d.State {
	case api.DriftStanding, api.DriftHeld:
		return warning(api.DriftFound, object+did+"; it is left as it is"), true
	case api.DriftContested:
		return warning(api.DriftContestedReason, object+did+"; "+cmp.Or(d.Message, "another writer insists")), true
	case api.DriftRepaired:
		return warning(api.DriftPutBack, object+did+"; it was put back"), true
	case api.DriftAltered:
		return warning(api.ValuesAltered, object+" is not stored as it is applied: "+few(d.Paths, func(p api.Difference) string { return p.Path })+"; "+d.Message), true
	case api.DriftEnded:
		return normal(api.DriftGone, object+" is as it should be again"), was != nil
	}
	return Event{}, false
}
