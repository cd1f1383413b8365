package status

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// A Source is the state of the repository.
type Source struct {
	Git Git
	// Newest is the newest commit of the tracked reference, and InForce the newest that could
	// be loaded, which is planned and applied. Since is when it came into force.
	Newest  hub.Commit
	InForce hub.Commit
	Since   time.Time `json:",omitzero"`
	// Problems are the reasons why Newest is not in force; LoadError is set if it could not be
	// read at all. Warnings are those of the commit in force, and about overrides that select
	// nothing.
	Problems  problem.List
	LoadError string
	// Fetches are the remote bases and charts that are fetched before Newest is loaded; empty if it does not wait for any.
	Fetches  []string `json:",omitempty"`
	Warnings problem.List
}

// A Git is the state of polling the remote.
type Git struct {
	URL, Ref string // the tracked repository and reference; the URL has no credentials
	Head     string // the newest accepted commit of the reference; empty if there is none
	// LastPoll is the time of the last poll, LastSuccess that of the last successful one,
	// NextPoll that of the next.
	LastPoll    time.Time `json:",omitzero"`
	LastSuccess time.Time `json:",omitzero"`
	NextPoll    time.Time `json:",omitzero"`
	Failures    int       // failed polls since the last success
	Error       string    // why the last poll failed
	Refused     bool      `json:",omitempty"` // it did not: Error is why the newest commit is not accepted
}

// sourceEvents returns events about the changes of the repository.
func sourceEvents(was, is Source, now time.Time) []event.Event {
	var out []event.Event
	switch {
	case is.Git.Error == was.Git.Error:
	case is.Git.Error != "":
		out = append(out, event.Warning(api.FetchFailed, "The repository cannot be read: "+is.Git.Error))
	default:
		out = append(out, event.Normal(api.FetchSucceeded, "The repository can be read again"))
	}
	if is.InForce.Hash != "" && is.InForce.Hash != was.InForce.Hash {
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
