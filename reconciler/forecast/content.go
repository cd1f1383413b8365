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

// A ContentChange is an object that a placement has on some clusters before and after, with
// other content.
type ContentChange struct {
	Placement     api.PlacementKey
	Before, After *work.Manifest
	// Clusters are those where it changes in this way, sorted.
	Clusters []string
	// Recreation says whether the object is deleted and created anew, as it asks to be if an
	// immutable field changes.
	Recreation diff.Recreation
}

// Note ends a line about the object: ", recreated" or ", may be recreated"; empty if it is not.
func (c ContentChange) Note() string {
	if c.Recreation == diff.NotRecreated {
		return ""
	}
	return ", " + string(c.Recreation)
}

// ContentChanges are the objects that change on the clusters, by placement and ID. There are
// none if the contents of the earlier plan are not known.
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

// Works are what a cluster is told to hold once all rollouts are done, by placement. They are
// nil for a cluster that another fleet holds.
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
	compared := map[contents][]*work.Manifest{} // pairs of manifests that differ, by the two contents
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

// differing pairs the manifests of two contents that are of one object and differ.
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
