package forecast

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/difftext"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A ContentChange is an object whose content changes. The placement has it on the clusters both before and after.
type ContentChange struct {
	Placement     api.PlacementKey
	Before, After *work.Manifest
	// Clusters are those on which it changes in this way, sorted.
	Clusters []string
	// Recreation says whether the object is deleted and created again, which its annotation requests for changes of
	// immutable fields.
	Recreation diff.Recreation
}

// Note is appended to the line about the object: ", recreated", ", may be recreated", or empty if the object is not
// recreated.
func (c ContentChange) Note() string {
	if c.Recreation == diff.NotRecreated {
		return ""
	}
	return ", " + string(c.Recreation)
}

// Fields returns the differences of the fields of the object, with the old value as hub and the new one as member. Values
// of Secrets are masked. There may be none: what only gitfleet writes is not compared.
func (c ContentChange) Fields() []api.PatchDetail {
	return diff.Compare(diff.Normalize(c.Before.Object.Content), diff.Normalize(c.After.Object.Content), diff.Options{})
}

// Paths returns the paths of Fields with the names of items.
func (c ContentChange) Paths() []string {
	var out []string
	for _, f := range c.Fields() {
		object := c.Before.Object.Content.Object
		if listitem.At(object, f.Path) == nil { // it is added
			object = c.After.Object.Content.Object
		}
		out = append(out, difftext.Path(object, api.Difference{PatchDetail: f}))
	}
	return out
}

// Diff returns the difference of the object as a unified diff of its YAML, without a header. Values of Secrets are masked.
// It is empty if there is none that is compared, or if the object is too large.
func (c ContentChange) Diff() string {
	return difftext.Objects(c.Before.Object.Content, c.After.Object.Content)
}

// NoDiff says why Diff is empty.
func (c ContentChange) NoDiff() string {
	if len(c.Fields()) > 0 {
		return "the object is too large to be compared line by line"
	}
	return "only what gitfleet does not compare, such as its own annotations"
}

// ContentChanges returns the objects whose content changes, sorted by placement and ID. It returns none if the contents
// of the earlier plan are not known. The result must not be modified.
func (o *Forecast) ContentChanges() []ContentChange {
	if o.earlier == nil {
		return nil
	}
	if o.contentChanges != nil {
		return *o.contentChanges
	}
	var out []ContentChange
	for p := range o.Plan.Placements.Values() {
		if o.unchanged[p] {
			continue
		}
		if old := o.earlier.Placement(o.earlierKey(p.Key)); old != nil && p.Spec != nil {
			out = append(out, contentChanges(old, p)...)
		}
	}
	slices.SortStableFunc(out, func(a, b ContentChange) int {
		return cmp.Or(strings.Compare(a.Placement.String(), b.Placement.String()), a.After.ID.Compare(b.After.ID), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	o.contentChanges = &out
	return out
}

// Works returns the works of a cluster after all rollouts have finished, sorted by placement; nil for a cluster that
// belongs to another fleet.
func (o *Forecast) Works(cluster string) []*work.Work {
	var out []*work.Work
	for p := range o.Plan.Placements.Values() {
		c := p.On(cluster)
		switch {
		case c == nil || p.Spec == nil || c.Err != nil || c.Binding.Unscheduled || c.Binding.Removing:
		case c.Unusual().Refusal != "":
			return nil
		default:
			out = append(out, p.FinalWork(c))
		}
	}
	return out
}

func contentChanges(old, now *plan.Placement) []ContentChange {
	type change struct {
		id            api.ID
		before, after string
	}
	var out []ContentChange
	at := map[change]int{} // indices of out
	for _, c := range now.Clusters {
		had := old.On(c.Binding.Cluster)
		if had == nil || had.Content.Hash == c.Content.Hash || c.Err != nil {
			continue
		}
		was := make(map[api.ID]*work.Manifest, len(had.Content.Manifests))
		for _, m := range had.Content.Manifests {
			was[m.ID] = m
		}
		for _, after := range c.Content.Manifests {
			before := was[after.ID]
			if before == nil || before.Hash == after.Hash || keeps(c, after.ID) {
				continue
			}
			key := change{after.ID, before.Hash, after.Hash}
			i, known := at[key]
			if !known {
				i = len(out)
				at[key] = i
				out = append(out, ContentChange{Placement: now.Key, Before: before, After: after, Recreation: diff.RecreationOf(before.Object.Content, after.Object.Content)})
			}
			out[i].Clusters = append(out[i].Clusters, c.Binding.Cluster)
		}
	}
	return out
}
