package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

const page = `{"title": "Fleet <all>", "panels": [
	{"type": "row", "title": "Now", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}},
	{"type": "stat", "title": "Answers", "gridPos": {"x": 0, "y": 1, "w": 4, "h": 4}, "fieldConfig": {"defaults": {"unit": "bool_yes_no"}}, "targets": [{"expr": "up", "instant": true}]},
	{"type": "timeseries", "title": "Lag", "gridPos": {"x": 0, "y": 5, "w": 12, "h": 8}, "fieldConfig": {"defaults": {"unit": "s"}}, "targets": [{"expr": "lag", "legendFormat": "{{cluster}}"}]}
]}`

func TestDraw(t *testing.T) {
	from := time.Unix(1000, 0)
	to := from.Add(time.Minute)
	query := func(expr string, instant bool) ([]Series, error) {
		switch {
		case expr == "up" && instant:
			return []Series{{Points: []Point{{to, 1}}}}, nil
		case expr == "lag" && !instant:
			return []Series{
				{Labels: map[string]string{"cluster": "west"}, Points: []Point{{from, 0}, {from.Add(time.Second), 30}, {to, 30}}},
				{Labels: map[string]string{"cluster": "east"}, Points: []Point{{from, 10}, {to, 10}}},
				{Labels: map[string]string{"cluster": "none"}},
			}, nil
		}
		return nil, errors.New("unexpected query " + expr)
	}
	svg, err := Draw([]byte(page), from, to, query)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
	}
	for _, want := range []string{"Fleet &lt;all&gt;", ">Now<", ">Yes<", ">30 s<", ">east<", ">west<", ">1m0s<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %s:\n%s", want, svg)
		}
	}
	if strings.Contains(svg, ">none<") || strings.Contains(svg, "NaN") {
		t.Errorf("the picture shows what has no data:\n%s", svg)
	}
	// West has a gap of a minute after its second point, so it is two lines; east has two points.
	if n := strings.Count(svg, "<polyline"); n != 4 {
		t.Errorf("the picture has %d lines, want 4:\n%s", n, svg)
	}
	if _, err := Draw([]byte(strings.ReplaceAll(page, `"lag"`, `"other"`)), from, to, query); err == nil || !strings.Contains(err.Error(), "Lag: unexpected query other") {
		t.Errorf("the error is %v", err)
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "none", "0"}, {2.5, "none", "2.5"}, {1234, "none", "1234"}, {0.333, "percentunit", "33%"}, {0, "bool_yes_no", "No"},
		{0.00025, "s", "250 µs"}, {0.25, "s", "250 ms"}, {90, "s", "90 s"}, {600, "s", "10 min"}, {3 << 20, "bytes", "3 MiB"}, {0.5, "reqps", "0.5/s"},
	} {
		if got := format(test.value, test.unit); got != test.want {
			t.Errorf("%v as %s is %s, want %s", test.value, test.unit, got, test.want)
		}
	}
}
