package reconciler

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An occurrence is something that has happened to a placement, or to a placement on a cluster. Occurrences are derived from the
// ledger before and after a plan or an observation, so that a restart repeats nothing that was saved, and from what users order; an
// observation may be made again that was not saved yet. The metrics of rollouts, the traces of commits, log lines and most of the
// history are written from them; see publish. Agents, proposals and commands add entries of their own.
type occurrence struct {
	// Entry is what the history has of it. Without an event, the history does not have it.
	history.Entry
	// clusters are where it has happened, if the history has it of several clusters; Cluster is empty then.
	clusters []string
	// rollout is what has happened to the rollout of the placement; empty if nothing has. rolloutTook is how long a rollout that is
	// finished took.
	rollout     rolloutStep
	rolloutTook time.Duration
	// inForce is the commit that has come into force; nil otherwise. After a restart, a commit comes into force again, which the
	// history does not have.
	inForce *hub.Snapshot
	// refused is why a commit is refused, in full; nil otherwise. staysInForce is the commit that is in force instead; empty if none is.
	refused      error
	staysInForce string
	// loadTook is how long loading a commit took that has come into force or is refused.
	loadTook time.Duration
	// renamedTo is the new name of a member that was renamed; empty otherwise.
	renamedTo string
	// stage is the stage of the content assigned to the cluster that has ended at Time, without success if the event is Failed; empty
	// if none has. since is the end of the stage before, and detected when the content was detected, or the cluster was
	// selected if that was later; zero if it is not known.
	stage           string
	since, detected time.Time
}

// A rolloutStep is something that has happened to a rollout.
type rolloutStep string

// The steps.
const (
	rolloutStarted  rolloutStep = "started"
	rolloutFinished rolloutStep = "finished"
	rolloutStopped  rolloutStep = "stopped"
)

// The stages of a commit on a cluster.
const (
	stageApplied   = "applied"
	stageAvailable = "available"
)

// entriesOf returns what the history has of occurrences.
func entriesOf(all []occurrence) []history.Entry {
	entries := make([]history.Entry, 0, len(all))
	for i := range all {
		switch o := &all[i]; {
		case o.Event == "":
		case len(o.clusters) == 0:
			entries = append(entries, o.Entry)
		default:
			entries = slices.Grow(entries, len(o.clusters))
			for _, cluster := range o.clusters {
				entries = append(entries, o.Entry)
				entries[len(entries)-1].Cluster = cluster
			}
		}
	}
	return entries
}

func commitEntry(event history.Event, c hub.Commit, message string) history.Entry {
	return history.Entry{Kind: history.Commit, Event: event, Commit: c.Hash, Author: c.Author, Signer: c.Signer, Subject: c.Subject, Message: message}
}

// planOccurrences returns what happens by a plan that is not yet in the ledger, in one list for each placement. The first plan of a
// large fleet assigns a hundred thousand revisions, and their entries for the history are made for one placement at a time.
func planOccurrences(p *plan.Plan, l *ledger.Ledger, inForce hub.Commit) (all [][]occurrence) {
	for _, r := range p.Renames {
		e := commitEntry(history.Renamed, inForce, "")
		e.Kind, e.From, e.To = history.Placement, r.From.String(), r.To.String()
		was, is := e, e
		was.Placement, was.Message = e.From, "it is "+e.To+" from now on"
		is.Placement, is.Message = e.To, "it was "+e.From+" until now"
		all = append(all, []occurrence{{Entry: was}, {Entry: is}})
	}
	if len(p.Renames) > 0 {
		l = l.Renamed(p.Renames) // the rollout of a renamed placement continues
	}
	for pl := range p.Placements.Values() {
		if of := placementOccurrences(pl, l.Placement(pl.Key), inForce); len(of) > 0 {
			all = append(all, of)
		}
	}
	return all
}

