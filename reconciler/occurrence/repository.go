package occurrence

import (
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// OfCommit returns what has happened by loading a commit, from what the ledger had of the repository before and has after. It has no event
// if nothing has: the commit was in force before, or was refused for the same reason, as it is when it is loaded again after a restart.
func OfCommit(c hub.Commit, was, is ledger.Repository) Occurrence {
	switch {
	case is.InForce != was.InForce:
		return Occurrence{Entry: CommitEntry(history.InForce, c, "")}
	case is.Refused != "" && (is.Refused != was.Refused || is.Why != was.Why):
		return Occurrence{Entry: CommitEntry(history.Refused, c, is.Why), StaysInForce: is.InForce}
	}
	return Occurrence{}
}

// OfPolls returns what has happened by polls of the remote, from what the ledger had of the repository before and has after.
func OfPolls(was, is ledger.Repository) (out []Occurrence) {
	if is.Unreadable != was.Unreadable {
		out = append(out, Occurrence{Unreadable: is.Unreadable, Readable: is.Unreadable == ""})
	}
	if is.NotAccepted != "" && is.NotAccepted != was.NotAccepted {
		out = append(out, Occurrence{NotAccepted: is.NotAccepted, StaysInForce: is.InForce})
	}
	return out
}
