package member

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// Watches begin to tell at the end of a turn: those that there are then, and none
// that the turn has ended.
func TestTurnBeginsTheWatchesThereAre(t *testing.T) {
	s := sessionAt(t, newShelf())
	s.changes, s.works, s.trouble = newChanges(), map[api.PlacementKey]work.Work{}, map[api.ID]*trouble{}
	watching := func(gvk schema.GroupVersionKind) *kindWatch {
		return newKindWatch(gvk, connection.Resource{})
	}
	unused, used := watching(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}), watching(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	s.watch = watches{unused, used}
	if err := s.turn(t.Context(), byWorks); err != nil {
		t.Fatal(err)
	}
	if len(s.watch) != 1 || s.watch[0] != used {
		t.Errorf("there are %v", s.watch)
	}
	select {
	case <-used.begun:
	default:
		t.Error("it has not begun")
	}
}
