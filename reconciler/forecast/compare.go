package forecast

import "slices"

// Changes are the differences between a plan and an earlier one: the clusters that each placement gains and loses, the
// objects that each cluster gains and loses, and the fields of objects that change.
type Changes struct {
	Compared   bool // whether there was an earlier plan to compare with
	Placements []PlacementChange
	Clusters   []ClusterChange
	// Contents are the objects whose content changes. ContentsKnown says that the contents of the earlier plan are
	// known: otherwise an object counts as the same if its name is.
	Contents      []ContentChange
	ContentsKnown bool
}

// A PlacementChange has the differences of one placement.
type PlacementChange struct {
	Placement    string
	Gone, New    bool   // whether the placement itself is gone or new
	RenamedFrom  string // its key in the earlier plan; empty if the key is the same
	Unclear      bool   // it is not certain whether it was renamed
	Gained, Lost []string
	// PolicyFrom and PolicyTo are the placement types in a running fleet and in the plan, with the number of clusters.
	// Settings are the other fields that change. They are empty without a change, and if no daemon runs the fleet.
	PolicyFrom, PolicyTo string
	Settings             []SettingChange
}

// Summary says what happens to the placement itself, to be appended to its name: it is new, or gone. It is empty if the
// placement stays, also under another name.
func (c *PlacementChange) Summary() string {
	switch {
	case c.RenamedFrom != "":
		return ""
	case c.Unclear && c.New:
		return "is new, and may be a renamed placement: nothing of it is placed"
	case c.Unclear:
		return "is gone, and may have been renamed: it keeps what it holds"
	case c.Gone:
		return "is gone"
	case c.New:
		return "is new"
	}
	return ""
}

// A ClusterChange has the differences in the objects of one cluster.
type ClusterChange struct {
	Cluster      string
	Gone, New    bool // whether the cluster itself is gone or new
	Gained, Lost []Object
	Deleted      []Deletion // lost and deleted; set by Forecast.Compared
	Released     []Object   // lost and left on the cluster
	Passed       []PassedObject
}

// none reports whether the cluster has the same objects as before.
func (c *ClusterChange) none() bool {
	return !c.New && !c.Gone && len(c.Gained)+len(c.Lost)+len(c.Released)+len(c.Passed) == 0
}

// None reports whether there are no differences.
func (c Changes) None() bool { return len(c.Placements)+len(c.Clusters)+len(c.Contents) == 0 }

// compare returns the differences from an earlier plan; none if before is nil.
func compare(before *Document, after Document) Changes {
	if before == nil {
		return Changes{}
	}
	return Changes{
		Compared:   true,
		Placements: comparePlacements(before.Placements, after.Placements),
		Clusters:   compareClusters(before, after),
	}
}

func comparePlacements(before, after []Placement) []PlacementChange {
	was := map[string]Placement{}
	for _, p := range before {
		was[p.Key()] = p
	}
	name := func(cluster string) string { return cluster }
	var out []PlacementChange
	for _, p := range after {
		old, known := was[p.Key()]
		delete(was, p.Key())
		c := PlacementChange{Placement: p.Key(), New: !known, RenamedFrom: p.RenamedFrom, Unclear: p.Unclear != ""}
		c.Gained = without(p.Selected(), old.Selected(), name)
		c.Lost = without(old.Selected(), p.Selected(), name)
		if c.New || c.RenamedFrom != "" || c.Unclear || len(c.Gained)+len(c.Lost) > 0 {
			out = append(out, c)
		}
	}
	for _, p := range before {
		if _, left := was[p.Key()]; left {
			out = append(out, PlacementChange{Placement: p.Key(), Gone: true, Lost: p.Selected()})
		}
	}
	return out
}

