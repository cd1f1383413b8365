package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// An Actor is a field manager that wrote to an object. The name is chosen by the client, and is
// not that of a user.
type Actor struct {
	// Manager is the name of the field manager.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation string `json:"operation"`
	// Subresource is empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
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
	PatchDetail `json:",inline"`
	// HubJSON is the value in the repository as JSON if its text does not show the type; nil if
	// the value is missing, masked or too large.
	HubJSON json.RawMessage `json:"hubJSON,omitempty"`
	// MemberJSON is the same for the value on the member cluster.
	MemberJSON json.RawMessage `json:"memberJSON,omitempty"`
	// By are the other owners of the field on the member cluster, the newest first; empty if
	// they are not known.
	By []Actor `json:"by,omitempty"`
}

// A DriftState is what was done about the drift of an object.
type DriftState string

// The states of a drift.
const (
	// DriftStanding: the drift exists and is left, as the strategy or a suspension demands.
	DriftStanding DriftState = "standing"
	// DriftHeld: the drift exists and is left because of its mode: with DriftPropose until a user
	// decides about it, with DriftReport until somebody reverts it.
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
	// DriftAdded: others have added something beside what the manifest sets. It is left as it is.
	DriftAdded DriftState = "added"
	// DriftEnded: the drift has ended by itself: somebody else reverted it, or the manifest now
	// has the same values.
	DriftEnded DriftState = "ended"
	// DriftForeign: the object differs from its manifest, and the placement does not own it or only compares it.
	DriftForeign DriftState = "foreign"
)

// Present reports whether an object with such drift still differs from the hub, as far as is known.
func (s DriftState) Present() bool { return s != DriftRepaired && s != DriftEnded }

// AwaitsDecision reports whether drift with a state, and the rule that is recorded with it, stays until a user decides
// about it: it is held, or an addition that is offered.
func (s DriftState) AwaitsDecision(rule string) bool {
	return s == DriftHeld || s == DriftAdded && rule != ""
}

// A DriftMode is what is done when a field that the manifest sets is changed on a member.
type DriftMode string

// The drift modes.
const (
	// DriftRevert reverts the change.
	DriftRevert DriftMode = "revert"
	// DriftPropose leaves the object as it is and offers the change as a pull request.
	DriftPropose DriftMode = "propose"
	// DriftReport leaves the object as it is.
	DriftReport DriftMode = "report"
)

// An AdditionsMode is what is done when something is added on a member beside what a manifest sets, such as
// a container or a label.
type AdditionsMode string

// The modes of additions.
const (
	// AdditionsIgnore does not look for additions.
	AdditionsIgnore AdditionsMode = "ignore"
	// AdditionsReport leaves them as they are and reports them.
	AdditionsReport AdditionsMode = "report"
	// AdditionsPropose leaves them as they are, reports them, and offers them as pull requests.
	AdditionsPropose AdditionsMode = "propose"
)

// Looks reports whether additions are looked for.
func (m AdditionsMode) Looks() bool { return m == AdditionsReport || m == AdditionsPropose }

// A DriftRule is a drift mode, until a time if that is set.
type DriftRule struct {
	Mode  DriftMode
	Until time.Time
}

// ParseDriftRule reads the value of a DriftAnnotation: MODE, or MODE until TIME with a
// time of RFC 3339.
func ParseDriftRule(value string) (DriftRule, error) {
	mode, until, limited := strings.Cut(value, " until ")
	r := DriftRule{Mode: DriftMode(mode)}
	switch r.Mode {
	case DriftRevert, DriftPropose, DriftReport:
	default:
		return DriftRule{}, fmt.Errorf("%q is unknown; write %q, %q or %q, and if it is to end %q", value, DriftRevert, DriftPropose, DriftReport, "propose until 2030-01-31T00:00:00Z")
	}
	if !limited {
		return r, nil
	}
	var err error
	if r.Until, err = time.Parse(time.RFC3339, until); err != nil {
		return DriftRule{}, fmt.Errorf("%q is no time of RFC 3339; write one such as %q", until, "2030-01-31T00:00:00Z")
	}
	return r, nil
}

// String returns the value of the annotation.
func (r DriftRule) String() string {
	if r.Until.IsZero() {
		return string(r.Mode)
	}
	return string(r.Mode) + " until " + r.Until.Format(time.RFC3339)
}

// HeldMessage is the message of drift that is held by the rule, until a user decides about it.
func (r DriftRule) HeldMessage() string {
	return "left as it is, as its drift mode asks: " + r.String()
}

// Ended reports whether the time limit of a rule has passed.
func (r DriftRule) Ended(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// DriftRules are what is written about the drift of one object, the most specific first: the
// annotations of the object, its placement and its cluster, and the modes of its kind and of
// the fleet. Those that are empty say nothing.
type DriftRules struct {
	Object    string
	Kind      DriftMode
	Placement string
	Cluster   string
	Fleet     DriftMode
}

// At returns the most specific rule that is valid and has not ended.
func (s DriftRules) At(now time.Time) DriftRule {
	for _, value := range []string{s.Object, string(s.Kind), s.Placement, s.Cluster} {
		if value == "" {
			continue
		}
		if r, err := ParseDriftRule(value); err == nil && !r.Ended(now) {
			return r
		}
	}
	return DriftRule{Mode: s.Fleet}
}
