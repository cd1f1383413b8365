package occurrence

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// suspensionEvents are the events of suspensions that a user begins or changes, and ends, by their effects.
var suspensionEvents = map[ledger.Effect]struct{ begun, ended history.Event }{
	ledger.StopsWrites: {history.Suspended, history.Resumed},
	ledger.Freezes:     {history.Frozen, history.Unfrozen},
	ledger.Cordons:     {history.Cordoned, history.Uncordoned},
}

// OfSuspensions returns the suspensions that have begun, changed or ended, from those before and after. by is who has ended some; those
// whose time is over have ended by themselves. The loop does not call it for a rename, which moves suspensions and is an occurrence itself.
func OfSuspensions(was, is []ledger.Suspension, by string, now time.Time) (all []Occurrence) {
	for _, s := range is {
		if slices.Contains(was, s) {
			continue
		}
		message := s.Reason
		if !s.Until.IsZero() {
			message += ", until " + s.Until.UTC().Format(time.RFC3339)
		}
		o := UserAction(suspensionEvents[s.Effect].begun, s.Subject, s.By, message)
		o.Suspended = &s
		all = append(all, o)
	}
	for _, s := range was {
		if slices.ContainsFunc(is, func(still ledger.Suspension) bool { return still.Subject == s.Subject }) {
			continue
		}
		event, by := suspensionEvents[s.Effect].ended, by
		if s.Ended(now) {
			event, by = history.Ended, s.By
		}
		o := UserAction(event, s.Subject, by, "it was "+s.String())
		o.Resumed = &s
		all = append(all, o)
	}
	return all
}

// UserAction returns the occurrence of a user's action, such as a suspension, or of its end.
func UserAction(event history.Event, s ledger.Subject, by, message string) Occurrence {
	e := history.Entry{Kind: history.Action, Event: event, Cluster: s.Cluster, By: by, Message: message}
	if s.Placement != (api.PlacementKey{}) {
		e.Placement = s.Placement.String()
	}
	if s.Object != (api.ID{}) {
		e.Object = s.Object.String()
	}
	return Occurrence{Entry: e}
}
