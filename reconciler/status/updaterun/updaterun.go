// Package updaterun reports the staged update runs of placements: Of for people, Objects as KubeFleet's kinds.
package updaterun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Run is a staged update run of a placement.
type Run struct {
	Name      string `json:"name"`
	Automatic bool   `json:"automatic,omitempty"` // it was made for a commit
	Commit    string `json:"commit"`              // whose content it brings
	// Reason and Message are those of KubeFleet's condition Progressing, or of Succeeded or Initialized once the run has ended.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// ApprovalStage is the stage that waits for an approval; empty if none does. Before says that its clusters are not updated before that.
	// ApprovalSince is since when it waits. The JSON fields of both keep the names that the schema promises.
	ApprovalStage string `json:"asks,omitempty"`
	Before        bool   `json:"before,omitempty"`
	// ByReview reports whether an approving review of the pull request with the content also counts as the approval. Proven is the
	// fingerprint of the content of the last finished run; empty if there is none.
	ByReview bool   `json:"byReview,omitempty"`
	Proven   string `json:"-"`
	// InGit reports whether the configuration asks for a commit as the approval.
	InGit         bool      `json:"inGit,omitempty"`
	ApprovalSince time.Time `json:"asksSince,omitzero"`
	Gates         []string  `json:"gates,omitempty"` // that have not passed and are asked now, each with its answer
	Stages        []Stage   `json:"stages,omitempty"`
	Finished      time.Time `json:"finished,omitzero"`
}

// CommitApproval says what to commit to approve a stage of a run.
func CommitApproval(placement api.PlacementKey, run, stage string, before bool) string {
	_, kind := kinds(placement.Namespace)
	return fmt.Sprintf("commit the %s %s with parentStageRollout: %s and targetStage: %s", kind, api.ApprovalName(run, stage, before), run, stage)
}

// Where describes the current state of the run and the answers of its gates. If the run waits for an approval, it includes the command
// that gives the approval, or what to commit.
func (u *Run) Where(placement string) string {
	return strings.Join(append([]string{u.WhereWithoutGates(placement)}, u.Gates...), "; ")
}

// WhereWithoutGates is Where without the answers of gates, which the texts of the stages include too.
func (u *Run) WhereWithoutGates(placement string) string {
	if u.ApprovalStage == "" {
		return u.Message
	}
	when := "after"
	if u.Before {
		when = "before"
	}
	text := fmt.Sprintf("an approval %s stage %s is missing: ", when, u.ApprovalStage)
	if key, _ := api.ParsePlacement(placement); u.InGit {
		text += CommitApproval(key, u.Name, u.ApprovalStage, u.Before)
	} else {
		text += fmt.Sprintf("gitfleet approve %s --stage %s --run %s", placement, u.ApprovalStage, u.Name)
	}
	if u.ByReview {
		text += ", or an approving review of the pull request of commit " + u.Commit[:min(8, len(u.Commit))]
	}
	return text
}

// A Stage is a stage of a run.
type Stage struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"` // without those that have left the placement
	Updated  int    `json:"updated"`  // of them, those that have been available with the content
	// Unreachable is the number of clusters that are skipped as unreachable, of a finished stage also of those that have answered since
	// and do not have the content yet.
	Unreachable int       `json:"unreachable,omitempty"`
	Finished    time.Time `json:"finished,omitzero"`
	Waits       []string  `json:"waits,omitempty"` // what is missing of its tasks, if it is the turn of the stage
	// Gates are those that are asked now, or have been, if it is the turn of the stage.
	Gates []Gate `json:"gates,omitempty"`
}

// A Gate is a gate of the stage whose turn it is.
type Gate struct {
	Name  string              `json:"name"`
	State placement.GateState `json:"state"`
	Due   time.Time           `json:"due,omitzero"` // when it could have passed at the earliest; zero once it has passed or failed
}

// gates are the gates of a stage whose clusters are updated.
func gates(s *placement.RunStage) (out []Gate) {
	for i := range s.Gates {
		g := Gate{Name: s.Gates[i].Name, State: s.Gates[i].State()}
		if s.Gates[i].Passed.IsZero() && !s.Gates[i].HasFailed() {
			g.Due = s.Due(&s.Gates[i])
		}
		out = append(out, g)
	}
	return out
}

// Text says how many clusters of the stage are updated, and what of its tasks is missing.
func (s *Stage) Text() string {
	clusters := "clusters"
	if s.Clusters == 1 {
		clusters = "cluster"
	}
	text := fmt.Sprintf("stage %s: %d of %d %s updated", s.Name, s.Updated, s.Clusters, clusters)
	if s.Unreachable > 0 {
		text += fmt.Sprintf(", %d skipped as unreachable", s.Unreachable)
	}
	if len(s.Waits) > 0 {
		text += ", waits for " + strings.Join(s.Waits, " and for ")
	}
	return text
}

