package metadata

import (
	"testing"
	"time"
)

// A UID stays the same for an object, and differs between objects, also if one was deleted and
// created again.
func TestUIDs(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := UID(noon, "MemberCluster", "east")
	if again := UID(noon.In(time.FixedZone("x", 3600)), "MemberCluster", "east"); again != first || len(first) != 36 {
		t.Errorf("%s, then %s", first, again)
	}
	seen := map[string]string{string(first): "the first"}
	for what, id := range map[string]string{
		"another name": string(UID(noon, "MemberCluster", "west")), "created again": string(UID(noon.Add(time.Nanosecond), "MemberCluster", "east")),
		"other parts": string(UID(noon, "MemberClusterea", "st")), "without a time": string(UID(time.Time{}, "MemberCluster", "east")),
	} {
		if seen[id] != "" {
			t.Errorf("%s has the same UID as %s", what, seen[id])
		}
		seen[id] = what
	}
}
