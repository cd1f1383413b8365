package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Run is what is recorded of a staged update run: what it was when it was initialised, and what has happened since.
type Run struct {
	// Name is the name of the manifest, or of the placement with the commit if the run is automatic.
	Name string
	// Automatic says that it was made for a content, as api.StagedUpdateStrategyAnnotation asks for.
	Automatic bool `json:",omitempty"`
	// Content is the commit in which the run appeared, with the fingerprint of the placement's content there, and Index
	// the number of that content.
	Content Revision
	Index   int
	// Strategy is the name of its strategy, and Initialized when it was initialised, or could not be; they are empty in records
	// of older versions.
	Strategy    string    `json:",omitempty"`
	Initialized time.Time `json:",omitzero"`
	// Unmatched and OnFailure are the values of api.UnmatchedClustersAnnotation and api.OnFailureAnnotation of its strategy when it was
	// initialised. Unmatched is empty only in records of older versions.
	Unmatched string `json:",omitempty"`
	OnFailure string `json:",omitempty"`
	// UnreachablePerStage and UnreachablePerRun are api.MaxUnreachablePerStageAnnotation and api.MaxUnreachablePerRunAnnotation at that time.
	UnreachablePerStage string `json:",omitempty"`
	UnreachablePerRun   string `json:",omitempty"`
	// FailedPerStage and FailedPerRun are api.MaxFailedPerStageAnnotation and api.MaxFailedPerRunAnnotation at that time.
	FailedPerStage string `json:",omitempty"`
	FailedPerRun   string `json:",omitempty"`
	// Stages are the stages with their clusters, in order, and Deletion is the stage after them, in which what is no longer
	// selected is removed.
	Stages   []RunStage
	Deletion RunStage `json:",omitzero"`
	// Failed is the reason why the run could not be initialised; empty if it was.
	Failed string `json:",omitempty"`
	// Started is when the run was first asked to update clusters, and Finished when it had ended; zero until then.
	Started  time.Time `json:",omitzero"`
	Finished time.Time `json:",omitzero"`
	// Halted is why it updates no further cluster although it has not ended, and HaltedSince since when; empty if it does.
	Halted      string    `json:",omitempty"`
	HaltedSince time.Time `json:",omitzero"`
	// SupersededBy is the run that has taken its place; empty if none has.
	SupersededBy string `json:",omitempty"`
	// SupersededAt is when that was; zero if it was not, and in records of older versions.
	SupersededAt time.Time `json:",omitzero"`
	// RolledBack is the failure because of which the clusters went back to the content of the run SupersededBy; empty if they
	// did not.
	RolledBack string `json:",omitempty"`
	// Approvals are those that users have given with a command, and those in Git of which it is verified who gave them.
	Approvals []Approval `json:",omitempty"`
	// Rejected is the rejection that has stopped the run; nil if there is none. It is immutable.
	Rejected *Approval `json:",omitempty"`
}

// An Approval is the approval or the rejection of a request, with who gave it, and why if that is known.
type Approval struct {
	Request    string
	By, Reason string
	At         time.Time
	// Commit is the commit of an approval in Git, which By has signed; empty for a command.
	Commit string `json:",omitempty"`
	// Code is the reason of the condition that a Kubernetes client wrote; empty if another way was used.
	Code string `json:",omitempty"`
}

// Text is who decided, and why.
func (a *Approval) Text() string {
	switch {
	case a.Commit != "":
		return a.By + ", who signed commit " + a.Commit
	case a.Reason == "":
		return a.By
	}
	return a.By + ": " + a.Reason
}