// Of returns the update run of a placement that is in force, or else the newest; nil if there is none. approvalsInGit says that stages
// are approved by commits only.
func Of(p *plan.Placement, now time.Time, approvalsInGit bool) *Run {
	n := len(p.Record.Runs)
	if n == 0 {
		return nil
	}
	at := n - 1
	if inForce := p.Rollout.Run; inForce != nil {
		at = slices.IndexFunc(p.Record.Runs, func(r placement.Run) bool { return r.Name == inForce.Name })
		if newest := &p.Record.Runs[n-1]; newest.RolledBack != "" && newest.SupersededBy == inForce.Name {
			at = n - 1
		}
	}
	v := newView(p, &p.Record.Runs[at], now)
	out := &Run{Name: v.run.Name, Automatic: v.run.Automatic, Commit: v.run.Content.Commit, Finished: v.run.Finished}
	for i := range v.run.Stages {
		s := &v.run.Stages[i]
		stage := Stage{Name: s.Name, Finished: s.Finished}
		for _, name := range s.Clusters {
			if !v.member(name) {
				continue
			}
			stage.Clusters++
			switch {
			case slices.Contains(s.Unreachable, name):
				stage.Unreachable++
			case !s.Finished.IsZero() && !slices.Contains(s.Failed, name) || v.updated[name]:
				stage.Updated++
			}
		}
		if i == v.run.Turn() && v.run.Active() && v.run.Halted == "" {
			stage.Waits = v.missingTasks(s)
			if !s.Updated.IsZero() {
				stage.Gates = gates(s)
			}
		}
		out.Stages = append(out.Stages, stage)
	}
	if asks, before := v.run.AwaitedApproval(); asks != nil && v.run.Halted == "" {
		out.ApprovalStage, out.Before, out.ApprovalSince = asks.Name, before, cmp.Or(asks.Requested, asks.Updated)
		out.InGit, out.Proven = approvalsInGit, provenByRun(p.Record.Runs)
		out.ByReview = !out.InGit && byReview(p, v.run.Name, asks.Name)
		if before {
			out.ApprovalSince = v.run.Entered(v.run.Turn())
		}
	}
	c := v.conditions()
	out.Reason, out.Message = c[len(c)-1].Reason, c[len(c)-1].Message
	if v.run.Halted == "" {
		out.Gates = v.run.PendingGates()
	}
	if v.run.Halted != "" && v.run.Active() {
		out.Message += ": " + v.run.Halted
	} else if p.RunUnknown != "" && v.run.Active() {
		out.Message += "; " + p.RunUnknown
	}
	return out
}

// missingTasks returns what is missing of the tasks of the stage whose turn it is.
func (v *view) missingTasks(s *placement.RunStage) (missing []string) {
	if s.NeedsApproval(true) && s.ApprovedBefore.IsZero() {
		return []string{"the approval " + api.ApprovalName(v.run.Name, s.Name, true)}
	}
	if s.Updated.IsZero() {
		return nil
	}
	if ends := s.Updated.Add(s.Wait()); ends.After(v.now) {
		missing = append(missing, "the end of "+s.Wait().String()+" at "+ends.UTC().Format(time.RFC3339))
	}
	if s.NeedsApproval(false) && s.ApprovedAfter.IsZero() {
		missing = append(missing, "the approval "+api.ApprovalName(v.run.Name, s.Name, false))
	}
	return append(missing, v.run.PendingGates()...)
}

// byReview reports whether a review of the pull request approves a stage of a run.
func byReview(p *plan.Placement, run, stage string) bool {
	return slices.ContainsFunc(p.Runs, func(d *hub.StagedRun) bool { return d.Name == run && slices.Contains(d.ByReview, stage) })
}

// provenByRun returns the fingerprint of the content of the run that finished last; empty if none has.
func provenByRun(runs []placement.Run) string {
	var last *placement.Run
	for i := range runs {
		if r := &runs[i]; !r.Finished.IsZero() && (last == nil || r.Finished.After(last.Finished)) {
			last = r
		}
	}
	if last == nil {
		return ""
	}
	return last.Content.Hash
}

// A FailedContent is the content in force of a placement, if it has failed in an update run and was rolled back.
type FailedContent struct {
	Run    string    `json:"run"`
	Commit string    `json:"commit"` // the newest that has brought it
	Reason string    `json:"reason"` // names the clusters on which it has failed
	At     time.Time `json:"at,omitzero"`
	// Back is the last run that has finished, whose content is that of the commit BackCommit.
	Back       string `json:"back"`
	BackCommit string `json:"backCommit"`
}

// FailedContentOf returns the content in force that has failed; nil if it has not.
func FailedContentOf(p *plan.Placement) *FailedContent {
	f := p.FailedContent
	if f == nil {
		return nil
	}
	return &FailedContent{Run: f.Run.Name, Commit: f.Commit, Reason: f.Run.RolledBack, At: f.Run.SupersededAt, Back: f.Back.Name, BackCommit: f.Back.Content.Commit}
}
