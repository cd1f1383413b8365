package simulation

import (
	"testing"
	"time"
)

// The difference of two readings of one process does not depend on the wall clock, as with
// time.Now.
func TestClockMeasuresElapsedTimeNotWallTime(t *testing.T) {
	wall := time.Date(2026, 11, 22, 10, 0, 0, 5, time.UTC)
	before, after := reading(wall, time.Second), reading(wall.Add(-time.Hour), 3*time.Second)
	if got := after.Sub(before); got != 2*time.Second || !before.Before(after) {
		t.Errorf("%s pass, want 2s", got)
	}
	if got := after.Round(0).Sub(before.Round(0)); got != -time.Hour {
		t.Errorf("the wall goes on by %s, want -1h", got)
	}
	if !before.Round(0).Equal(wall) || before.Format(time.RFC3339Nano) != "2026-11-22T10:00:00.000000005Z" {
		t.Errorf("the wall shows %s, want %s", before, wall)
	}
}