// A RunStage is a stage of a run.
type RunStage struct {
	api.StageConfig
	// Clusters are in the order in which they are updated.
	Clusters []string
	// ApprovedBefore and ApprovedAfter are when the approvals were accepted; zero until then.
	ApprovedBefore time.Time `json:",omitzero"`
	ApprovedAfter  time.Time `json:",omitzero"`
	// Started is when the first cluster could be updated; zero until then, and in records of older versions.
	Started time.Time `json:",omitzero"`
	// Updated is when all clusters were available with the content of the run, and Finished when the tasks after
	// that were done; zero until then. Requested is when they were available for the first time: since then the approval is asked for.
	Updated   time.Time `json:",omitzero"`
	Requested time.Time `json:",omitzero"`
	Finished  time.Time `json:",omitzero"`
	// Reopened is when a cluster joined after the stage had been skipped since it had none; zero if none has.
	Reopened time.Time `json:",omitzero"`
	// Failed are the clusters without which the run goes on, since the update has failed there, until they have been available with the content.
	Failed []string `json:",omitempty"`
	// Unreachable are the clusters that the stage does not wait for: until it is finished, as long as they are unreachable, and after
	// that until they have been available with the content of the run.
	Unreachable []string `json:",omitempty"`
	// Gates are those after the stage, as they were when the run was initialised, in the order of its tasks.
	Gates []RunGate `json:",omitempty"`
}

// NewRunStage returns a stage of a new run, with the gates that it names.
func NewRunStage(config api.StageConfig, gates map[string]*api.RolloutGateSpec) RunStage {
	s := RunStage{StageConfig: config}
	for _, name := range config.GateNames() {
		s.Gates = append(s.Gates, RunGate{Name: name, Spec: *gates[name]})
	}
	return s
}

// Clone returns a copy that shares nothing that may change.
func (r Run) Clone() Run {
	r.Stages = slices.Clone(r.Stages)
	for i := range r.Stages {
		r.Stages[i].Clusters = slices.Clone(r.Stages[i].Clusters)
		r.Stages[i].Gates = slices.Clone(r.Stages[i].Gates)
		r.Stages[i].Failed = slices.Clone(r.Stages[i].Failed)
		r.Stages[i].Unreachable = slices.Clone(r.Stages[i].Unreachable)
	}
	r.Deletion.Clusters = slices.Clone(r.Deletion.Clusters)
	return r
}

// Times are the recorded times of the run, without those of approvals, on which nothing depends.
func (r *Run) Times() []*time.Time {
	all := []*time.Time{&r.Initialized, &r.Started, &r.Finished, &r.HaltedSince, &r.SupersededAt}
	stage := func(s *RunStage) {
		all = append(all, &s.ApprovedBefore, &s.ApprovedAfter, &s.Started, &s.Updated, &s.Requested, &s.Finished, &s.Reopened)
		for i := range s.Gates {
			g := &s.Gates[i]
			all = append(all, &g.Passed, &g.Failed, &g.Since, &g.Asked.At)
		}
	}
	for i := range r.Stages {
		stage(&r.Stages[i])
	}
	stage(&r.Deletion)
	return all
}

// AwaitedApproval returns the stage that waits for an approval now, and whether that is the one before its clusters are updated; nil if
// none does.
func (r *Run) AwaitedApproval() (stage *RunStage, before bool) {
	if !r.Active() {
		return nil, false
	}
	i := r.Turn()
	if i == len(r.Stages) {
		return nil, false
	}
	switch s := &r.Stages[i]; {
	case s.NeedsApproval(true) && s.ApprovedBefore.IsZero():
		return s, true
	case !s.Updated.IsZero() && s.NeedsApproval(false) && s.ApprovedAfter.IsZero():
		return s, false
	}
	return nil, false
}

// PendingGates are the gates that are asked now and have not passed, with their answers.
func (r *Run) PendingGates() (texts []string) {
	i := r.Turn()
	if !r.Active() || i == len(r.Stages) || r.Stages[i].Updated.IsZero() {
		return nil
	}
	for _, g := range r.Stages[i].Gates {
		if g.Passed.IsZero() {
			texts = append(texts, g.Text())
		}
	}
	return texts
}

