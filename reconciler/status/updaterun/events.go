package updaterun

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
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
	if was != nil && was.Name == run.Name {
		earlier := recorded(before, run.Name)
		for i, s := range recorded(now, run.Name).Stages {
			if s.FinishedSince(earlier, i) {
				out = append(out, event.Normal("StageUpdatingSucceeded", "run "+run.Name+", stage "+s.Name+": Stage update completed successfully"))
			}
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

// recorded returns the newest run of a placement with a name.
func recorded(p *plan.Placement, name string) *placement.Run {
	for i := range slices.Backward(p.Record.Runs) {
		if p.Record.Runs[i].Name == name {
			return &p.Record.Runs[i]
		}
	}
	return &placement.Run{}
}
