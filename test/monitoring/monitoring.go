// Package monitoring tests the alerts and the dashboards of deploy, with Prometheus' own
// tools.
package monitoring

import (
	"os"
	"regexp"
	"strings"
)

// family matches the name of a metric of gitfleet, with what a histogram adds to it.
var family = regexp.MustCompile(`\b(?:gitfleet_|fleet_workload_)[a-z_]+[a-z]`)

// metricsIn returns the names of our metrics that are used in a query, without what a
// histogram adds.
func metricsIn(query string) []string {
	names := family.FindAllString(query, -1)
	for i, name := range names {
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names[i] = strings.TrimSuffix(names[i], part)
			if names[i] != name {
				break
			}
		}
	}
	return names
}

// documented are the names of the metrics in a page that lists them in tables.
func documented(page string) (map[string]bool, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			names[name] = true
		}
	}
	return names, nil
}
