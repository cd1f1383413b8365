package main

import (
	"strconv"
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// The bare client applies each object once on each member.
func TestBareCrowd(t *testing.T) {
	c := crowd{members: 30, placements: 3}
	err := c.onMembers(func(dir string, f *simulated.Fleet) error {
		if err := beBare(t.Context(), dir, strconv.Itoa(c.placements)); err != nil {
			return err
		}
		if got, want := f.Requests().Of(fleet.Key{Verb: "APPLY"}), c.entries()*crowdObjects; got != want {
			t.Errorf("%d applies, want %d", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
