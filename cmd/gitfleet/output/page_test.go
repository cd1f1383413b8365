package output

import (
	"slices"
	"testing"
	"time"
)

// A text is brought to a width without its control characters.
func TestFit(t *testing.T) {
	for text, test := range map[string]struct {
		width          int
		fit, truncated string
	}{
		"web":        {5, "web  ", "web"},
		"größe":      {5, "größe", "größe"},
		"placements": {5, "plac…", "plac…"},
		"a\033[31mb": {8, "a\uFFFD[31mb ", "a\uFFFD[31mb"},
		"":           {0, "", ""},
	} {
		if got := Fit(text, test.width); got != test.fit {
			t.Errorf("%q is fitted as %q, want %q", text, got, test.fit)
		}
		if got := Truncate(text, test.width); got != test.truncated {
			t.Errorf("%q is truncated to %q, want %q", text, got, test.truncated)
		}
	}
}

// Lines break between words, and within a word only if it is longer than a line.
func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"short":                   {"short"},
		"two words":               {"two words"},
		"it waits for  a cluster": {"it waits", "for a", "cluster"},
		"incomprehensible":        {"incompreh", "ensible"},
		"an incomprehensible end": {"an", "incompreh", "ensible", "end"},
	} {
		if got := Wrap(text, 9); !slices.Equal(got, want) {
			t.Errorf("%q is wrapped as %q, want %q", text, got, want)
		}
	}
}

// The lines of a text below a label are indented, unless it fits on one line or is one word.
func TestHang(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "why: \n",
		"two  words":             "why: two  words\n",
		"it waits for a cluster": "why: it waits\n     for a\n     cluster\n",
		"path/to/placement.yaml": "why: path/to/placement.yaml\n",
	} {
		if got := Hang("why: ", text, 15); got != want {
			t.Errorf("%q hangs as %q, want %q", text, got, want)
		}
	}
}

// Escaped texts stay on one line and do not move the cursor.
func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain \"text\"": "plain \"text\"", "a\nb": `a\nb`, "\033[2J": `\x1b[2J`, "right\u202eleft": `right\u202eleft`, "it's": "it's",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q is escaped as %q, want %q", text, got, want)
		}
	}
}

// Only a terminal gets colors and wrapped lines.
func TestPage(t *testing.T) {
	for name, test := range map[string]struct {
		p               Page
		painted, folded string
	}{
		"a file":                    {Page{Width: 9}, "ok", "  it waits  for a cluster"},
		"a terminal":                {Page{Width: 13, Terminal: true, Color: true}, "\uFDD4ok\uFDD0", "  it waits\n    for \uFDD1a\n    cluster\uFDD0"},
		"a narrow terminal":         {Page{Width: 7, Terminal: true}, "ok", "  it\n    waits\n    for\n    a\n    cluster"},
		"a terminal without colors": {Page{Width: 80, Terminal: true}, "ok", "  it waits  for a cluster"},
	} {
		if got := test.p.Fold("  it waits  for "+test.p.Paint(Bold, "a cluster"), "    "); got != test.folded {
			t.Errorf("%s: folded %q, want %q", name, got, test.folded)
		}
		if got := test.p.Paint(Green, "ok"); got != test.painted {
			t.Errorf("%s: painted %q, want %q", name, got, test.painted)
		}
	}
}

func TestCounts(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for got, want := range map[string]string{
		Count(0, "object"): "0 objects", Count(1, "object"): "1 object", Count(2, "object"): "2 objects",
		ShortHash("a1a1a1a1a1a1"): "a1a1a1a1", ShortHash("a1"): "a1",
		Since(noon, noon.Add(-90*time.Minute)): "90m", Since(noon, time.Time{}): "-",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
