package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

func (r *orderRun) approve(o Order) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", refuse("a stage of a placement is approved: name crp/NAME or rp/NAMESPACE/NAME, without --cluster")
	case o.Stage == "":
		return "", refuse("--stage is required")
	case o.Before && o.After:
		return "", refuse("--before and --after exclude each other")
	case reason != "" && !plainText(reason):
		return "", refuse("the reason must be one line of text of at most %d bytes", longestText)
	}
	record := r.ledger.Placement(key)
	i := -1
	if record != nil && !record.Deleted {
		i = slices.IndexFunc(record.Runs, func(run placement.Run) bool { return run.Active() })
	}
	switch {
	case i < 0:
		return "", refuse("%s has no update run that is under way", key)
	case o.Run != "" && o.Run != record.Runs[i].Name:
		return "", refuse("update run %s of %s is not under way any more: update run %s is", o.Run, key, record.Runs[i].Name)
	case record.Runs[i].Rejected != nil:
		return "", refuse("update run %s of %s was rejected by %s; commit other content or another run, or let it go on with gitfleet resume %[2]s --failed-content", record.Runs[i].Name, key, record.Runs[i].Rejected.Text())
	case record.Runs[i].Halted != "":
		return "", refuse("update run %s of %s cannot go on: %s", record.Runs[i].Name, key, record.Runs[i].Halted)
	}
	next := *record
	next.Runs = slices.Clone(record.Runs)
	run := next.Runs[i].Clone()
	before, err := approvable(&run, o)
	if err != nil {
		return "", err
	}
	if r.approvalsInGit && !o.Reject {
		return "", refuse("stages are approved by commits only, as rollout.approvals of the configuration says: %s", updaterun.CommitApproval(key, run.Name, o.Stage, before))
	}
	name := api.ApprovalName(run.Name, o.Stage, before)
	decision := placement.Approval{Request: name, By: o.By, Reason: reason, At: r.now, Code: o.Code}
	event, verb := history.Approved, "approved"
	if o.Reject {
		run.Rejected = &decision
		event, verb = history.Rejected, "rejected"
	} else {
		run.Approvals = append(slices.Clone(run.Approvals), decision)
	}
	next.Runs[i] = run
	r.ledger.SetPlacement(key, next)
	what := fmt.Sprintf("%s of stage %s of update run %s", map[bool]string{true: "the beginning", false: "the end"}[before], o.Stage, run.Name)
	r.record(event, subject, o.By, strings.TrimSuffix(what+": "+reason, ": "))
	return what + " of " + key.String() + " is " + verb, nil
}

// approvable returns whether the beginning of a stage is approved, or its end; or why neither can be.
func approvable(run *placement.Run, o Order) (before bool, err error) {
	i := slices.IndexFunc(run.Stages, func(s placement.RunStage) bool { return s.Name == o.Stage })
	if i < 0 {
		var names []string
		for _, s := range run.Stages {
			names = append(names, s.Name)
		}
		return false, refuse("update run %s has no stage %q; it has %s", run.Name, o.Stage, strings.Join(names, ", "))
	}
	asks, before := run.AwaitedApproval()
	switch st := &run.Stages[i]; {
	case asks == st && before && o.After:
		return false, refuse("the clusters of stage %s are not updated yet; its beginning waits for an approval: --before", st.Name)
	case asks == st && !before && o.Before:
		return false, refuse("stage %s has begun; its end waits for an approval: --after", st.Name)
	case asks == st && approvedBy(run, st.Name, before) != "":
		return false, refuse("stage %s of update run %s is approved already, by %s", st.Name, run.Name, approvedBy(run, st.Name, before))
	case asks == st:
		return before, nil
	case !st.Finished.IsZero():
		return false, refuse("stage %s of update run %s is finished", st.Name, run.Name)
	case i > 0 && run.Stages[i-1].Finished.IsZero():
		return false, refuse("stage %s of update run %s has not begun: the stages before it are not finished", st.Name, run.Name)
	case !o.Before && !st.ApprovedAfter.IsZero():
		by := cmp.Or(approvedBy(run, st.Name, false), "a commit")
		return false, refuse("the end of stage %s of update run %s is approved already, by %s; gitfleet describe %s says what else it waits for", st.Name, run.Name, by, o.Subject)
	case !o.After && approvedBy(run, st.Name, true) != "":
		return false, refuse("the beginning of stage %s of update run %s is approved already, by %s, and its end is not asked for yet", st.Name, run.Name, approvedBy(run, st.Name, true))
	}
	return false, refuse("stage %s of update run %s waits for no approval now: gitfleet describe %s says what for", o.Stage, run.Name, o.Subject)
}

// approvedBy is who has approved a stage with a command or otherwise than in Git; empty if nobody has.
func approvedBy(run *placement.Run, stage string, before bool) string {
	for _, a := range run.Approvals {
		if a.Request == api.ApprovalName(run.Name, stage, before) {
			return a.By
		}
	}
	return ""
}

// resumeContent lets content run again that was rolled back, whose run was rejected, or of which a gate has failed.
func (r *orderRun) resumeContent(o Order) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", refuse("--failed-content is about the content of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster")
	case reason == "":
		return "", refuse("--reason is required: why may the content run again although it failed?")
	case !plainText(reason):
		return "", refuse("the reason must be one line of text of at most %d bytes", longestText)
	}
	record := r.ledger.Placement(key)
	if record == nil || record.Deleted {
		return "", refuse("%s has no update run", key)
	}
	next := *record
	next.Runs = slices.Clone(record.Runs)
	name := ""
	for i := range slices.Backward(next.Runs) {
		run := &next.Runs[i]
		if rejected := run.Active() && run.Rejected != nil; rejected {
			name, run.Rejected = run.Name, nil
			break
		}
		if run.Active() && run.Turn() < len(run.Stages) && slices.ContainsFunc(run.Stages[run.Turn()].Gates, placement.RunGate.HasFailed) {
			name, *run = run.Name, run.Clone()
			run.ResetFailedGates()
			break
		}
		if run.Automatic && run.RolledBack != "" {
			name = run.Name
			next.Runs = slices.Delete(next.Runs, i, i+1)
			break
		}
	}
	if name == "" {
		return "", refuse("no update run of %s was rejected or rolled back by itself, or has a gate that failed; commit a run to bring its content again", key)
	}
	r.ledger.SetPlacement(key, next)
	r.record(history.Proceeded, subject, o.By, "the content of update run "+name+" runs again: "+reason)
	return "the content of update run " + name + " of " + key.String() + " runs again", nil
}
