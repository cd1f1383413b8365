package operate

import (
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, zone)
	tests := map[string]time.Time{
		"":                     {},
		"18:00":                time.Date(2026, 1, 31, 18, 0, 0, 0, zone),
		"06:30":                time.Date(2026, 2, 1, 6, 30, 0, 0, zone),
		"2026-03-01 08:00":     time.Date(2026, 3, 1, 8, 0, 0, 0, zone),
		"2026-03-01":           time.Date(2026, 3, 1, 0, 0, 0, 0, zone),
		"2026-03-01T08:00:00Z": time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC),
	}
	for text, want := range tests {
		if got, err := parseMoment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"soon", "25:00", "18:60", "2026-13-01", "tomorrow 18:00"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	if at, err := parseMoment("12:00", now); err != nil || !at.Equal(now.AddDate(0, 0, 1)) {
		t.Errorf("the present time of day is %s, %v; want tomorrow's", at, err)
	}
}