// placementOccurrences returns what happens to a placement by a plan. The record is nil if the placement is new.
func placementOccurrences(pl *plan.Placement, record *ledger.Placement, inForce hub.Commit) []occurrence {
	all := rolloutOccurrences(pl, record)
	if pl.Record.Into != (api.PlacementKey{}) {
		return all // a renamed placement, whose members only hand over its objects
	}
	if !pl.RecordChanged && !pl.Forget && len(pl.Changed)+len(pl.Unbind) == 0 {
		return all
	}
	name := pl.Key.String()
	add := func(e history.Entry) {
		e.Placement = name
		all = append(all, occurrence{Entry: e})
	}
	if e := placementEntry(pl, record, inForce); e.Event != "" {
		add(e)
	}
	for _, e := range approvalEntries(pl, record) {
		add(e)
	}
	for cluster, e := range assignmentEntries(pl, record) {
		e.Placement = name
		if n := len(all); n == 0 || all[n-1].Entry != e {
			all = append(all, occurrence{Entry: e})
		}
		last := &all[len(all)-1]
		last.clusters = append(last.clusters, cluster)
	}
	for _, e := range runEntries(pl, record) {
		add(e)
	}
	return all
}

// rolloutOccurrences returns what happens to the rollout of a placement by a plan. The record is nil if the placement is new.
func rolloutOccurrences(pl *plan.Placement, record *ledger.Placement) (all []occurrence) {
	if !pl.RecordChanged {
		return nil
	}
	was, is := ledger.Placement{}, pl.Record
	if record != nil {
		was = *record
	}
	started := !is.RolloutStarted.Equal(was.RolloutStarted)
	finished := !is.RolloutFinished.IsZero() && (started || was.RolloutFinished.IsZero())
	nothing := finished && pl.Assigned == 0 // the policy asks for no cluster
	of := history.Entry{Placement: pl.Key.String()}
	if started && !nothing {
		all = append(all, occurrence{Entry: of, rollout: rolloutStarted})
	}
	if finished && !nothing {
		all = append(all, occurrence{Entry: of, rollout: rolloutFinished, rolloutTook: max(0, is.RolloutFinished.Sub(is.RolloutStarted))})
	}
	if len(is.Stops) > 0 && len(was.Stops) == 0 {
		of.Cluster, of.Message = clustersOf(is.Stops), failedOf(is.Stops)
		all = append(all, occurrence{Entry: of, rollout: rolloutStopped})
	}
	return all
}

// clustersOf returns the clusters of the updates that have failed.
func clustersOf(stops []placement.Stop) string {
	names := make([]string, len(stops))
	for i, s := range stops {
		names[i] = s.Cluster
	}
	return strings.Join(names, ", ")
}

// failedOf returns the commits of the updates that have failed, each once.
func failedOf(stops []placement.Stop) string {
	var commits []string
	for _, s := range stops {
		if !slices.Contains(commits, s.Failed.Commit) {
			commits = append(commits, s.Failed.Commit)
		}
	}
	return "the update to " + strings.Join(commits, ", ") + " has failed"
}

// placementEntry returns the change of a placement as a whole; its event is empty if there is none. The record is nil
// if the placement is new.
func placementEntry(pl *plan.Placement, record *ledger.Placement, inForce hub.Commit) history.Entry {
	was, is := ledger.Placement{Index: -1}, pl.Record
	if record != nil {
		was = *record
	}
	e := commitEntry("", inForce, "")
	e.Kind = history.Placement
	switch {
	case pl.Forget:
		e.Event = history.Removed
	case is.Deleted && !was.Deleted:
		e.Event = history.Removing
	case !pl.RecordChanged:
	case is.Index >= 0 && is.Index != was.Index:
		e.Event, e.Revision = history.Revised, contentIndex(is)
	case is.SpecHash != was.SpecHash:
		e.Event, e.Revision = history.SpecChanged, contentIndex(is)
	}
	return e
}

// approvalEntries returns the approvals of stages by files of which it is verified who gave them. Those by commands are recorded
// when they are given.
func approvalEntries(pl *plan.Placement, record *ledger.Placement) (all []history.Entry) {
	var was []placement.Run
	if record != nil {
		was = record.Runs
	}
	for _, is := range pl.Record.Runs {
		var known []placement.Approval
		if i := slices.IndexFunc(was, func(r placement.Run) bool { return r.Name == is.Name }); i >= 0 {
			known = was[i].Approvals
		}
		for _, a := range is.Approvals {
			if a.Commit != "" && !slices.Contains(known, a) {
				all = append(all, history.Entry{Kind: history.Placement, Event: history.Approved, Commit: a.Commit, Signer: a.By, Message: "approval request " + a.Request})
			}
		}
	}
	return all
}

