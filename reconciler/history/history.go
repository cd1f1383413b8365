// Package history remembers who did what, and when.
//
// A Record is a list of entries in a directory, one line of JSON each, that only
// grows at its end; the oldest go when it gets too large. Whoever has something
// to tell calls Add, which never waits. Nothing is decided by a record: it can
// be lost, copied or cut without harm to anybody but its readers.
package history

import (
	"encoding/json"
	"strings"
	"time"
)

// An Entry says that something happened. What it has nothing to say about is
// empty.
type Entry struct {
	Time  time.Time `json:"time"`
	Kind  Kind      `json:"kind"`
	Event Event     `json:"event"`
	// Commit is what brought it about; Author and Subject are the commit's.
	Commit  string `json:"commit,omitempty"`
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Placement is crp/NAME or rp/NAMESPACE/NAME; Revision counts its distinct
	// contents from "0".
	Placement string `json:"placement,omitempty"`
	Revision  string `json:"revision,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Object is Kind.group/namespace/name.
	Object string `json:"object,omitempty"`
	// By is who else had a hand in it: who changed what was repaired, who asked
	// for an action.
	By string `json:"by,omitempty"`
	// From and To are the names of a placement before and after it was renamed.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Message is the rest, for a person; it holds no secrets.
	Message string `json:"message,omitempty"`
}

// A Kind is what an entry is about.
type Kind string

// The kinds.
const (
	// Commit: a commit of the repository.
	Commit Kind = "commit"
	// Placement: a placement as a whole.
	Placement Kind = "placement"
	// Cluster: a placement on one cluster.
	Cluster Kind = "cluster"
	// Object: one object of a placement on one cluster.
	Object Kind = "object"
	// Member: a member cluster as such.
	Member Kind = "member"
	// Action: something a person asked for.
	Action Kind = "action"
	// Gap: entries are missing here.
	Gap Kind = "gap"
)

// An Event is what happened.
type Event string

// The events, by kind.
const (
	InForce Event = "inForce"
	Refused Event = "refused"

	// Revised: the content of a placement is another; SpecChanged: what it asks
	// for is.
	Revised     Event = "revised"
	SpecChanged Event = "specChanged"

	// Assigned: a cluster may have the revision.
	Assigned    Event = "assigned"
	Applied     Event = "applied"
	Available   Event = "available"
	Unavailable Event = "unavailable"
	Failed      Event = "failed"
	// Removing and Removed are of placements, and of placements on a cluster.
	Removing Event = "removing"
	Removed  Event = "removed"

	// Renamed: a placement goes on under another name. There is an entry for each of
	// the two.
	Renamed Event = "renamed"

	Created   Event = "created"
	Changed   Event = "changed"
	TakenOver Event = "takenOver"
	// Repaired: somebody had changed or removed the object.
	Repaired Event = "repaired"
	Deleted  Event = "deleted"
	// Released: the object stays, and is nobody's.
	Released Event = "released"

	Joined      Event = "joined"
	Ready       Event = "ready"
	Unreachable Event = "unreachable"
	// Forbidden: the cluster does not grant all permissions that the work needs.
	Forbidden Event = "forbidden"
	Left      Event = "left"
	// Foreign: another fleet holds the cluster, and nothing is written there. Adopted:
	// a person has made what that fleet has this fleet's own.
	Foreign Event = "foreign"
	Adopted Event = "adopted"

	// Suspended, Resumed: something is left as it is, or no longer. Ended: that
	// came to its time. Proceeded: a stopped rollout, or choice of clusters, goes
	// on.
	Suspended Event = "suspended"
	Resumed   Event = "resumed"
	Ended     Event = "ended"
	Proceeded Event = "proceeded"

	Dropped Event = "dropped"
)

// A Filter says which entries are asked for. Empty fields ask for nothing.
type Filter struct {
	Kind      Kind
	Placement string
	Cluster   string
	// Object is a part of an object's name, in any case.
	Object string
	// Means, if it is not nil, says which objects are meant.
	Means func(object string) bool
	// Since and Until bound the time: not before, and before.
	Since, Until time.Time
	// Newest is how many are wanted at most; zero wants all.
	Newest int
}

// Matches reports whether an entry is asked for.
func (f Filter) Matches(e Entry) bool {
	switch {
	case f.Kind != "" && e.Kind != f.Kind,
		f.Placement != "" && e.Placement != f.Placement,
		f.Cluster != "" && e.Cluster != f.Cluster,
		f.Object != "" && !strings.Contains(strings.ToLower(e.Object), strings.ToLower(f.Object)),
		f.Means != nil && !f.Means(e.Object),
		!f.Since.IsZero() && e.Time.Before(f.Since),
		!f.Until.IsZero() && !e.Time.Before(f.Until):
		return false
	}
	return true
}

// marks are texts that a line has if its entry matches: looking for them is much
// quicker than reading it.
func (f Filter) marks() [][]byte {
	var all [][]byte
	for _, p := range []struct{ name, value string }{{"kind", string(f.Kind)}, {"placement", f.Placement}, {"cluster", f.Cluster}} {
		if p.value != "" {
			value, _ := json.Marshal(p.value) // a string always can be
			all = append(all, append([]byte(`"`+p.name+`":`), value...))
		}
	}
	return all
}
