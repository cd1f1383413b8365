package status

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
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
