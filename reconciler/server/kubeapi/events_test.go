package kubeapi

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An event outlives the list it was told in: keeping it must not keep all of
// that, for every list there ever was.
func TestEventsDoNotKeepTheirList(t *testing.T) {
	list := []status.Event{{Kind: "MemberCluster", Name: "east"}, {Kind: "MemberCluster", Name: "west"}}
	core, other := told(list)
	for _, source := range slices.Concat(core, other) {
		if e := source.(happened).Event; e == &list[0] || e == &list[1] {
			t.Errorf("the event about %s is a part of the list", e.Name)
		}
	}
}
