package history

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Each field of a filter leaves out what it does not select; Since is inclusive and Until is not.
func TestFilterMatches(t *testing.T) {
	e := Entry{Time: noon, Kind: Object, Placement: "crp/web", Cluster: "east", Object: "ConfigMap/web/One"}
	means := func(is bool) func(string) bool { return func(string) bool { return is } }
	for name, test := range map[string]struct {
		f    Filter
		want bool
	}{
		"everything":                  {Filter{}, true},
		"the kind":                    {Filter{Kind: Object}, true},
		"another kind":                {Filter{Kind: Commit}, false},
		"the placement":               {Filter{Placement: "crp/web"}, true},
		"a part of its name":          {Filter{Placement: "crp/we"}, false},
		"the cluster":                 {Filter{Cluster: "east"}, true},
		"another cluster":             {Filter{Cluster: "west"}, false},
		"a part of the object's name": {Filter{Object: "WEB/one"}, true},
		"another object":              {Filter{Object: "two"}, false},
		"meant":                       {Filter{Object: "one", Means: means(true)}, true},
		"not meant":                   {Filter{Object: "one", Means: means(false)}, false},
		"since its time":              {Filter{Since: noon}, true},
		"since later":                 {Filter{Since: noon.Add(1)}, false},
		"until its time":              {Filter{Until: noon}, false},
		"until later":                 {Filter{Until: noon.Add(1)}, true},
	} {
		if got := test.f.Matches(e); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Lines are cut only at their ends: after the last that begins within the room.
func TestLinesWithin(t *testing.T) {
	const lines = "aa\nbbb\nc\n"
	for room, want := range map[int64]string{0: "aa\n", 1: "aa\n", 2: "aa\n", 3: "aa\nbbb\n", 6: "aa\nbbb\n", 7: lines, 9: lines, 100: lines} {
		if got := linesWithin([]byte(lines), room); string(got) != want {
			t.Errorf("in %d bytes: %q, want %q", room, got, want)
		}
	}
}

// The last line feed is found wherever it is.
func TestWholeLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, test := range map[string]struct {
		content string
		want    int
	}{
		"empty": {"", 0}, "no line": {"abc", 0}, "a line": {"abc\n", 4}, "a line and a part": {"abc\ndef", 4},
		"a long part": {"abc\n" + long, 4}, "a long line": {long + "\n", len(long) + 1}, "only a long part": {long, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := wholeLines(strings.NewReader(test.content)); err != nil || got != int64(test.want) {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
		})
	}
}

// The times of entries are in UTC and have milliseconds, and each entry is one line.
func TestEntriesAreEncodedInLines(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	var lines bytes.Buffer
	encode(&lines, []Entry{{Time: noon.In(zone).Add(1234567), Kind: Action, Message: "two\nlines"}, {Time: noon}})
	if raw := lines.Bytes(); bytes.Count(raw, []byte("\n")) != 2 || !bytes.Contains(raw, []byte(`"time":"2026-03-01T12:00:00.001Z"`)) || !bytes.Contains(raw, []byte(`two\nlines`)) {
		t.Errorf("%s", raw)
	}
}
