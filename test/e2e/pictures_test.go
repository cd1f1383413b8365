package e2e

import (
	"flag"
	"os"
	"path/filepath"
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
	query := p.source.Query(p.t.Context(), from, to, map[string]string{"fleet": p.fleet, "placement": placement, "cluster": cluster})
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
