package api

import (
	"fmt"
	"strings"
	"time"
)

// A DriftMode is what is done when a field that the manifest sets is changed on a member.
type DriftMode string

// The drift modes.
const (
	// DriftRevert puts the field back.
	DriftRevert DriftMode = "revert"
	// DriftPropose leaves the object as it is and offers the change as a pull request.
	DriftPropose DriftMode = "propose"
	// DriftReport leaves the object as it is.
	DriftReport DriftMode = "report"
)

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
		if r, err := ParseDriftRule(value); err == nil && !r.Ended(now) {
			return r
		}
	}
	return DriftRule{Mode: s.Fleet}
}
