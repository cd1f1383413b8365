package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// What is left out is counted in objects, as the line says, and not in lines.
func TestObjectsOfHiddenLinesAreCounted(t *testing.T) {
	var o Overview
	for i := range fewProblems + 2 {
		for _, cluster := range []string{"east", "west", "north"} {
			o.Drifts = append(o.Drifts, Drift{Object: fmt.Sprint("ConfigMap/web/", i), Cluster: cluster})
			o.FailedDeletions = append(o.FailedDeletions, Deletions{Placement: fmt.Sprint("crp/", i), Cluster: cluster, Objects: []string{"a", "b"}})
		}
	}
	text := strings.Join(o.Text(output.Page{Width: 100}, time.Now(), false), "\n")
	for _, want := range []string{"and 6 more objects; see gitfleet drift", "and 12 more objects; see gitfleet status --all"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