func compareClusters(before *Document, after Document) []ClusterChange {
	was := map[string]Cluster{}
	for _, c := range before.Clusters {
		was[c.Name] = c
	}
	abandoned := abandonedBy(before, after)
	var out []ClusterChange
	for _, c := range after.Clusters {
		old, known := was[c.Name]
		delete(was, c.Name)
		change := compareObjects(old.Objects, c.Objects, abandoned)
		change.Cluster, change.New = c.Name, !known
		if !change.none() {
			out = append(out, change)
		}
	}
	for _, c := range before.Clusters {
		if _, left := was[c.Name]; left {
			out = append(out, ClusterChange{Cluster: c.Name, Gone: true, Lost: c.Objects})
		}
	}
	return out
}

// abandonedBy returns the placements that are gone and leave their objects on the clusters.
func abandonedBy(before *Document, after Document) map[string]bool {
	out := map[string]bool{}
	for _, p := range before.Placements {
		if p.Abandons {
			out[p.Key()] = true
		}
	}
	for _, p := range after.Placements {
		delete(out, p.Key())
	}
	return out
}

func compareObjects(before, after []Object, abandoned map[string]bool) ClusterChange {
	if slices.Equal(before, after) {
		return ClusterChange{}
	}
	c := ClusterChange{Gained: without(after, before, Object.withoutKept)}
	for _, o := range without(before, after, Object.withoutKept) {
		at := slices.IndexFunc(c.Gained, func(g Object) bool { return g.equals(o) })
		switch {
		case at >= 0:
			c.Passed = append(c.Passed, PassedObject{c.Gained[at], o.Placement})
			c.Gained = slices.Delete(c.Gained, at, at+1)
		case o.Kept || abandoned[o.Placement]:
			c.Released = append(c.Released, o)
		default:
			c.Lost = append(c.Lost, o)
		}
	}
	return c
}

// equals reports whether two values are the same object, whatever placement they belong to.
func (o Object) equals(p Object) bool {
	o.Placement = p.Placement
	return o.withoutKept() == p.withoutKept()
}

// withoutKept returns a copy of the object with Kept unset, so that it does not count when two objects are compared.
func (o Object) withoutKept() Object {
	o.Kept = false
	return o
}

// without returns what is in a and not in b, in the order of a. Values with the same key are the same.
func without[T any, K comparable](a, b []T, key func(T) K) []T {
	has := make(map[K]bool, len(b))
	for _, x := range b {
		has[key(x)] = true
	}
	var out []T
	for _, x := range a {
		if !has[key(x)] {
			out = append(out, x)
		}
	}
	return out
}

// describe returns the changes in JSON.
func (c Changes) describe() *DescribedChanges {
	out := &DescribedChanges{
		None: c.None(), ContentsKnown: c.ContentsKnown,
		Placements: []DescribedPlacementChange{}, Clusters: []DescribedClusterChange{}, Contents: []DescribedContentChange{},
	}
	for _, p := range c.Placements {
		out.Placements = append(out.Placements, DescribedPlacementChange{
			p.Placement, p.New, p.Gone, p.RenamedFrom, p.Unclear, notNil(p.Gained), notNil(p.Lost), p.PolicyFrom, p.PolicyTo, notNil(p.Settings),
		})
	}
	for _, on := range c.Clusters {
		out.Clusters = append(out.Clusters, DescribedClusterChange{on.Cluster, on.New, on.Gone, notNil(on.Gained), notNil(on.Released), notNil(on.Passed)})
	}
	for _, changed := range c.Contents {
		id := changed.After.ID
		object := Object{
			Group: id.Group, Version: changed.After.Object.Content.GroupVersionKind().Version, Kind: id.Kind,
			Namespace: id.Namespace, Name: id.Name, Placement: changed.Placement.String(),
		}
		fields := []DescribedField{}
		for _, f := range changed.Fields() {
			fields = append(fields, DescribedField{f.Path, f.ValueInHub, f.ValueInMember})
		}
		out.Contents = append(out.Contents, DescribedContentChange{object, changed.Clusters, changed.After.Origin.String(), fields, changed.Diff()})
	}
	return out
}
