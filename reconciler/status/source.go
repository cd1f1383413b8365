package status

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// sourceEvents returns events about the changes of the repository.
func sourceEvents(was, is Source, now time.Time) []Event {
	var out []Event
	switch {
	case is.Git.Error == was.Git.Error:
	case is.Git.Error != "":
		out = append(out, event.Warning(api.FetchFailed, "The repository cannot be read: "+is.Git.Error))
	default:
		out = append(out, event.Normal(api.FetchSucceeded, "The repository can be read again"))
	}
	if is.InForce.Hash != was.InForce.Hash {
		e := event.Normal(api.CommitInForce, commitText(is.InForce)+" is in force")
		e.Commit = is.InForce.Hash
		out = append(out, e)
	}
	if why := refusalText(is); why != "" && (is.Newest.Hash != was.Newest.Hash || why != refusalText(was)) {
		stays := "and no commit is in force yet"
		if is.InForce.Hash != "" {
			stays = "and the last good one stays in force"
		}
		e := event.Warning(api.CommitRefused, commitText(is.Newest)+" is refused, "+stays+": "+why)
		e.Commit = is.Newest.Hash
		out = append(out, e)
	}
	return event.AboutRepository(now, out)
}

// refusalText is why the newest commit is not in force; empty if it is.
func refusalText(s Source) string { return cmp.Or(s.LoadError, s.Problems.Summary()) }

// commitText returns a commit's short hash and subject.
func commitText(c hub.Commit) string {
	const short = 12
	return fmt.Sprintf("Commit %s (%s)", c.Hash[:min(short, len(c.Hash))], cmp.Or(c.Subject, "no subject"))
}
