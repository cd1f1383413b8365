package e2e

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/picture"
)

var pictures = flag.Bool("pictures", false, "write the pictures of the dashboards to docs/pictures")

// draw draws each dashboard with the data of Prometheus since from. The files are only written
// with -pictures: they differ from run to run.
func (p *prometheus) draw(from time.Time, placement, cluster string) {
	p.t.Helper()
	root, err := checkout.Root()
	if err != nil {
		p.t.Fatal(err)
	}
	to := time.Now()
	set := strings.NewReplacer("$__rate_interval", "10s", "$placement", placement, "$cluster", cluster)
	query := func(expr string, instant bool) ([]picture.Series, error) {
		start := from
		if instant {
			start = to
		}
		return p.queryRange(set.Replace(expr), start, to)
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/*.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		svg, err := picture.Draw(text, from, to, query)
		if err != nil {
			p.t.Fatalf("%s: %v", file, err)
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".json") + ".svg"; *pictures {
			if err := os.WriteFile(filepath.Join(root, "docs/pictures", name), []byte(svg), 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// queryRange evaluates an expression between two times.
func (p *prometheus) queryRange(expr string, from, to time.Time) ([]picture.Series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	result, err := p.ask("query_range", url.Values{
		"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {seconds(time.UnixMilli(max(250, to.Sub(from).Milliseconds()/300)))},
	})
	if err != nil {
		return nil, err
	}
	var all []picture.Series
	for _, r := range result {
		s := picture.Series{Labels: r.Metric}
		for _, v := range r.Values {
			at, ok := v[0].(float64)
			value, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			if !ok || err != nil {
				return nil, fmt.Errorf("%s: unexpected value %v", expr, v)
			}
			s.Points = append(s.Points, picture.Point{At: time.UnixMilli(int64(at * 1000)), Value: value})
		}
		all = append(all, s)
	}
	return all, nil
}
