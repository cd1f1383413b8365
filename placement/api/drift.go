package api

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Actor is a field manager that wrote to an object. The name is chosen by the client, and is
// not that of a user.
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

// A Difference is one field that differs between the repository and a member cluster, and who
// changed it.
type Difference struct {
	PatchDetail
	// HubJSON and MemberJSON are the values as JSON if their texts do not show the type; nil for
	// a value that is missing, masked or too large.
	HubJSON    json.RawMessage `json:"hubJSON,omitempty"`
	MemberJSON json.RawMessage `json:"memberJSON,omitempty"`
	// By are the other owners of the field on the member cluster, the newest first; empty if
	// they are not known.
	By []Actor `json:"by,omitempty"`
}

// A DriftState is what was done about the drift of an object.
type DriftState string

// The states of a drift.
const (
	// DriftStanding: the drift exists and is left, as the strategy demands.
	DriftStanding DriftState = "standing"
	// DriftHeld: the drift exists and is left until it is decided whether it is adopted into
	// Git.
	DriftHeld DriftState = "held"
	// DriftRepaired: the drift was reverted.
	DriftRepaired DriftState = "repaired"
	// DriftContested: another writer keeps making the same change; it is reverted less often, or
	// no longer.
	DriftContested DriftState = "contested"
	// DriftIgnored: the drift is in fields that the object's annotation excludes.
	DriftIgnored DriftState = "ignored"
	// DriftAltered: the member's API server or an admission webhook stores other values than are
	// applied, at each apply. Nobody has changed the object, and applying it again would not
	// help.
	DriftAltered DriftState = "altered"
	// DriftEnded: the drift has ended by itself: somebody else reverted it, or the manifest now
	// has the same values.
	DriftEnded DriftState = "ended"
	// DriftForeign: the object is not owned, or is only compared, and differs from its manifest.
	DriftForeign DriftState = "foreign"
)
