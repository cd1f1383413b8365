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
	gone, fresh  bool // the placement itself
	gained, lost []string
}

type clusterChange struct {
	cluster      string
	gone, fresh  bool // the cluster itself
	gained, lost []planObject
	passed       []passedObject
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
		clusters:   compareClusters(before.Clusters, after.Clusters),
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
		c := placementChange{placement: p.key(), fresh: !known}
		c.gained = without(p.selected(), old.selected())
		c.lost = without(old.selected(), p.selected())
		if c.fresh || len(c.gained)+len(c.lost) > 0 {
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

func compareClusters(before, after []planCluster) []clusterChange {
	was := map[string]planCluster{}
	for _, c := range before {
		was[c.Name] = c
	}
	var out []clusterChange
	for _, c := range after {
		old, known := was[c.Name]
		delete(was, c.Name)
		change := compareObjects(old.Objects, c.Objects)
		change.cluster, change.fresh = c.Name, !known
		if change.fresh || len(change.gained)+len(change.lost)+len(change.passed) > 0 {
			out = append(out, change)
		}
	}
	for _, c := range before {
		if _, left := was[c.Name]; left {
			out = append(out, clusterChange{cluster: c.Name, gone: true, lost: c.Objects})
		}
	}
	return out
}

func compareObjects(before, after []planObject) clusterChange {
	c := clusterChange{gained: without(after, before)}
	for _, o := range without(before, after) {
		at := slices.IndexFunc(c.gained, func(g planObject) bool { return g.same(o) })
		if at < 0 {
			c.lost = append(c.lost, o)
			continue
		}
		c.passed = append(c.passed, passedObject{c.gained[at], o.Placement})
		c.gained = slices.Delete(c.gained, at, at+1)
	}
	return c
}

// same reports whether two are one object, whoever places it.
func (o planObject) same(p planObject) bool {
	o.Placement = p.Placement
	return o == p
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
