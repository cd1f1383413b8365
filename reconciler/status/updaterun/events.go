package updaterun

import (
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// Events returns an event when the run of a placement comes to another point, with the reason and the message of the condition that
// says where it is, and one for each stage that is finished. was and run are what Of returned of the placement before and now.
func Events(before *plan.Placement, was *Run, now *plan.Placement, run *Run) []event.Event {
	if run == nil {
		return nil
	}
	var out []event.Event
	for _, c := range occurrence.RunsSince(&before.Record, &now.Record) {
		if c.Event == history.StageFinished && c.Run.Name == run.Name {
			out = append(out, event.Normal("StageUpdatingSucceeded", "run "+run.Name+", stage "+c.Stage+": Stage update completed successfully"))
		}
	}
	if was == nil || was.Name != run.Name || was.Reason != run.Reason || was.Message != run.Message {
		newEvent := event.Normal
		switch run.Reason {
		case "UpdateRunStuck", "UpdateRunFailed", "UpdateRunInitializedFailed":
			newEvent = event.Warning
		}
		out = append(out, newEvent(run.Reason, "run "+run.Name+": "+run.Where(now.Key.String())))
	}
	for i := range out {
		out[i].Commit = run.Commit
	}
	return out
}
