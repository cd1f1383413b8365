package api

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Actor is someone who wrote to an object, as far as the API server
// remembers: the client's name for itself, not a user.
type Actor struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`             // Apply or Update
	Subresource string `json:"subresource,omitempty"` // "" for the object itself
	// Time is that of the last write, to the second; zero if unknown.
	Time time.Time `json:"time,omitzero"`
}

// String returns MANAGER (OPERATION), and the subresource if there is one.
func (a Actor) String() string {
	if a.Subresource != "" {
		return fmt.Sprintf("%s (%s through %s)", a.Manager, a.Operation, a.Subresource)
	}
	return fmt.Sprintf("%s (%s)", a.Manager, a.Operation)
}

// A Difference is one field in which hub and member differ, and who made it so.
type Difference struct {
	PatchDetail
	// HubJSON and MemberJSON are the two values as JSON, where their texts do not say
	// what they are; nil where there is no value, or where it is masked or too large.
	HubJSON    json.RawMessage `json:"hubJSON,omitempty"`
	MemberJSON json.RawMessage `json:"memberJSON,omitempty"`
	// By are those who own the field on the member besides us, the newest first;
	// nobody where that cannot be told.
	By []Actor `json:"by,omitempty"`
}

// A DriftState says what is done about an object that moved away from what the
// hub wants.
type DriftState string

// The states of a drift.
const (
	// DriftStanding is there and left alone, as the strategy asks.
	DriftStanding DriftState = "standing"
	// DriftHeld is there and left alone until it is decided whether Git takes it over.
	DriftHeld DriftState = "held"
	// DriftRepaired was put back.
	DriftRepaired DriftState = "repaired"
	// DriftContested is there because another writer insists: it is put back
	// more slowly, or not at all.
	DriftContested DriftState = "contested"
	// DriftIgnored is in fields that the object asks to leave alone.
	DriftIgnored DriftState = "ignored"
	// DriftAltered is made by the member itself: its API server or an admission
	// webhook stores other values than were applied, at each apply. Nobody
	// drifted, and applying again would not help.
	DriftAltered DriftState = "altered"
	// DriftEnded is over without us: somebody else put the object back, or the
	// hub now wants it as it is.
	DriftEnded DriftState = "ended"
	// DriftForeign is no drift in the narrow sense: the object is not ours, or is
	// only looked at, and differs from what the hub wants.
	DriftForeign DriftState = "foreign"
)