// assignmentEntries yields the clusters whose assignments change, with entries that do not name them.
func assignmentEntries(pl *plan.Placement, record *ledger.Placement) iter.Seq2[string, history.Entry] {
	return func(yield func(string, history.Entry) bool) {
		for _, i := range pl.Changed {
			b, was := pl.Clusters[i].Binding, &placement.Binding{}
			if record != nil {
				if before := record.Entry(b.Cluster); before != nil {
					was = &before.Binding
				}
			}
			e := history.Entry{Kind: history.Cluster, Commit: b.Assigned.Commit}
			switch {
			case b.Removing && !was.Removing:
				e.Event = history.Removing
			case b.HasRevision() && !b.Removing && was.Assigned.Hash != b.Assigned.Hash:
				e.Event, e.Revision = history.Assigned, contentIndex(pl.Record)
			default:
				continue
			}
			if !yield(b.Cluster, e) {
				return
			}
		}
		for _, cluster := range pl.Unbind {
			if !yield(cluster, history.Entry{Kind: history.Cluster, Event: history.Removed}) {
				return
			}
		}
	}
}

// runEntries returns what happens to the staged update runs of a placement by a plan.
func runEntries(pl *plan.Placement, record *ledger.Placement) (all []history.Entry) {
	if !pl.RecordChanged {
		return nil
	}
	for i := range pl.Record.Runs {
		is, was := &pl.Record.Runs[i], &placement.Run{}
		if record != nil {
			if at := slices.IndexFunc(record.Runs, func(r placement.Run) bool { return r.Name == is.Name && r.Initialized.Equal(is.Initialized) }); at >= 0 {
				was = &record.Runs[at]
			}
		}
		add := func(event history.Event, message string) {
			all = append(all, history.Entry{Kind: history.Placement, Event: event, Commit: is.Content.Commit, Message: "run " + is.Name + message})
		}
		if is.Failed != "" && was.Failed == "" {
			add(history.RunRefused, ": "+is.Failed)
		}
		if !is.Started.IsZero() && was.Started.IsZero() {
			add(history.RunStarted, "")
		}
		for j := range is.Stages {
			for _, g := range is.Stages[j].FailedSince(was, j) {
				add(history.GateFailed, ", stage "+is.Stages[j].Name+": "+g.Text())
			}
			if s := &is.Stages[j]; s.FinishedSince(was, j) {
				add(history.StageFinished, ", stage "+s.Name)
			}
		}
		switch {
		case !is.Finished.IsZero() && was.Finished.IsZero():
			add(history.RunFinished, "")
		case is.RolledBack != "" && was.RolledBack == "":
			add(history.RunRolledBack, ": "+is.RolledBack+"; the clusters go back to the content of run "+is.SupersededBy)
		case is.SupersededBy != "" && was.SupersededBy == "":
			add(history.RunSuperseded, ": run "+is.SupersededBy+" has taken its place")
		}
	}
	return all
}

// contentIndex returns the number of the newest content of a placement, which the history calls its revision; empty if
// there is none.
func contentIndex(p ledger.Placement) string {
	if p.Index < 0 {
		return ""
	}
	return strconv.Itoa(p.Index)
}

// progress adds the progress of a placement on a cluster to all, from its entries before and after an observation. The history has the
// time that the clock showed at the observation: entries measure theirs from the assignment, so that a clock that was set forward does
// not change them.
func progress(all []occurrence, key api.PlacementKey, record *ledger.Placement, was, is *ledger.Entry, observed time.Time) []occurrence {
	if was == nil || is == nil || was == is || is.Binding.Removing {
		return all
	}
	o := occurrence{Entry: history.Entry{Time: observed, Kind: history.Cluster, Placement: key.String(), Cluster: is.Binding.Cluster, Commit: is.Binding.Assigned.Commit}}
	if o.detected = record.RevisedAt(int(is.Binding.Index)); !o.detected.IsZero() && is.Binding.BoundAt.After(o.detected) {
		o.detected = is.Binding.BoundAt
	}
	addStage := func(stage string, since, at time.Time) {
		reached := o
		reached.stage, reached.since, reached.Time = stage, since, at
		all = append(all, reached)
	}
	if was.AppliedAt().IsZero() && !is.AppliedAt().IsZero() {
		addStage(stageApplied, is.Binding.AssignedAt, is.AppliedAt())
	}
	if was.AvailableAt().IsZero() && !is.AvailableAt().IsZero() {
		addStage(stageAvailable, cmp.Or(is.AppliedAt(), is.Binding.AssignedAt), is.AvailableAt())
	}
	o.Revision = contentIndex(*record)
	before, after := stagesOf(was), stagesOf(is)
	add := func(event history.Event, message string) {
		o.Event, o.Message = event, message
		all = append(all, o)
	}
	if after.applied && !before.applied {
		add(history.Applied, "")
	}
	switch {
	case after.failure != "" && after.failed != before.failed:
		o.stage, o.since = stageApplied, is.Binding.AssignedAt
		if !is.AppliedAt().IsZero() {
			o.stage, o.since = stageAvailable, is.AppliedAt()
		}
		add(history.Failed, after.failure)
	case after.available && !before.available:
		add(history.Available, "")
	case before.available && !after.available:
		add(history.Unavailable, after.missing)
	}
	return all
}

