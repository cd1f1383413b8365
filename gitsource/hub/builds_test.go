package hub

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// If a build exceeds its time limit and still runs when the next one should start, the commit is
// refused with the problem of the one that is too slow.
func TestATimeoutIsReportedWhileTheBuildStillRuns(t *testing.T) {
	files := map[string]string{}
	for _, dir := range []string{"a", "b"} {
		var all strings.Builder
		for i := range 900 {
			all.WriteString("---\n" + namespace(fmt.Sprint(dir, "-", i)))
		}
		files[dir+"/kustomization.yaml"], files[dir+"/all.yaml"] = "resources: [all.yaml]\nnamePrefix: x-\n", all.String()
	}
	_, err := load(Commit{}, newMemoryTree(files), Options{Limits: Limits{BuildTime: time.Millisecond}})
	var refused *LoadError
	if !errors.As(err, &refused) || !strings.Contains(refused.Error(), "a/kustomization.yaml: the build took longer than 1ms") {
		t.Errorf("%v, want the problem of a", err)
	}
}
