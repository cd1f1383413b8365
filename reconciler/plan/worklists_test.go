package plan

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/work"
)

// A work with another cause is sent again, since the member reports the cause of each deletion.
func TestWorksWithOtherCausesDiffer(t *testing.T) {
	a := work.Work{Remove: true, Cause: work.Cause{Why: "no longer selected since the placement was renamed to crp/shop"}}
	b := a
	b.Cause.Why = "no longer selected since the placement was renamed to crp/store"
	if !sameWork(&a, &a) || sameWork(&a, &b) {
		t.Errorf("a work is the same as itself: %t, as one with another cause: %t", sameWork(&a, &a), sameWork(&a, &b))
	}
}
