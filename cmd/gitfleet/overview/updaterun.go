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
	return fmt.Sprintf("%s (commit %s): %s", run.Name, output.ShortHash(run.Commit), run.Where(d.Placement))
}
