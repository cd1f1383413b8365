package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/reports"
)

// Under External the conditions are about the content that clusters have. What clusters wait
// for is still shown, and nothing says that a rollout is in progress.
func TestExternalSaysWhyClustersWait(t *testing.T) {
	s := reports.New(t)
	s.Seen("ams", "ber")
	const text = "clusters ams ber\nnamespace web\nconfigmap web/one "
	s.Commit(reports.FirstCommit, "Ada", "Bring the web", text+"1\nplace web unavailable 2")
	for range 3 {
		s.Turn(10 * time.Second)
		s.Says("ams", "web")
		s.Says("ber", "web")
	}
	s.Commit(reports.SecondCommit, "Ada", "Say two", text+"2\nplace web external")
	s.Turn(10 * time.Second)
	s.Turn(10 * time.Second)
	_, address := listening(t, s.Report)
	for command, wants := range map[string][]string{
		"status":           {" waiting\n", "waiting: ams, ber: the strategy is External"},
		"describe crp web": {"ams  waiting", "the strategy is External: the cluster waits for an update run"},
	} {
		var got bytes.Buffer
		transcribe(&got, append(strings.Fields(command), "--server", address)...)
		for _, want := range wants {
			if !strings.Contains(got.String(), want) {
				t.Errorf("%s does not say %q:\n%s", command, want, &got)
			}
		}
	}
}
