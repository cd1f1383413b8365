// Package deletion orders the deletions on one cluster, and says why an object that was deleted still
// exists.
//
// Objects are deleted in waves, in the reverse of the order in which they are applied: custom
// resources, APIServices and webhook configurations, workloads, permissions, configuration, and at
// last Namespaces and CustomResourceDefinitions. A wave waits until the objects of the earlier ones
// are gone, since these may have finalizers that the later ones execute. A wave is one of a placement;
// those of other placements wait only for custom resources that they may be the operator of.
package deletion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// An Object is listed by the inventory of a placement. Leaving says that it is to be deleted, and
// Commit because of which commit.
type Object struct {
	ID        api.ID
	Placement api.PlacementKey
	Leaving   bool
	Commit    string
}

// Waves are the objects of a cluster that are to be deleted.
type Waves struct {
	// exists reports whether an object still has to be waited for.
	exists func(Object) bool
	// leaving are the objects of each placement that are to be deleted, first waves first, and custom
	// those of them that are custom resources, of all placements.
	leaving map[api.PlacementKey][]Object
	custom  []Object
	// operators are the placements with a definition and a workload, by the group of the
	// definition.
	operators map[string][]api.PlacementKey
}

// NewWaves returns the waves of the objects of all inventories. exists reports whether an object must
// still be waited for. It is called when Before is; once it has returned false for an object, it must
// not return true.
func NewWaves(all []Object, exists func(Object) bool) *Waves {
	w := &Waves{exists: exists, leaving: map[api.PlacementKey][]Object{}, operators: map[string][]api.PlacementKey{}}
	runs := map[api.PlacementKey]bool{}
	defines := map[api.PlacementKey][]string{}
	for _, o := range all {
		gk := o.ID.GroupKind()
		switch {
		case gk == definitions:
			defines[o.Placement] = append(defines[o.Placement], definedGroup(o.ID))
		case workloads[gk]:
			runs[o.Placement] = true
		}
		if !o.Leaving {
			continue
		}
		w.leaving[o.Placement] = append(w.leaving[o.Placement], o)
		if isCustom(o.ID) {
			w.custom = append(w.custom, o)
		}
	}
	for p, groups := range defines {
		for _, group := range groups {
			if runs[p] {
				w.operators[group] = append(w.operators[group], p)
			}
		}
	}
	for _, list := range w.leaving {
		slices.SortFunc(list, byWave)
	}
	slices.SortFunc(w.custom, func(a, b Object) int { return cmp.Or(a.ID.Compare(b.ID), a.Placement.Compare(b.Placement)) })
	return w
}

var definitions = api.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// workloads are the kinds that may run an operator.
var workloads = map[api.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "batch", Kind: "CronJob"}: true, {Kind: "Pod"}: true, {Kind: "ReplicationController"}: true,
}

func byWave(a, b Object) int { return work.DeleteOrder(a.ID, b.ID) }

func isCustom(id api.ID) bool { return work.IsCustom(id.GroupKind()) }

// Before returns an object that has to be gone before another one is deleted; false if there is none.
func (w *Waves) Before(o Object) (first Object, found bool) {
	wave := work.Wave(o.ID.GroupKind())
	list := w.leaving[o.Placement]
	for len(list) > 0 && !w.exists(list[0]) {
		list = list[1:]
	}
	w.leaving[o.Placement] = list
	if len(list) > 0 && work.Wave(list[0].ID.GroupKind()) > wave {
		return list[0], true
	}
	if isCustom(o.ID) {
		return Object{}, false
	}
	i := slices.IndexFunc(w.custom, func(c Object) bool { return c.Placement != o.Placement && w.mayOperate(o, c) && w.exists(c) })
	if i < 0 {
		return Object{}, false
	}
	return w.custom[i], true
}

// definedGroup returns the group of the kind that a definition defines: its name ends with it.
func definedGroup(definition api.ID) string {
	_, group, _ := strings.Cut(definition.Name, ".")
	return group
}

// mayOperate reports whether an object may be the definition or part of the operator of a custom
// resource: its placement has the definition and a workload or, if no placement is known to, both
// are deleted because of one commit.
func (w *Waves) mayOperate(o, custom Object) bool {
	if o.ID.GroupKind() == definitions && definedGroup(o.ID) == custom.ID.Group {
		return true
	}
	operators, known := w.operators[custom.ID.Group]
	if known {
		return slices.Contains(operators, o.Placement)
	}
	return o.Commit == custom.Commit
}
