package intern

import (
	"slices"
	"testing"
)

// Equal values are shared as long as they are among the last ones that differ, and a value is made only if none is equal.
func TestRecentValuesAreShared(t *testing.T) {
	var recent Recent[*int]
	made := 0
	share := func(n int) *int {
		return recent.Share(2, func(known *int) bool { return *known == n }, func() *int {
			made++
			return &n
		})
	}
	one, two := share(1), share(2)
	if share(1) != one || share(2) != two || made != 2 {
		t.Errorf("two values are not shared: %d were made", made)
	}
	three := share(3)
	if want := (Recent[*int]{two, three}); !slices.Equal(recent, want) {
		t.Errorf("%d values are kept, want the newest 2", len(recent))
	}
	if share(1) == one {
		t.Error("the oldest value is still shared")
	}
}
