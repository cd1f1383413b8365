package inventory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Serial numbers are found as in a map, in whatever order they are recorded and dropped.
func TestSerialsAreThoseOfPlacements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		placement := rapid.Custom(func(t *rapid.T) api.PlacementKey {
			return api.PlacementKey{Namespace: rapid.SampledFrom([]string{"", "a"}).Draw(t, "namespace"), Name: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")}
		})
		want := rapid.MapOf(placement, rapid.Uint64Range(1, 9)).Draw(t, "at first")
		got := SerialsOf(want)
		for range rapid.IntRange(0, 9).Draw(t, "changes") {
			p, number := placement.Draw(t, "placement"), rapid.Uint64Range(0, 9).Draw(t, "number")
			if number == 0 {
				got.drop(p)
				delete(want, p)
			} else {
				got.set(p, number)
				want[p] = number
			}
			if got.Of(p) != number {
				t.Fatalf("%v has %d, not %d", p, got.Of(p), number)
			}
		}
		if !slices.Equal(got, SerialsOf(want)) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
