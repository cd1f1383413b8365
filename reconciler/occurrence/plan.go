package occurrence

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// OfPlan returns the occurrences of a plan that is not yet in the ledger, in one list for each placement: the first plan of a
// large fleet assigns a hundred thousand revisions, and entries for the history are made for one placement at a time.
func OfPlan(p *plan.Plan, l *ledger.Ledger, inForce hub.Commit) (all [][]Occurrence) {
	for _, r := range p.Renames {
		e := CommitEntry(history.Renamed, inForce, "")
		e.Kind, e.From, e.To = history.Placement, r.From.String(), r.To.String()
		was, is := e, e
		was.Placement, was.Message = e.From, "it is "+e.To+" from now on"
		is.Placement, is.Message = e.To, "it was "+e.From+" until now"
		all = append(all, []Occurrence{{Entry: was}, {Entry: is}})
	}
	if len(p.Renames) > 0 {
		l = l.Renamed(p.Renames) // the rollout of a renamed placement continues
	}
	for pl := range p.Placements.Values() {
		if of := ofPlacement(pl, l.Placement(pl.Key), inForce); len(of) > 0 {
			all = append(all, of)
		}
	}
	return all
}

// ofPlacement returns the occurrences of a plan that are about one placement. The record is nil if the placement is new.
func ofPlacement(pl *plan.Placement, record *ledger.Placement, inForce hub.Commit) []Occurrence {
	all := ofRollout(pl, record)
	if pl.Record.Into != (api.PlacementKey{}) {
		return all // a renamed placement, whose members only hand over its objects
	}
	if !pl.RecordChanged && !pl.Forget && len(pl.Changed)+len(pl.Unbind) == 0 {
		return all
	}
	name := pl.Key.String()
	add := func(e history.Entry) {
		e.Placement = name
		all = append(all, Occurrence{Entry: e})
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
			all = append(all, Occurrence{Entry: e})
		}
		last := &all[len(all)-1]
		last.Clusters = append(last.Clusters, cluster)
	}
	if pl.RecordChanged {
		for _, c := range RunsSince(record, &pl.Record) {
			add(history.Entry{Kind: history.Placement, Event: c.Event, Commit: c.Run.Content.Commit, Message: c.text()})
		}
	}
	return all
}

// ofRollout returns the occurrences of a plan that are about the rollout of a placement. record is nil if the placement is new.
func ofRollout(pl *plan.Placement, record *ledger.Placement) (all []Occurrence) {
	if !pl.RecordChanged {
		return nil
	}
	is, change := &pl.Record, RolloutSince(record, &pl.Record)
	nothing := change.Finished && pl.Assigned == 0 // the policy asks for no cluster
	of := history.Entry{Placement: pl.Key.String()}
	if change.Started && !nothing {
		all = append(all, Occurrence{Entry: of, Rollout: RolloutStarted})
	}
	if change.Finished && !nothing {
		all = append(all, Occurrence{Entry: of, Rollout: RolloutFinished, RolloutTook: max(0, is.RolloutFinished.Sub(is.RolloutStarted))})
	}
	if change.Stopped {
		of.Cluster, of.Message = FailedClusters(is.Stops), failedOf(is.Stops)
		all = append(all, Occurrence{Entry: of, Rollout: RolloutStopped})
	}
	return all
}

// FailedClusters returns the names of the clusters on which updates have failed that stop a rollout.
func FailedClusters(stops []placement.Stop) string {
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

// Removing compares the records of a placement before and after, and reports whether its removal has begun because it was deleted from
// the repository. was is nil if the placement is new. A renamed placement is not removed.
func Removing(was, is *ledger.Placement) bool {
	return is.Deleted && is.Into == (api.PlacementKey{}) && (was == nil || !was.Deleted)
}

// Removed reports whether nothing is left of a placement, which was not renamed.
func Removed(p *plan.Placement) bool { return p.Forget && p.Record.Into == (api.PlacementKey{}) }

// placementEntry returns the change of a placement as a whole; its event is empty if there is none. The record is nil
// if the placement is new.
func placementEntry(pl *plan.Placement, record *ledger.Placement, inForce hub.Commit) history.Entry {
	was, is := ledger.Placement{Index: -1}, &pl.Record
	if record != nil {
		was = *record
	}
	e := CommitEntry("", inForce, "")
	e.Kind = history.Placement
	switch {
	case Removed(pl):
		e.Event = history.Removed
	case Removing(record, is):
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
			b, was := pl.Clusters[i].Binding, (*placement.Binding)(nil)
			if record != nil {
				if before := record.Entry(b.Cluster); before != nil {
					was = &before.Binding
				}
			}
			e := history.Entry{Kind: history.Cluster, Commit: b.Assigned.Commit}
			switch change := (ClusterState{Binding: b}).Since(ClusterState{Binding: was}); {
			case change.Removing:
				e.Event = history.Removing
			case change.Assigned:
				e.Event, e.Revision = history.Assigned, contentIndex(&pl.Record)
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

// contentIndex returns the number of the newest content of a placement, which the history calls its revision; empty if
// there is none.
func contentIndex(p *ledger.Placement) string {
	if p.Index < 0 {
		return ""
	}
	return strconv.Itoa(p.Index)
}
