package monitoring

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/golden"
)

// The files that are imported into Grafana are generated from the table of dashboards.
func TestDashboardsAreGenerated(t *testing.T) {
	for i := range dashboards {
		d := &dashboards[i]
		text, err := d.render()
		if err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join("../../deploy/grafana", d.file), text)
	}
}

// Every query of a dashboard parses, and uses documented metrics and variables of its page
// only; every panel has a description.
func TestQueriesOfDashboards(t *testing.T) {
	exist, err := documented(metrics)
	if err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: queries\n  rules:\n")
	for _, d := range dashboards {
		for _, r := range d.rows {
			for _, p := range r.panels {
				if p.about == "" || p.title == "" || p.unit == "" {
					t.Errorf("%s: the panel %q does not say what it shows", d.file, p.title)
				}
				for _, q := range p.queries {
					if n, fleets := len(selected.FindAllString(q.expr, -1)), strings.Count(q.text(), `fleet="$fleet"`); n == 0 || fleets != n {
						t.Errorf("%s: %s selects %d series, and %d of them by fleet: %s", d.file, p.title, n, fleets, q.text())
					}
					for _, name := range metricsIn(q.expr) {
						if !exist[name] {
							t.Errorf("%s: %s uses %s, which is not documented", d.file, p.title, name)
						}
					}
					expr := q.at(d.variable, "a")
					if strings.Contains(expr, "$") {
						t.Errorf("%s: %s has a variable that the page does not have: %s", d.file, p.title, expr)
					}
					rules.WriteString("  - record: query\n    expr: " + strconv.Quote(expr) + "\n    labels: {page: " + strconv.Quote(d.title) + ", panel: " + strconv.Quote(p.title+" "+q.legend) + "}\n")
				}
			}
		}
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, filepath.Dir(file), "check", "rules", "--lint=all", "--lint-fatal", filepath.Base(file))
}
