package event

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// Of returns the events of what has happened to the repository and to suspensions. Those of placements and clusters are made from two
// reports.
func Of(all []occurrence.Occurrence, l *ledger.Ledger, now time.Time) (out []Event) {
	for i := range all {
		switch o := &all[i]; {
		case o.Unreadable != "":
			out = append(out, aboutRepository(Warning(api.FetchFailed, "The repository cannot be read: "+o.Unreadable), "", now))
		case o.Readable:
			out = append(out, aboutRepository(Normal(api.FetchSucceeded, "The repository can be read again"), "", now))
		case o.Event == history.InForce:
			out = append(out, aboutRepository(Normal(api.CommitInForce, commitText(o)+" is in force"), o.Commit, now))
		case o.Event == history.Refused:
			out = append(out, aboutRepository(Warning(api.CommitRefused, commitText(o)+" is refused, and "+inForceInstead(o)+": "+o.Message), o.Commit, now))
		case o.NotAccepted != "":
			out = append(out, aboutRepository(Warning(api.CommitRefused, "The newest commit is not accepted, and "+inForceInstead(o)+": "+o.NotAccepted), "", now))
		case o.Suspended != nil:
			out = append(out, aboutSubject(o.Suspended.Subject, l, now, Normal(api.Suspended, o.Suspended.Subject.String()+" is "+o.Suspended.String())))
		case o.Resumed != nil:
			out = append(out, aboutSubject(o.Resumed.Subject, l, now, Normal(api.Resumed, o.Resumed.Subject.String()+" is no longer "+o.Resumed.Effect.Verb())))
		}
	}
	return out
}

// commitText returns the short hash and the subject of the commit of an occurrence.
func commitText(o *occurrence.Occurrence) string {
	const short = 12
	return fmt.Sprintf("Commit %s (%s)", o.Commit[:min(short, len(o.Commit))], cmp.Or(o.Subject, "no subject"))
}

// inForceInstead returns what is in force instead of a refused commit.
func inForceInstead(o *occurrence.Occurrence) string {
	if o.StaysInForce == "" {
		return "no commit is in force yet"
	}
	return "the last good one stays in force"
}

// aboutSubject sets what is suspended as the involved object of an event: a placement, a cluster, or otherwise the repository.
func aboutSubject(s ledger.Subject, l *ledger.Ledger, now time.Time, e Event) Event {
	e.Cluster = s.Cluster
	switch {
	case s.Placement != api.PlacementKey{}:
		var created time.Time
		if known := l.Placement(s.Placement); known != nil {
			created = known.Created
		}
		return AboutPlacement(s.Placement, created, now, []Event{e})[0]
	case s.Cluster != "":
		return AboutCluster(s.Cluster, metadata.ClusterUID(s.Cluster, l.Declared()[metadata.ClusterID(s.Cluster)].Created), now, []Event{e})[0]
	}
	return aboutRepository(e, "", now)
}

// aboutRepository sets the repository as the involved object of an event, and the commit.
func aboutRepository(e Event, commit string, now time.Time) Event {
	e.Commit = commit
	return about(repositoryGroup, repositoryKind, "", repositoryName, metadata.UID(time.Time{}, repositoryKind, repositoryName), now, []Event{e})[0]
}
