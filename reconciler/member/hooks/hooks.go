// Package hooks decides when the objects of a chart with hooks may be applied on a cluster.
//
// Of returns the order of what a cluster should have; its method For says whether an object may be applied now, according to what
// the inventory lists. The package keeps no state and sends no requests.
//
// Before the other objects come the hooks for pre-install while nothing of the chart was applied, and those for pre-upgrade when
// something of it changes or is added; after them those for post-install and post-upgrade. A Job is waited for until it has run to its end.
package hooks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An Order has the charts with hooks of a cluster, by their objects. Nil has none.
type Order map[object]*chart

type object struct {
	placement api.PlacementKey
	id        api.ID
}

// A chart is what a placement has of one chart.
type chart struct {
	// hooks are sorted by weight, and rest are the other objects.
	hooks []hook
	rest  []*work.Manifest
	// commit is that of the content.
	commit string
}

type hook struct {
	api.Hook
	*work.Manifest
}

// Of returns the order of the objects of works.
func Of(works []*work.Work) Order {
	var order Order
	for _, w := range works {
		if slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { _, is := m.Hook(); return is }) {
			if order == nil {
				order = Order{}
			}
			order.add(w)
		}
	}
	return order
}

func (o Order) add(w *work.Work) {
	charts := map[work.Release]*chart{}
	for _, m := range w.Manifests {
		release, is := m.Release()
		if !is {
			continue
		}
		c := charts[release]
		if c == nil {
			c = &chart{commit: w.Revision.Commit}
			charts[release] = c
		}
		if h, is := m.Hook(); is {
			c.hooks = append(c.hooks, hook{h, m})
		} else {
			c.rest = append(c.rest, m)
		}
		o[object{w.Placement, m.ID}] = c
	}
	for _, c := range charts {
		slices.SortStableFunc(c.hooks, func(a, b hook) int { return cmp.Compare(a.Weight, b.Weight) })
	}
}

// Others returns all objects of the chart of an object, if the chart has hooks.
func (o Order) Others(p api.PlacementKey, id api.ID) []api.ID {
	c := o[object{p, id}]
	if c == nil || len(c.hooks) == 0 {
		return nil
	}
	var ids []api.ID
	for _, h := range c.hooks {
		ids = append(ids, h.ID)
	}
	for _, m := range c.rest {
		ids = append(ids, m.ID)
	}
	return ids
}

// A State says whether an object may be applied.
type State int

// An object is Ready if it may be applied now, and Waits for others of its chart. A hook is NotDue if it is not for what
// happens at the moment: an upgrade or an installation.
const (
	Ready State = iota
	Waits
	NotDue
)

// Items returns the entry of an object in the inventory of the placement; nil if there is none.
type Items func(api.ID) *inventory.Item

// For returns whether an object of a placement may be applied, and what it waits for, as the end of a sentence.
func (o Order) For(p api.PlacementKey, m *work.Manifest, items Items) (state State, why string) {
	c := o[object{p, m.ID}]
	if c == nil || len(c.hooks) == 0 || applied(m, items) {
		return Ready, ""
	}
	own, isHook := m.Hook()
	pre := isHook && c.isPre(own, items)
	switch {
	case isHook && own.Once() && items(m.ID) != nil && items(m.ID).Hash != "":
		return NotDue, ""
	case isHook && !pre && !own.Post():
		return NotDue, ""
	case !isHook && isFirst(m):
		return Ready, ""
	}
	for _, h := range c.hooks {
		if (!pre || h.Weight < own.Weight) && c.isPre(h.Hook, items) {
			if why := awaited(h, items); why != "" {
				return Waits, why
			}
		}
	}
	if pre || !isHook {
		return Ready, ""
	}
	for _, m := range c.rest {
		if !applied(m, items) {
			return Waits, fmt.Sprintf("%s, which is not applied yet", m.ID)
		}
	}
	for _, h := range c.hooks {
		if h.Weight < own.Weight && h.Post() && !c.isPre(h.Hook, items) {
			if why := awaited(h, items); why != "" {
				return Waits, why
			}
		}
	}
	return Ready, ""
}

// isPre reports whether a hook that was not applied yet comes before the other objects now. An object that is not there yet is an
// addition if another one has been there since an earlier commit; else the installation has only begun.
func (c *chart) isPre(h api.Hook, items Items) bool {
	if h.PreInstall && h.PreUpgrade {
		return true
	}
	installed, outdated, earlier, missing := false, false, false, false
	for _, m := range c.rest {
		switch it := items(m.ID); {
		case isFirst(m):
		case it == nil || it.Hash == "":
			missing = true
		default:
			installed, outdated, earlier = true, outdated || it.Hash != m.Hash, earlier || it.Commit != c.commit
		}
	}
	return h.PreInstall && !installed || h.PreUpgrade && (outdated || missing && earlier)
}

// isFirst reports whether an object comes before all hooks: what others need to exist at all.
func isFirst(m *work.Manifest) bool { return work.Wave(m.ID.GroupKind()) == 0 }

func applied(m *work.Manifest, items Items) bool {
	it := items(m.ID)
	return it != nil && it.Hash == m.Hash
}

// awaited returns why others still wait for a hook; empty if they do not.
func awaited(h hook, items Items) string {
	it := items(h.ID)
	isJob := h.ID.GroupKind() == api.GroupKind{Group: "batch", Kind: "Job"}
	switch {
	case it == nil || it.Hash != h.Hash && (it.Hash == "" || !h.Once()):
		return fmt.Sprintf("the hook %s, which is not applied yet", h.ID)
	case isJob && it.End == inventory.Failed:
		return fmt.Sprintf("the hook %s, which has failed; it runs again when what the chart renders changes", h.ID)
	case isJob && it.End == "":
		return fmt.Sprintf("the hook %s, which has not run to its end", h.ID)
	}
	return ""
}
