package forecast

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A ContentChange is an object whose content changes. The placement has it on the clusters both
// before and after.
type ContentChange struct {
	Placement     api.PlacementKey
	Before, After *work.Manifest
	// Clusters are those on which it changes in this way, sorted.
	Clusters []string
	// Recreation says whether the object is deleted and created again, which its annotation
	// requests for changes of immutable fields.
	Recreation diff.Recreation
}

// Note is appended to the line about the object: ", recreated", ", may be recreated", or empty
// if the object is not recreated.
func (c ContentChange) Note() string {
	if c.Recreation == diff.NotRecreated {
		return ""
	}
	return ", " + string(c.Recreation)
}

// ContentChanges returns the objects whose content changes, sorted by placement and ID. It
// returns none if the contents of the earlier plan are not known.
func (o *Forecast) ContentChanges() []ContentChange {
	if o.earlier == nil {
		return nil
	}
	was := map[api.PlacementKey]*plan.Placement{}
	for _, p := range o.earlier.Placements {
		was[p.Key] = p
	}
	for _, r := range o.Renames {
		was[r.To] = was[r.From]
	}
	var out []ContentChange
	for _, p := range o.Plan.Placements {
		if old := was[p.Key]; old != nil && p.Spec != nil {
			out = append(out, contentChanges(old, p)...)
		}
	}
	slices.SortStableFunc(out, func(a, b ContentChange) int {
		return cmp.Or(strings.Compare(a.Placement.String(), b.Placement.String()), a.After.ID.Compare(b.After.ID), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return out
}

// Works returns the works of a cluster after all rollouts have finished, sorted by placement;
// nil for a cluster that belongs to another fleet.
func (o *Forecast) Works(cluster string) []work.Work {
	var out []work.Work
	for _, p := range o.Plan.Placements {
		c := p.On(cluster)
		switch {
		case c == nil || p.Spec == nil || c.Err != nil || c.Binding.Unscheduled || c.Binding.Removing:
		case c.Foreign != "":
			return nil
		default:
			out = append(out, p.FinalWork(c))
		}
	}
	return out
}

// contentChanges compares the contents of one placement, cluster by cluster.
func contentChanges(old, now *plan.Placement) []ContentChange {
	type contents struct{ before, after string }
	type change struct {
		id            api.ID
		before, after string
	}
	var out []ContentChange
	compared := map[contents][]*work.Manifest{} // pairs of contents that were compared, with the manifests that differ
	at := map[change]int{}
	for _, c := range now.Clusters {
		had := old.On(c.Binding.Cluster)
		if had == nil || had.Content.Hash == c.Content.Hash || c.Err != nil {
			continue
		}
		key := contents{had.Content.Hash, c.Content.Hash}
		pairs, known := compared[key]
		if !known {
			pairs = differing(had.Content.Manifests, c.Content.Manifests)
			compared[key] = pairs
		}
		for i := 0; i < len(pairs); i += 2 {
			before, after := pairs[i], pairs[i+1]
			key := change{after.ID, before.Hash, after.Hash}
			j, known := at[key]
			if !known {
				j = len(out)
				at[key] = j
				out = append(out, ContentChange{Placement: now.Key, Before: before, After: after, Recreation: diff.RecreationOf(before.Object.Object, after.Object.Object)})
			}
			out[j].Clusters = append(out[j].Clusters, c.Binding.Cluster)
		}
	}
	return out
}

// differing returns pairs of manifests, from before and after, that are of the same object and
// differ.
func differing(before, after []*work.Manifest) []*work.Manifest {
	was := make(map[api.ID]*work.Manifest, len(before))
	for _, m := range before {
		was[m.ID] = m
	}
	var pairs []*work.Manifest
	for _, m := range after {
		if old := was[m.ID]; old != nil && old.Hash != m.Hash {
			pairs = append(pairs, old, m)
		}
	}
	return pairs
}
