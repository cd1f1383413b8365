package overview

import (
	"fmt"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// updateRun says where the staged update run of a placement is; empty if there is none, or if it has finished.
func updateRun(d *status.Detail) string {
	run := d.UpdateRun
	if run == nil || !run.Finished.IsZero() {
		return ""
	}
	head := fmt.Sprintf("%s (commit %s): ", run.Name, output.ShortHash(run.Commit))
	if run.Asks == "" {
		return head + run.Message
	}
	when := "after"
	if run.Before {
		when = "before"
	}
	return head + fmt.Sprintf("an approval %s stage %s is missing: %s", when, run.Asks, run.Approve(d.Placement))
}
