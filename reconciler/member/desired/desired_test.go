package desired

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// Every object of the works is found with its placement, and all are listed by ID.
func TestEveryDesiredObjectIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owners := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.IntRange(0, 2), 0, 5).Draw(t, "owners")
		works := make([]*work.Work, 3)
		for p := range works {
			works[p] = &work.Work{Placement: api.PlacementKey{Name: fmt.Sprint("p", p)}}
		}
		for name, p := range owners {
			works[p].Manifests = append(works[p].Manifests, &work.Manifest{Object: &api.Object{ID: configMap(name)}})
		}
		var state State
		state.Replace(works, func(_, _ Object) bool { return false })
		got := state.View().Wanted()
		for name, p := range owners {
			if w, ok := got.Of(configMap(name)); !ok || w.Placement != works[p].Placement || w.Manifest.ID != configMap(name) {
				t.Errorf("%s belongs to %v, want %v", name, w.Placement, works[p].Placement)
			}
		}
		if w, ok := got.Of(configMap("z")); ok {
			t.Errorf("an object of no work belongs to %v", w.Placement)
		}
		var order []api.ID
		for id := range got.All() {
			order = append(order, id)
		}
		if len(order) != len(owners) || !slices.IsSortedFunc(order, api.ID.Compare) {
			t.Errorf("listed: %v", order)
		}
	})
}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }
