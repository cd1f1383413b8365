package owned

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
)

// ScalerOf returns what placements say about the autoscaler of an object: which one is among the objects that the
// cluster has or waits for and, if the object is to be changed, which are to be deleted at the same time. Objects are deleted
// after others are applied; what an autoscaler would set until then is not asked for. What it finds out about all objects is kept until
// there are new works.
func (v View) ScalerOf(t apply.Task) autoscaler.Placed {
	s := v.state
	if s.scalers == nil {
		s.scalers = map[api.ID]api.ID{}
		for _, w := range s.desired.Works() {
			for _, list := range [][]*work.Manifest{w.Awaited, w.Manifests} {
				for _, m := range list {
					if target, ok := controllers.Scales(m.Object.Content); ok {
						s.scalers[target] = m.ID
					}
				}
			}
		}
	}
	placed := autoscaler.Placed{Scaler: s.scalers[t.Manifest.ID]}
	if t.Item != nil && t.Item.Hash != t.Manifest.Hash && autoscaler.SetsReplicas(t.Manifest.Object.Content) {
		placed.Leaving = v.leavingScalers()
	}
	return placed
}

// leavingScalers returns the autoscalers that are to be deleted, as far as nothing blocks their deletion.
func (v View) leavingScalers() map[api.ID]bool {
	s := v.state
	if s.leaving != nil {
		return s.leaving
	}
	s.leaving = map[api.ID]bool{}
	scalers := v.Objects()
	maps.DeleteFunc(scalers, func(id api.ID, _ bool) bool { return !controllers.IsAutoscaler(id.GroupKind()) })
	listing := v.ListingsFor(len(scalers))
	for id := range scalers {
		stales := v.StalesIn(id, listing(id))
		s.leaving[id] = len(stales) > 0 && !slices.ContainsFunc(stales, func(st Stale) bool {
			return st.PassesOn() || v.Abandons(st) || v.DeletionBlocked(st, []api.ID{id}) != ""
		})
	}
	return s.leaving
}
