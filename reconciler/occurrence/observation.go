package occurrence

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// OfObservation adds to all what has happened to a placement on a cluster, from its entries before and after an observation. The history
// has the time that the clock showed at the observation; entries measure theirs from the assignment, so that a clock that was set
// forward does not change them.
func OfObservation(all []Occurrence, key api.PlacementKey, record *ledger.Placement, was, is *ledger.Entry, observed time.Time) []Occurrence {
	if was == nil || is == nil || was == is || is.Binding.Removing {
		return all
	}
	o := Occurrence{Entry: history.Entry{Time: observed, Kind: history.Cluster, Placement: key.String(), Cluster: is.Binding.Cluster, Commit: is.Binding.Assigned.Commit}}
	if o.Detected = record.RevisedAt(int(is.Binding.Index)); !o.Detected.IsZero() && is.Binding.BoundAt.After(o.Detected) {
		o.Detected = is.Binding.BoundAt
	}
	addStage := func(stage string, since, at time.Time) {
		reached := o
		reached.Stage, reached.Since, reached.Time = stage, since, at
		all = append(all, reached)
	}
	if was.AppliedAt().IsZero() && !is.AppliedAt().IsZero() {
		addStage(StageApplied, is.Binding.AssignedAt, is.AppliedAt())
	}
	if was.AvailableAt().IsZero() && !is.AvailableAt().IsZero() {
		addStage(StageAvailable, cmp.Or(is.AppliedAt(), is.Binding.AssignedAt), is.AvailableAt())
	}
	o.Revision = contentIndex(record)
	add := func(event history.Event, message string) {
		o.Event, o.Message = event, message
		all = append(all, o)
	}
	seen := is.CompleteOf(&is.Binding)
	change := ClusterState{&is.Binding, seen}.Since(ClusterState{&was.Binding, was.CompleteOf(&was.Binding)})
	if change.Applied {
		add(history.Applied, "")
	}
	switch failed := change.Failed; {
	case failed != nil:
		o.Stage, o.Since = StageApplied, is.Binding.AssignedAt
		if !is.AppliedAt().IsZero() {
			o.Stage, o.Since = StageAvailable, is.AppliedAt()
		}
		add(history.Failed, failed.ID.String()+": "+cmp.Or(failed.Failure, failed.Applied.Message()))
	case change.Available:
		add(history.Available, "")
	case change.Unavailable:
		add(history.Unavailable, missing(seen))
	}
	return all
}

// missing names the first object of a report that is not applied or not available, and says why; empty if there is none.
func missing(seen *protocol.WorkState) string {
	if seen == nil {
		return ""
	}
	for _, o := range seen.Exceptions {
		switch {
		case !o.Applied.OK:
			return o.ID.String() + ": " + o.Applied.Message()
		case !o.Available.OK:
			return o.ID.String() + ": " + o.Available.Message()
		}
	}
	return ""
}

// memberEvents are the events of the history for what happens to a member cluster. It has none of credentials.
var memberEvents = map[ledger.MemberChange]history.Event{
	ledger.MemberUnanswered: history.Unreachable, ledger.MemberJoined: history.Joined, ledger.MemberReady: history.Ready,
	ledger.MemberUnhealthy: history.Unreachable, ledger.MemberForbidden: history.Forbidden, ledger.MemberPermitted: history.Ready,
	ledger.MemberRestored: history.Restored, ledger.MemberRefused: history.Foreign, ledger.MemberAccepted: history.Ready,
}

// OfMember returns what has happened to a member cluster, from its state before and after a probe. That it has not answered yet is
// recorded once, whatever the reasons are.
func OfMember(name string, was, is ledger.MemberState) (out []Occurrence) {
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
			e.Message = "no other fleet or member claims the cluster any more"
		}
		ready := func(o Occurrence) bool { return o.Event == history.Ready && o.Message == "" }
		if o := (Occurrence{Entry: e}); e.Event != "" && !(ready(o) && slices.ContainsFunc(out, ready)) {
			out = append(out, o)
		}
	}
	return out
}
