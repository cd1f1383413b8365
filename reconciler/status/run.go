package status

import (
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An UpdateRun is a staged update run of a placement.
type UpdateRun struct {
	Name      string `json:"name"`
	Automatic bool   `json:"automatic,omitempty"` // it was made for a commit
	Commit    string `json:"commit"`              // whose content it brings
	// Reason and Message are those of KubeFleet's condition Progressing, or of Succeeded or Initialized once the run has ended.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Asks is the stage that waits for an approval; empty if none does. Before says that its clusters are not updated before that.
	Asks     string        `json:"asks,omitempty"`
	Before   bool          `json:"before,omitempty"`
	Stages   []UpdateStage `json:"stages,omitempty"`
	Finished time.Time     `json:"finished,omitzero"`
}

// An UpdateStage is a stage of a run.
type UpdateStage struct {
	Name     string    `json:"name"`
	Clusters int       `json:"clusters"` // without those that have left the placement
	Updated  int       `json:"updated"`  // of them, those that have been available with the content
	Finished time.Time `json:"finished,omitzero"`
}

// The reasons of the conditions of runs are KubeFleet's, except UpdateRunSuperseded.
const (
	runFailed      = "UpdateRunInitializedFailed"
	runWaiting     = "UpdateRunWaiting"
	runStuck       = "UpdateRunStuck"
	runStopped     = "UpdateRunStopped"
	runProgressing = "UpdateRunProgressing"
	runSucceeded   = "UpdateRunSucceeded"
	runSuperseded  = "UpdateRunSuperseded"
	runInitialized = "UpdateRunInitializedSuccessfully"
)

// updateRun returns the newest update run of a placement; nil if there is none.
func updateRun(p *plan.Placement) *UpdateRun {
	n := len(p.Record.Runs)
	if n == 0 {
		return nil
	}
	run := &p.Record.Runs[n-1]
	out := &UpdateRun{Name: run.Name, Automatic: run.Automatic, Commit: run.Content.Commit, Finished: run.Finished}
	var failed []string // in the stage whose turn it is
	open := -1
	for i := range run.Stages {
		s := &run.Stages[i]
		if open < 0 && s.Finished.IsZero() {
			open = i
		}
		stage := UpdateStage{Name: s.Name, Finished: s.Finished}
		for _, name := range s.Clusters {
			c := p.On(name)
			if c == nil || c.Binding.Unscheduled || c.Binding.Removing {
				continue
			}
			stage.Clusters++
			switch has := c.Binding.HasRevision() && (c.Binding.Index == run.Index || run.Index == p.Record.Index && c.UpToDate()); {
			case !s.Finished.IsZero() || has && c.Binding.WasAvailable:
				stage.Updated++
			case has && c.Failure != "" && open == i:
				failed = append(failed, name)
			}
		}
		out.Stages = append(out.Stages, stage)
	}
	if asks, before := run.Asks(); asks != nil {
		out.Asks, out.Before = asks.Name, before
	}
	out.Reason, out.Message = progressOf(run, p.RunHalted, open, failed, out)
	return out
}

// progressOf says how far a run is. open is the index of the stage whose turn it is; -1 if all have ended.
func progressOf(run *placement.Run, halted string, open int, failed []string, out *UpdateRun) (reason, message string) {
	switch {
	case run.Failed != "":
		return runFailed, run.Failed
	case run.SupersededBy != "":
		return runSuperseded, "The update run " + run.SupersededBy + " has taken its place"
	case !run.Finished.IsZero():
		return runSucceeded, "All stages are completed successfully"
	case run.Started.IsZero():
		return runInitialized, "The UpdateRun initialized successfully"
	case halted != "":
		return runStopped, "The update run has been stopped: " + halted
	case out.Asks != "" && out.Before:
		return runWaiting, fmt.Sprintf("The updateRun is waiting for before-stage tasks in stage %s to complete", out.Asks)
	case open >= 0 && !run.Stages[open].Updated.IsZero():
		return runWaiting, fmt.Sprintf("The updateRun is waiting for after-stage tasks in stage %s to complete", run.Stages[open].Name)
	case len(failed) > 0:
		return runStuck, placement.StuckMessage(run.Stages[open].Name, failed)
	}
	return runProgressing, "The update run is making progress"
}
