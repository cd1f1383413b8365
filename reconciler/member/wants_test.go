package member

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// Every desired object is found once. If two placements want it, the better one gets it.
func TestWantsAreFound(t *testing.T) {
	manifest := func(name string) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: cm(name), Object: &unstructured.Unstructured{}}}
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID)
		var works []work.Work
		holder := map[api.ID]api.PlacementKey{}
		strong := api.PlacementKey{Name: rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(t, "strong")}
		for p := range 3 {
			w := work.Work{Placement: api.PlacementKey{Name: fmt.Sprintf("p%d", p)}}
			for _, n := range names.Draw(t, "names") {
				w.Manifests = append(w.Manifests, manifest(n))
				if _, taken := holder[cm(n)]; !taken || w.Placement == strong {
					holder[cm(n)] = w.Placement
				}
			}
			works = append(works, w)
		}
		got := wantsOf(works, func(_, second wanted) bool { return second.placement == strong })
		if len(got) != len(holder) {
			t.Fatalf("%d are wanted, want %d", len(got), len(holder))
		}
		for id, p := range holder {
			if w, ok := got.of(id); !ok || w.placement != p || w.manifest.ID != id {
				t.Errorf("%s is wanted by %v, want %v", id, w.placement, p)
			}
		}
		if w, ok := got.of(cm("z")); ok {
			t.Errorf("wants what nobody does: %v", w)
		}
		var order []api.ID
		for id := range got.all() {
			order = append(order, id)
		}
		if !slices.IsSortedFunc(order, api.ID.Compare) {
			t.Errorf("not in order: %v", order)
		}
	})
}
