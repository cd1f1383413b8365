package occurrence

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A RunChange is something that has happened to a staged update run.
type RunChange struct {
	Run   *placement.Run
	Event history.Event
	// Stage is the stage that is finished, or of which a gate has failed; empty otherwise. Gate is that gate.
	Stage string
	Gate  placement.RunGate
}

// RunsSince returns what has happened to the staged update runs of a placement, from its records before and after. was is nil if there
// was none.
func RunsSince(was, is *ledger.Placement) (all []RunChange) {
	for i := range is.Runs {
		run := &is.Runs[i]
		before := sameRun(was, run)
		add := func(event history.Event) { all = append(all, RunChange{Run: run, Event: event}) }
		if run.Failed != "" && before.Failed == "" {
			add(history.RunRefused)
		}
		if !run.Started.IsZero() && before.Started.IsZero() {
			add(history.RunStarted)
		}
		for j := range run.Stages {
			s := &run.Stages[j]
			for _, g := range s.FailedSince(before, j) {
				all = append(all, RunChange{run, history.GateFailed, s.Name, g})
			}
			if s.FinishedSince(before, j) {
				all = append(all, RunChange{Run: run, Event: history.StageFinished, Stage: s.Name})
			}
		}
		switch {
		case !run.Finished.IsZero() && before.Finished.IsZero():
			add(history.RunFinished)
		case run.RolledBack != "" && before.RolledBack == "":
			add(history.RunRolledBack)
		case run.SupersededBy != "" && before.SupersededBy == "":
			add(history.RunSuperseded)
		}
	}
	return all
}

// sameRun returns a run as an earlier record has it, which may be nil; empty if it does not have it.
func sameRun(was *ledger.Placement, run *placement.Run) *placement.Run {
	if was != nil {
		at := slices.IndexFunc(was.Runs, func(r placement.Run) bool { return r.Name == run.Name && r.Initialized.Equal(run.Initialized) })
		if at >= 0 {
			return &was.Runs[at]
		}
	}
	return &placement.Run{}
}

// text says what has happened to the run.
func (c RunChange) text() string {
	text := "run " + c.Run.Name
	switch c.Event {
	case history.RunRefused:
		return text + ": " + c.Run.Failed
	case history.GateFailed:
		return text + ", stage " + c.Stage + ": " + c.Gate.Text()
	case history.StageFinished:
		return text + ", stage " + c.Stage
	case history.RunRolledBack:
		return text + ": " + c.Run.RolledBack + "; the clusters go back to the content of run " + c.Run.SupersededBy
	case history.RunSuperseded:
		return text + ": run " + c.Run.SupersededBy + " has taken its place"
	}
	return text
}
