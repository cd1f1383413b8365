package main

import (
	"slices"
)

// planChanges are how a plan differs from an earlier one: which clusters each
// placement gains and loses, and which objects each cluster does.
type planChanges struct {
	compared   bool // whether there was an earlier plan
	placements []placementChange
	clusters   []clusterChange
}

type placementChange struct {
	placement    string
	gone, fresh  bool   // the placement itself
	renamedFrom  string // its key in the earlier plan; empty if it is the same
	unclear      bool   // whether it was renamed
	gained, lost []string
}

type clusterChange struct {
	cluster      string
	gone, fresh  bool // the cluster itself
	gained, lost []planObject
	deleted      []planDeletion // lost, and deleted; set by outlook.compared
	released     []planObject   // lost, and left on the cluster
	passed       []passedObject
}

// none reports whether the cluster holds the same as before.
func (c *clusterChange) none() bool {
	return !c.fresh && !c.gone && len(c.gained)+len(c.lost)+len(c.released)+len(c.passed) == 0
}

// A passedObject stays where it is and belongs to another placement.
type passedObject struct {
	planObject
	from string
}

func (c planChanges) none() bool { return len(c.placements)+len(c.clusters) == 0 }

// compare finds what changed since an earlier plan; nothing if before is nil.
func compare(before *planDocument, after planDocument) planChanges {
	if before == nil {
		return planChanges{}
	}
	return planChanges{
		compared:   true,
		placements: comparePlacements(before.Placements, after.Placements),
		clusters:   compareClusters(before, after),
	}
}

func comparePlacements(before, after []planPlacement) []placementChange {
	was := map[string]planPlacement{}
	for _, p := range before {
		was[p.key()] = p
	}
	var out []placementChange
	for _, p := range after {
		old, known := was[p.key()]
		delete(was, p.key())
		c := placementChange{placement: p.key(), fresh: !known, renamedFrom: p.RenamedFrom, unclear: p.Unclear != ""}
		c.gained = without(p.selected(), old.selected())
		c.lost = without(old.selected(), p.selected())
		if c.fresh || c.renamedFrom != "" || c.unclear || len(c.gained)+len(c.lost) > 0 {
			out = append(out, c)
		}
	}
	for _, p := range before {
		if _, left := was[p.key()]; left {
			out = append(out, placementChange{placement: p.key(), gone: true, lost: p.selected()})
		}
	}
	return out
}

func compareClusters(before *planDocument, after planDocument) []clusterChange {
	was := map[string]planCluster{}
	for _, c := range before.Clusters {
		was[c.Name] = c
	}
	abandoned := abandonedBy(before, after)
	var out []clusterChange
	for _, c := range after.Clusters {
		old, known := was[c.Name]
		delete(was, c.Name)
		change := compareObjects(old.Objects, c.Objects, abandoned)
		change.cluster, change.fresh = c.Name, !known
		if !change.none() {
			out = append(out, change)
		}
	}
	for _, c := range before.Clusters {
		if _, left := was[c.Name]; left {
			out = append(out, clusterChange{cluster: c.Name, gone: true, lost: c.Objects})
		}
	}
	return out
}

// abandonedBy are the placements that are gone and leave their objects.
func abandonedBy(before *planDocument, after planDocument) map[string]bool {
	out := map[string]bool{}
	for _, p := range before.Placements {
		if p.Abandons {
			out[p.key()] = true
		}
	}
	for _, p := range after.Placements {
		delete(out, p.key())
	}
	return out
}

func compareObjects(before, after []planObject, abandoned map[string]bool) clusterChange {
	c := clusterChange{gained: withoutObjects(after, before)}
	for _, o := range withoutObjects(before, after) {
		at := slices.IndexFunc(c.gained, func(g planObject) bool { return g.same(o) })
		switch {
		case at >= 0:
			c.passed = append(c.passed, passedObject{c.gained[at], o.Placement})
			c.gained = slices.Delete(c.gained, at, at+1)
		case o.Kept || abandoned[o.Placement]:
			c.released = append(c.released, o)
		default:
			c.lost = append(c.lost, o)
		}
	}
	return c
}

// same reports whether two are one object, whoever places it.
func (o planObject) same(p planObject) bool {
	o.Placement = p.Placement
	return o.held() == p.held()
}

// held is the object, whatever becomes of it when nothing wants it any more.
func (o planObject) held() planObject {
	o.Kept = false
	return o
}

// withoutObjects returns what is in a and not in b, in the order of a.
func withoutObjects(a, b []planObject) []planObject {
	has := make(map[planObject]bool, len(b))
	for _, o := range b {
		has[o.held()] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(o planObject) bool { return has[o.held()] })
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
