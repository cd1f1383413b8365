// Package history records who did what, and when.
//
// A Record is an append-only log of entries, stored as lines of JSON in a directory. The oldest
// entries are removed when it gets too large. Add never blocks. No decision depends on a
// record, so that it may be lost, copied or truncated.
package history

import (
	"strings"
	"time"
)

// An Entry is one event. Fields that do not apply are empty.
type Entry struct {
	Time  time.Time `json:"time"`
	Kind  Kind      `json:"kind"`
	Event Event     `json:"event"`
	// Commit is the commit that caused the event, with its Author and Subject.
	Commit string `json:"commit,omitempty"`
	Author string `json:"author,omitempty"`
	// Signer is whose signature of the commit was verified; empty if signatures are not asked for.
	Signer  string `json:"signer,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Placement is crp/NAME or rp/NAMESPACE/NAME. Revision is the number of its content, from
	// "0".
	Placement string `json:"placement,omitempty"`
	Revision  string `json:"revision,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Object is Kind.group/namespace/name.
	Object string `json:"object,omitempty"`
	// By is another person or program that was involved: the actor whose change was repaired,
	// or the user who requested an action.
	By string `json:"by,omitempty"`
	// From and To are the names of a placement before and after it was renamed.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Message is a text for people, without secrets.
	Message string `json:"message,omitempty"`
}

// A Kind says what an entry is about.
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

	// Revised: the content of a placement has changed. SpecChanged: its spec has.
	Revised     Event = "revised"
	SpecChanged Event = "specChanged"

	// Assigned: a revision was assigned to a cluster.
	Assigned    Event = "assigned"
	Applied     Event = "applied"
	Available   Event = "available"
	Unavailable Event = "unavailable"
	Failed      Event = "failed"
	// Removing and Removed are used for placements as a whole, and for placements on one
	// cluster.
	Removing Event = "removing"
	Removed  Event = "removed"

	// Renamed: a placement continues under another name. Both names have an entry.
	Renamed Event = "renamed"

	Created   Event = "created"
	Changed   Event = "changed"
	TakenOver Event = "takenOver"
	// Repaired: somebody had changed or removed the object, or inventories of a member.
	Repaired Event = "repaired"
	Deleted  Event = "deleted"
	// Released: the object stays, and is no longer owned.
	Released Event = "released"

	Joined      Event = "joined"
	Ready       Event = "ready"
	Unreachable Event = "unreachable"
	// Forbidden: the cluster does not grant all permissions that the work needs.
	Forbidden Event = "forbidden"
	// Restored: the cluster was restored to an earlier state, and everything there is read again.
	Restored Event = "restored"
	Left     Event = "left"
	// Foreign: the cluster belongs to another fleet, and nothing is written there. Adopted: a
	// user made this fleet the owner of that fleet's inventories.
	Foreign Event = "foreign"
	Adopted Event = "adopted"

	// Suspended, Resumed: a user suspended or resumed something. Ended: a suspension reached
	// its end. Proceeded: a user resumed a stopped rollout, or scheduling after the ledger was
	// lost.
	Suspended Event = "suspended"
	Resumed   Event = "resumed"
	Ended     Event = "ended"
	Proceeded Event = "proceeded"
	// Frozen, Unfrozen: a user kept new content from clusters, or no longer.
	Frozen   Event = "frozen"
	Unfrozen Event = "unfrozen"
	// Approved: a user approved a stage of an update run.
	Approved Event = "approved"
	// Rejected: a user rejected a stage of an update run, which stops it.
	Rejected Event = "rejected"
	// RunStarted, StageFinished, RunFinished: a staged update run began to update clusters, was done with a stage, or with all.
	// RunSuperseded: another run has taken its place. RunRolledBack: its clusters go back to the content of another run. RunRefused:
	// it could not be initialised. GateFailed: a gate after a stage has failed.
	RunStarted    Event = "runStarted"
	StageFinished Event = "stageFinished"
	RunFinished   Event = "runFinished"
	RunSuperseded Event = "runSuperseded"
	RunRolledBack Event = "runRolledBack"
	RunRefused    Event = "runRefused"
	GateFailed    Event = "gateFailed"
	// Evicted: a user ordered the eviction of a placement from a cluster. Cordoned, Uncordoned: a user began to drain a
	// cluster, or ended that.
	Evicted    Event = "evicted"
	Cordoned   Event = "cordoned"
	Uncordoned Event = "uncordoned"
	// ProposalOpened, ProposalClosed: a user requested that held drift is offered at once, or
	// reverted.
	ProposalOpened Event = "proposalOpened"
	ProposalClosed Event = "proposalClosed"
	// ProposalHeld, ProposalReleased: a user requested that the object of held drift stays as it is whatever becomes of
	// its pull request, or no longer. PlanRequested: a user requested another plan of a pull request.
	ProposalHeld     Event = "proposalHeld"
	ProposalReleased Event = "proposalReleased"
	PlanRequested    Event = "planRequested"

	Dropped Event = "dropped"
)

// A Filter selects entries. Empty fields match everything.
type Filter struct {
	Kind      Kind
	Placement string
	Cluster   string
	// Object selects objects whose name contains this text, in any case.
	Object string
	// Means selects objects, if it is not nil.
	Means func(object string) bool
	// Since (inclusive) and Until (exclusive) limit the time.
	Since, Until time.Time
	// Newest limits the number of entries to the newest ones; zero is no limit.
	Newest int
}

// Matches reports whether the filter selects an entry.
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