// Questions are the gates of a run that have to be asked now.
func (r *Run) Questions(key api.PlacementKey) (out []GateQuestion) {
	i := r.Turn()
	if !r.Active() || r.Halted != "" || i == len(r.Stages) || r.Stages[i].Updated.IsZero() {
		return nil
	}
	s := &r.Stages[i]
	for j := range s.Gates {
		if g := &s.Gates[j]; g.Spec.Schedule() != nil && g.Passed.IsZero() && g.Failed.IsZero() {
			q := GateQuestion{GateRound: GateRound{key, r.Name, s.Name, g.Name, r.Content.Hash, s.Updated.UnixNano()}, Spec: &g.Spec}
			if g.Asked.Verdict != GateUnknown {
				q.Last = g.Asked.At
			}
			out = append(out, q)
		}
	}
	return out
}

// RecordAnswer records an answer and reports whether anything changed. It ignores answers to earlier questions. r must not share mutable state.
func (r *Run) RecordAnswer(key api.PlacementKey, a GateAnswer) bool {
	for _, q := range r.Questions(key) {
		if q.GateRound != a.GateRound {
			continue
		}
		gates := r.Stages[r.Turn()].Gates
		for i := range gates {
			if gates[i].Name == a.Gate {
				return gates[i].Asked.add(a, q.Spec.Schedule().Every())
			}
		}
	}
	return false
}

// ResetFailedGates makes the failed gates of the stage whose turn it is start from the beginning.
func (r *Run) ResetFailedGates() {
	gates := r.Stages[r.Turn()].Gates
	for i := range gates {
		if gates[i].HasFailed() {
			gates[i].Reset()
		}
	}
}

// Active reports whether the run has started and neither ended nor been superseded.
func (r *Run) Active() bool {
	return !r.Started.IsZero() && r.Finished.IsZero() && r.SupersededBy == "" && r.Failed == ""
}

// Turn returns the index of the stage whose turn it is; the number of stages if all are finished.
func (r *Run) Turn() int {
	i := slices.IndexFunc(r.Stages, func(s RunStage) bool { return s.Finished.IsZero() })
	if i < 0 {
		return len(r.Stages)
	}
	return i
}

// Entered is when the turn of a stage began; zero if it has not. The removal has the index after the last stage.
func (r *Run) Entered(i int) time.Time {
	at := r.Started
	if i > 0 {
		at = r.Stages[i-1].Finished
	}
	if i < len(r.Stages) && !at.IsZero() && r.Stages[i].Reopened.After(at) {
		return r.Stages[i].Reopened
	}
	return at
}

// Has reports whether a cluster is in a stage of the run.
func (r *Run) Has(cluster string) bool {
	return slices.ContainsFunc(r.Stages, func(s RunStage) bool { return slices.Contains(s.Clusters, cluster) })
}

// IgnoresUnmatched reports whether clusters in no stage keep what they have, so that nothing waits for them.
func (r *Run) IgnoresUnmatched() bool { return r.Unmatched == api.UnmatchedIgnore }

// Continues reports whether failed updates keep neither other clusters from being updated nor later stages.
func (r *Run) Continues() bool { return r.OnFailure == api.OnFailureContinue }

// MaxUnreachable returns how many unreachable clusters of a stage the run does not wait for. inStage and inRun are the numbers of clusters
// of the stage and of the run; already is how many the earlier stages did not wait for.
func (r *Run) MaxUnreachable(inStage, inRun, already int) int {
	return maxClusters(r.UnreachablePerStage, r.UnreachablePerRun, inStage, inRun, already)
}

// MaxFailed returns on how many clusters of a stage the update may fail while the run goes on. inStage and inRun are the numbers of
// clusters of the stage and of the run; already is on how many clusters of earlier stages it has failed.
func (r *Run) MaxFailed(inStage, inRun, already int) int {
	if r.Continues() {
		return inStage
	}
	return maxClusters(r.FailedPerStage, r.FailedPerRun, inStage, inRun, already)
}

