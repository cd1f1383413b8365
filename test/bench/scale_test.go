package main

import (
	"strconv"
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// The bare client applies each object once on each member, and then each change.
func TestBareCrowd(t *testing.T) {
	c := crowd{members: 30, placements: 3}
	var last lastWrite
	err := c.onMembers(simulated.Options{Wrote: last.wrote}, func(dir string, f *simulated.Fleet) error {
		took, err := beBare(t.Context(), dir, strconv.Itoa(c.placements), "2")
		if err != nil {
			return err
		}
		if got, want := f.Requests().Of(fleet.Key{Verb: "APPLY"}), c.entries()*crowdObjects+2*c.members; got != want {
			t.Errorf("%d applies, want %d", got, want)
		}
		if got, _ := last.last(); got != 3*c.members {
			t.Errorf("%d writes of the object that changes, want %d", got, 3*c.members)
		}
		if len(took.Changes) != 2 || took.Seconds <= 0 || took.CPU <= 0 {
			t.Errorf("times are %+v", took)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
