package forecast

import (
	"slices"
)

// Changes are how a plan differs from an earlier one: which clusters each
// placement gains and loses, and which objects each cluster does.
type Changes struct {
	Compared   bool // whether there was an earlier plan
	Placements []PlacementChange
	Clusters   []ClusterChange
}

// A PlacementChange is how a placement differs from the earlier plan.
type PlacementChange struct {
	Placement    string
	Gone, New    bool   // the placement itself
	RenamedFrom  string // its key in the earlier plan; empty if it is the same
	Unclear      bool   // whether it was renamed
	Gained, Lost []string
	// PolicyFrom and PolicyTo are the placement types in a running fleet and now, with the
	// number of clusters, and Settings the other fields, if they change; empty if they do
	// not, or if no daemon runs the fleet.
	PolicyFrom, PolicyTo string
	Settings             []SettingChange
}

// Summary says what happens to the placement itself, as what follows its name: it is new, or gone.
// It is empty if the placement stays, under its name or another.
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

// A ClusterChange is how what a cluster holds differs from the earlier plan.
type ClusterChange struct {
	Cluster      string
	Gone, New    bool // the cluster itself
	Gained, Lost []Object
	Deleted      []Deletion // lost, and deleted; set by Forecast.Compared
	Released     []Object   // lost, and left on the cluster
	Passed       []PassedObject
}

// none reports whether the cluster holds the same as before.
func (c *ClusterChange) none() bool {
	return !c.New && !c.Gone && len(c.Gained)+len(c.Lost)+len(c.Released)+len(c.Passed) == 0
}

// A PassedObject stays where it is and belongs to another placement.
type PassedObject struct {
	Object
	From string // the placement that had it
}

// None reports whether nothing changes.
func (c Changes) None() bool { return len(c.Placements)+len(c.Clusters) == 0 }

// compare finds what changed since an earlier plan; nothing if before is nil.
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
	var out []PlacementChange
	for _, p := range after {
		old, known := was[p.Key()]
		delete(was, p.Key())
		c := PlacementChange{Placement: p.Key(), New: !known, RenamedFrom: p.RenamedFrom, Unclear: p.Unclear != ""}
		c.Gained = without(p.Selected(), old.Selected())
		c.Lost = without(old.Selected(), p.Selected())
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

// abandonedBy are the placements that are gone and leave their objects.
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
	c := ClusterChange{Gained: withoutObjects(after, before)}
	for _, o := range withoutObjects(before, after) {
		at := slices.IndexFunc(c.Gained, func(g Object) bool { return g.same(o) })
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

// same reports whether two are one object, whoever places it.
func (o Object) same(p Object) bool {
	o.Placement = p.Placement
	return o.held() == p.held()
}

// held is the object, whatever becomes of it when nothing wants it any more.
func (o Object) held() Object {
	o.Kept = false
	return o
}

// withoutObjects returns what is in a and not in b, in the order of a.
func withoutObjects(a, b []Object) []Object {
	has := make(map[Object]bool, len(b))
	for _, o := range b {
		has[o.held()] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(o Object) bool { return has[o.held()] })
}

// without returns what is in a and not in b, in the order of a.
func without[T comparable](a, b []T) []T {
	has := make(map[T]bool, len(b))
	for _, x := range b {
		has[x] = true
	}
	var out []T
	for _, x := range a {
		if !has[x] {
			out = append(out, x)
		}
	}
	return out
}
