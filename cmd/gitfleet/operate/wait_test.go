package operate

import (
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A daemon that was just restarted has no commit in force yet. That does not end the wait for a
// commit that was.
func TestWaitOverARestart(t *testing.T) {
	w := &condition{commit: reports.FirstCommit, inForce: true}
	if judged, why := w.evaluateCommit(&waitReport{Report: &status.Report{}}); judged != pending {
		t.Errorf("it ends the waiting: %s", why)
	}
}
