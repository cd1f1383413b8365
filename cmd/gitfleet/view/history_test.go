package view

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/reports"
)

// A time may be an absolute time, or a duration before now, also in days.
func TestSinceWhen(t *testing.T) {
	for text, want := range map[string]time.Time{
		"30m": reports.Noon.Add(-30 * time.Minute), "24h": reports.Noon.Add(-24 * time.Hour), "7d": reports.Noon.AddDate(0, 0, -7), "2026-01-31T12:00:00+01:00": time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, reports.Noon); err != nil || !got.Equal(want) {
			t.Errorf("%s is %s (%v)", text, got, err)
		}
	}
	for _, text := range []string{"-1h", "0d", "d", "soon", "7"} {
		if got, err := parseSince(text, reports.Noon); err == nil {
			t.Errorf("%s is %s", text, got)
		}
	}
}