// reachedStages are the stages that a placement has reached on a cluster, by the last report about its assigned revision. Unlike
// for Entry.AppliedAt and AvailableAt, suspended objects count: the history calls content applied once all of it is.
type reachedStages struct {
	applied, available bool
	failed             api.ID // the first object that was refused or will not become available by itself
	failure            string
	missing            string // the first object that is not available, and why
}

func stagesOf(e *ledger.Entry) reachedStages {
	var p reachedStages
	seen := e.Seen
	if seen == nil || seen.Revision.Hash != e.Binding.Assigned.Hash || e.SeenAt().Before(e.Binding.AssignedAt) {
		return p
	}
	p.applied, p.available = seen.Applied(), seen.Available()
	for i := range seen.Exceptions {
		o := &seen.Exceptions[i]
		switch {
		case o.HasFailed() && p.failure == "" && seen.Done:
			p.failed, p.failure = o.ID, o.ID.String()+": "+cmp.Or(o.Failure, o.Applied.Message())
		case o.Applied.OK && !o.Available.OK && p.missing == "":
			p.missing = o.ID.String() + ": " + o.Available.Message()
		}
	}
	return p
}

// memberEvents are the events of the history for what happens to a member cluster. It has none of credentials.
var memberEvents = map[ledger.MemberChange]history.Event{
	ledger.MemberUnanswered: history.Unreachable, ledger.MemberJoined: history.Joined, ledger.MemberReady: history.Ready,
	ledger.MemberUnhealthy: history.Unreachable, ledger.MemberForbidden: history.Forbidden, ledger.MemberPermitted: history.Ready,
	ledger.MemberRestored: history.Restored, ledger.MemberRefused: history.Foreign, ledger.MemberAccepted: history.Ready,
}

// memberOccurrences returns the changes of a member cluster by a probe. That it has not answered yet is recorded once, whatever
// the reasons are.
func memberOccurrences(name string, was, is ledger.MemberState) (out []occurrence) {
	for _, change := range is.Since(was) {
		e := history.Entry{Time: is.Seen.At, Kind: history.Member, Event: memberEvents[change], Cluster: name}
		switch change {
		case ledger.MemberUnanswered:
			if was.Seen != nil {
				continue
			}
			e.Message = is.Seen.Error
		case ledger.MemberUnhealthy:
			e.Message = is.Seen.Error
		case ledger.MemberForbidden:
			e.Message = is.Seen.Denied()
		case ledger.MemberRestored:
			e.Time, e.Message = is.Seen.Restored.At, is.Seen.Restored.Why
		case ledger.MemberRefused:
			e.Message = is.Refusal
		case ledger.MemberAccepted:
			e.Message = "no other fleet or member holds the cluster any more"
		}
		ready := func(o occurrence) bool { return o.Event == history.Ready && o.Message == "" }
		if o := (occurrence{Entry: e}); e.Event != "" && !(ready(o) && slices.ContainsFunc(out, ready)) {
			out = append(out, o)
		}
	}
	return out
}

// userAction returns a user's action, or its end.
func userAction(event history.Event, s ledger.Subject, by, message string) occurrence {
	e := history.Entry{Kind: history.Action, Event: event, Cluster: s.Cluster, By: by, Message: message}
	if s.Placement != (api.PlacementKey{}) {
		e.Placement = s.Placement.String()
	}
	if s.Object != (api.ID{}) {
		e.Object = s.Object.String()
	}
	return occurrence{Entry: e}
}