// maxClusters is the lower of the limits for a stage and for a run, of which some clusters are counted already; 0 without any limit.
func maxClusters(perStage, perRun string, inStage, inRun, already int) int {
	if perStage == "" && perRun == "" {
		return 0
	}
	limit := inStage
	for _, l := range []struct {
		text        string
		of, already int
	}{{perStage, inStage, 0}, {perRun, inRun, already}} {
		if l.text == "" {
			continue
		}
		v := intstr.Parse(l.text)
		n, _ := intstr.GetScaledValueFromIntOrPercent(&v, l.of, false) // others were refused when they were loaded
		limit = min(limit, n-l.already)
	}
	return max(limit, 0)
}

// FailedClusters are the clusters without which the run goes on, since the update has failed there, in the order of the stages.
func (r *Run) FailedClusters() (out []string) {
	for _, s := range r.Stages {
		out = append(out, s.Failed...)
	}
	return out
}

// Join adds a cluster to a stage. If that was skipped since it had no clusters, and the run is under way, it is the stage's turn
// again.
func (r *Run) Join(s *RunStage, cluster string, now time.Time) {
	if s.Skipped() && r.Active() {
		s.Updated, s.Finished, s.Reopened = time.Time{}, time.Time{}, now
	}
	s.Clusters = append(s.Clusters, cluster)
}

// Skipped reports whether the stage was skipped, together with its tasks, since it had no clusters.
func (s *RunStage) Skipped() bool { return !s.Finished.IsZero() && len(s.Clusters) == 0 }

// FinishedSince reports whether the stage, which has this index, has finished with its tasks since an earlier state of the same run.
// It is false for a skipped stage.
func (s *RunStage) FinishedSince(before *Run, index int) bool {
	return !s.Finished.IsZero() && !s.Skipped() && (index >= len(before.Stages) || before.Stages[index].Finished.IsZero())
}

// Due is when a gate of the stage could pass at the earliest, if all answers since its clusters were updated are good. For a Job it is
// when its timeout ends, after the timeouts of those that have failed on the same cluster. It is zero for a gate of a kind that this version does
// not know.
func (s *RunStage) Due(g *RunGate) time.Time {
	switch {
	case g.Spec.Soak != nil:
		return s.Updated.Add(g.Spec.Soak.For())
	case g.Spec.Job != nil:
		failed := 0
		for _, j := range g.Asked.Jobs {
			failed = max(failed, j.Failed)
		}
		return s.Updated.Add(time.Duration(failed+1) * g.Spec.Job.Deadline())
	}
	schedule := g.Spec.Schedule()
	if schedule == nil {
		return time.Time{}
	}
	return s.Updated.Add(schedule.For())
}

// FailedSince returns the gates of the stage with an index that have failed since an earlier state of the run.
func (s *RunStage) FailedSince(before *Run, index int) (failed []RunGate) {
	for i, g := range s.Gates {
		known := index < len(before.Stages) && i < len(before.Stages[index].Gates) && before.Stages[index].Gates[i].Failed.Equal(g.Failed)
		if g.HasFailed() && !known {
			failed = append(failed, g)
		}
	}
	return failed
}

// Concurrency is how many clusters of the stage are updated at once, if it has a number of them.
func (s *RunStage) Concurrency(clusters int) int {
	if s.MaxConcurrency == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxConcurrency, clusters, false)
	if err != nil {
		return 1 // refused when it was loaded
	}
	return max(n, 1)
}

// StuckMessage is KubeFleet's message about a run that waits for clusters of a stage on which the update has failed.
func StuckMessage(stage string, failed []string) string {
	const few = 3
	names := strings.Join(failed[:min(len(failed), few)], ", ")
	if len(failed) > few {
		names += "..."
	}
	return fmt.Sprintf("The updateRun is stuck waiting for %s cluster(s) in stage %s to finish updating, please check placement status for potential errors", names, stage)
}
