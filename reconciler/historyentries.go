package reconciler

import (
	"cmp"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// This file derives entries of the history from changes of the ledger. It compares the ledger
// before and after a change, so that no change is recorded twice, also after a restart.

func commitEntry(event history.Event, c hub.Commit, message string) history.Entry {
	return history.Entry{Kind: history.Commit, Event: event, Commit: c.Hash, Author: c.Author, Subject: c.Subject, Message: message}
}

// planEntries returns the entries of a plan that is not yet in the ledger.
func planEntries(p *plan.Plan, l *ledger.Ledger, inForce hub.Commit) []history.Entry {
	var all []history.Entry
	for _, r := range p.Renames {
		e := commitEntry(history.Renamed, inForce, "")
		e.Kind, e.From, e.To = history.Placement, r.From.String(), r.To.String()
		was, is := e, e
		was.Placement, was.Message = e.From, "it is "+e.To+" from now on"
		is.Placement, is.Message = e.To, "it was "+e.From+" until now"
		all = append(all, was, is)
	}
	if len(p.Renames) > 0 {
		l = l.Renamed(p.Renames)
	}
	for _, pl := range p.Placements {
		if pl.Record.Into != (api.PlacementKey{}) {
			continue // a renamed placement, whose members only hand over its objects
		}
		if !pl.RecordChanged && !pl.Forget && len(pl.Changed)+len(pl.Unbind) == 0 {
			continue
		}
		d := decision{pl: pl, record: l.Placement(pl.Key)}
		d.placement(inForce)
		d.clusters()
		all = append(all, d.entries...)
	}
	return all
}

// A decision is what a plan changes about one placement.
type decision struct {
	pl      *plan.Placement
	record  *ledger.Placement // nil if the placement is new
	entries []history.Entry
}

func (d *decision) add(e history.Entry) {
	e.Placement = d.pl.Key.String()
	d.entries = append(d.entries, e)
}

// placement adds the changes of the placement as a whole.
func (d *decision) placement(inForce hub.Commit) {
	was, is := ledger.Placement{Index: -1}, d.pl.Record
	if d.record != nil {
		was = *d.record
	}
	e := commitEntry("", inForce, "")
	e.Kind = history.Placement
	switch {
	case d.pl.Forget:
		e.Event = history.Removed
	case is.Deleted && !was.Deleted:
		e.Event = history.Removing
	case !d.pl.RecordChanged:
		return
	case is.Index >= 0 && is.Index != was.Index:
		e.Event, e.Revision = history.Revised, contentIndex(is)
	case is.SpecHash != was.SpecHash:
		e.Event, e.Revision = history.SpecChanged, contentIndex(is)
	default:
		return
	}
	d.add(e)
}

// clusters adds the clusters whose assignments change.
func (d *decision) clusters() {
	for _, b := range d.pl.Changed {
		e := history.Entry{Kind: history.Cluster, Cluster: b.Cluster, Commit: b.Assigned.Commit, Revision: contentIndex(d.pl.Record)}
		before := d.entry(b.Cluster)
		switch {
		case b.Removing && (before == nil || !before.Binding.Removing):
			e.Event, e.Revision = history.Removing, ""
		case b.HasRevision() && !b.Removing && (before == nil || before.Binding.Assigned.Hash != b.Assigned.Hash):
			e.Event = history.Assigned
		default:
			continue
		}
		d.add(e)
	}
	for _, cluster := range d.pl.Unbind {
		d.add(history.Entry{Kind: history.Cluster, Event: history.Removed, Cluster: cluster})
	}
}

func (d *decision) entry(cluster string) *ledger.Entry {
	if d.record == nil {
		return nil
	}
	return d.record.Entry(cluster)
}

// contentIndex returns the number of the newest content of a placement, which the history calls
// its revision; empty if there is none.
func contentIndex(p ledger.Placement) string {
	if p.Index < 0 {
		return ""
	}
	return strconv.Itoa(p.Index)
}

// progressEntries returns the progress of a placement on a cluster, from its entries before and
// after an observation.
func progressEntries(key api.PlacementKey, index string, was, is *ledger.Entry) []history.Entry {
	if was == nil || is == nil || was == is || is.Binding.Removing {
		return nil
	}
	before, after := stagesOf(was), stagesOf(is)
	e := history.Entry{
		Time: is.Seen.At, Kind: history.Cluster, Placement: key.String(), Cluster: is.Binding.Cluster,
		Commit: is.Binding.Assigned.Commit, Revision: index,
	}
	var all []history.Entry
	add := func(event history.Event, message string) {
		e.Event, e.Message = event, message
		all = append(all, e)
	}
	if after.applied && !before.applied {
		add(history.Applied, "")
	}
	switch {
	case after.failure != "" && after.failed != before.failed:
		add(history.Failed, after.failure)
	case after.available && !before.available:
		add(history.Available, "")
	case before.available && !after.available:
		add(history.Unavailable, after.missing)
	}
	return all
}

// reachedStages are what a placement has reached on a cluster, from the last report about its
// assigned revision. Unlike for Entry.AppliedAt and AvailableAt, suspended objects count: the
// history calls content applied once all of it is.
type reachedStages struct {
	applied, available bool
	failed             api.ID // the first object that was refused or will not become available by itself
	failure            string
	missing            string // the first object that is not available, and why
}

func stagesOf(e *ledger.Entry) reachedStages {
	var p reachedStages
	seen := e.Seen
	if seen == nil || seen.Revision.Hash != e.Binding.Assigned.Hash || seen.At.Before(e.Binding.AssignedAt) {
		return p
	}
	p.applied, p.available = seen.Applied(), seen.Available()
	for i := range seen.Exceptions {
		o := &seen.Exceptions[i]
		switch {
		case o.HasFailed() && p.failure == "" && seen.Done:
			p.failed, p.failure = o.ID, o.ID.String()+": "+cmp.Or(o.Failure, o.Applied.Message)
		case o.Applied.OK && !o.Available.OK && p.missing == "":
			p.missing = o.ID.String() + ": " + o.Available.Message
		}
	}
	return p
}

// clusterEntries returns the changes of a member cluster, from its records before and after a
// probe.
func clusterEntries(name string, was, is *ledger.Cluster) []history.Entry {
	denied := is.Denied()
	if is == nil || was != nil && was.Healthy == is.Healthy && was.Joined.Equal(is.Joined) && (denied == "") == (was.Denied() == "") {
		return nil
	}
	e := history.Entry{Time: is.At, Kind: history.Member, Cluster: name, Message: is.Error}
	switch {
	case denied != "":
		e.Event, e.Message = history.Forbidden, denied
	case !is.Healthy:
		e.Event = history.Unreachable
	case was == nil || was.Joined.IsZero():
		e.Event = history.Joined
	default:
		e.Event = history.Ready
	}
	return []history.Entry{e}
}

// foldOne folds one observation, and records the changes in the history.
func (r *Reconciler) foldOne(s observedSubject, o ledger.Observation) bool {
	if s.placement == (api.PlacementKey{}) {
		was, refusal := r.ledger.Cluster(s.cluster), r.ledger.Refusal(s.cluster)
		news := r.ledger.Fold(o)
		if why := r.ledger.Refusal(s.cluster); why != "" && why != refusal {
			r.cfg.Record(history.Entry{Time: r.ledger.Cluster(s.cluster).At, Kind: history.Member, Event: history.Foreign, Cluster: s.cluster, Message: why})
		}
		r.cfg.Record(clusterEntries(s.cluster, was, r.ledger.Cluster(s.cluster))...)
		return news
	}
	record := r.ledger.Placement(s.placement)
	if record == nil {
		return r.ledger.Fold(o)
	}
	was := record.Entry(s.cluster)
	news := r.ledger.Fold(o)
	is := record.Entry(s.cluster)
	r.cfg.Metrics.propagated(record, was, is)
	entries := progressEntries(s.placement, contentIndex(*record), was, is)
	r.traceCluster(s, was, is, entries)
	r.cfg.Record(entries...)
	if is != was {
		for _, d := range is.Seen.Deleted(was.Seen) {
			r.deleted = append(r.deleted, status.Deleted{Placement: s.placement, Cluster: s.cluster, Deletion: d})
		}
	}
	return news
}

// reasonOf returns why something is suspended, and until when.
func reasonOf(s ledger.Suspension) string {
	if s.Until.IsZero() {
		return s.Reason
	}
	return s.Reason + ", until " + s.Until.UTC().Format(time.RFC3339)
}

// userEntry returns the entry of a user's action, or of its end.
func userEntry(event history.Event, s ledger.Subject, by, message string) history.Entry {
	e := history.Entry{Kind: history.Action, Event: event, Cluster: s.Cluster, By: by, Message: message}
	if s.Placement != (api.PlacementKey{}) {
		e.Placement = s.Placement.String()
	}
	if s.Object != (api.ID{}) {
		e.Object = s.Object.String()
	}
	return e
}
