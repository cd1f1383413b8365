package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// rest is what people want left alone, kept from turn to turn.
type rest struct {
	list []ledger.Suspension
	at   map[ledger.Subject]string // why
	// spared are the objects to leave alone, by cluster; those of "" are left
	// alone wherever they are, and are in each of the others as well.
	spared map[string][]work.Spared
	// version counts the changes: they concern every placement.
	version uint64
}

// update finds what is suspended now, and when that changes by itself.
func (r *rest) update(in Input) time.Time {
	var wake time.Time
	list := slices.DeleteFunc(in.Ledger.Suspensions(), func(s ledger.Suspension) bool { return s.Ended(in.Now) })
	for _, s := range list {
		wake = earliest(wake, s.Until)
	}
	if slices.Equal(list, r.list) {
		return wake
	}
	r.list, r.at, r.spared = list, make(map[ledger.Subject]string, len(list)), map[string][]work.Spared{}
	r.version++
	for _, s := range list {
		if s.Object == (api.ID{}) {
			r.at[s.Subject] = s.String()
		} else {
			r.spared[s.Cluster] = append(r.spared[s.Cluster], work.Spared{ID: s.Object, Why: s.String()})
		}
	}
	everywhere := r.spared[""]
	for _, cluster := range slices.Sorted(maps.Keys(r.spared)) {
		if cluster != "" {
			r.spared[cluster] = merged(r.spared[cluster], everywhere)
		}
	}
	return wake
}

// merged adds to a list, by ID, those of another that it does not have.
func merged(own, more []work.Spared) []work.Spared {
	all := append(slices.Clone(own), more...)
	slices.SortStableFunc(all, func(a, b work.Spared) int { return a.ID.Compare(b.ID) })
	return slices.CompactFunc(all, func(a, b work.Spared) bool { return a.ID == b.ID })
}

// why says why nothing is written for a placement on a cluster; empty if it is.
func (r *rest) why(key api.PlacementKey, cluster string) string {
	for _, s := range []ledger.Subject{{Placement: key}, {Placement: key, Cluster: cluster}, {Cluster: cluster}} {
		if text := r.at[s]; text != "" {
			return text
		}
	}
	return ""
}

// on lists the objects of a cluster to leave alone, by ID.
func (r *rest) on(cluster string) []work.Spared {
	if own, ok := r.spared[cluster]; ok {
		return own
	}
	return r.spared[""]
}

// stay leaves out the clusters that somebody wants left alone.
func (r *rest) stay(clusters []string) []string {
	return slices.DeleteFunc(clusters, func(name string) bool { return r.at[ledger.Subject{Cluster: name}] != "" })
}
