package diff

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestThreeFlipsInTenMinutesAreAContest(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		flips     []time.Duration // time since the start
		at        time.Duration
		contested bool
		due       time.Duration
	}{
		"one":                        {[]time.Duration{0}, 0, false, 0},
		"two":                        {[]time.Duration{0, time.Minute}, time.Minute, false, time.Minute},
		"three in ten minutes":       {[]time.Duration{0, 5 * time.Minute, 10 * time.Minute}, 10 * time.Minute, true, 10*time.Minute + 30*time.Second},
		"three in more":              {[]time.Duration{0, 5 * time.Minute, 10*time.Minute + 1}, 10*time.Minute + 1, false, 10*time.Minute + 1},
		"four":                       {[]time.Duration{0, 1, 2, 3}, 3, true, 3 + time.Minute},
		"five":                       {[]time.Duration{0, 1, 2, 3, 4}, 4, true, 4 + 2*time.Minute},
		"twelve, and no slower":      {[]time.Duration{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 11, true, 11 + 15*time.Minute},
		"still, while it is put off": {[]time.Duration{0, 1, 2}, 10 * time.Minute, true, 2 + 30*time.Second},
		"over after ten quiet minutes since it was reverted": {[]time.Duration{0, 1, 2}, 2 + 30*time.Second + 10*time.Minute, false, 2 + 30*time.Second},
		"and then from the start":                            {[]time.Duration{0, 1, 2, time.Hour}, time.Hour, false, time.Hour},
		"a slow contest goes on":                             {[]time.Duration{0, 1, 2, 9 * time.Minute, 18 * time.Minute}, 18 * time.Minute, true, 20 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var f Flips
			for _, at := range test.flips {
				f = f.Flip(start.Add(at), "someone")
			}
			if got := f.Contested(start.Add(test.at)); got != test.contested {
				t.Errorf("contested = %t", got)
			}
			if got := f.Due().Sub(start); got != test.due {
				t.Errorf("due after %s, want %s", got, test.due)
			}
			if f.Total != len(test.flips) || f.By != "someone" || f.Last() != start.Add(test.flips[len(test.flips)-1]) {
				t.Errorf("remembers %+v", f)
			}
		})
	}
	if (Flips{}).Contested(start) || !(Flips{}).Last().IsZero() {
		t.Error("nothing happened, and it is contested")
	}
}

// However often somebody undoes what is applied, it is reverted, with growing delays of up to a
// quarter of an hour.
func TestContestedDriftIsStillReverted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Flips
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		waited := time.Duration(0)
		for _, pause := range rapid.SliceOfN(rapid.Int64Range(0, int64(20*time.Minute)), 1, 40).Draw(t, "pauses") {
			was := f.Contested(now)
			f = f.Flip(now, "")
			wait := f.Due().Sub(now)
			switch {
			case wait < 0 || wait > 15*time.Minute:
				t.Fatalf("reverted after %s", wait)
			case (wait > 0) != f.Contested(now):
				t.Fatalf("contested = %t, and reverted after %s", f.Contested(now), wait)
			case was && wait < waited:
				t.Fatalf("reverted after %s, when it was %s before", wait, waited)
			}
			waited = wait
			now = f.Due().Add(time.Duration(pause))
		}
	})
}
