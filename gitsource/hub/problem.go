package hub

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Severity tells what a problem does to a commit.
type Severity string

// An Error refuses the commit; a Warning is only told.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// A Problem is one thing that is wrong with one place of the repository.
type Problem struct {
	api.Origin
	// Field is a path such as spec.policy.placementType; empty if the problem
	// is of the whole document.
	Field    string
	Severity Severity
	// Message says what is wrong and how to mend it.
	Message string
}

// Error returns path:line: field: message, leaving out what is not known.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Origin)
	}
	if p.Field != "" {
		fmt.Fprintf(&b, "%s: ", p.Field)
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are in order of path, line and field.
type Problems []Problem

// Err returns the problems as one error, or nil if there are none.
func (ps Problems) Err() error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errors.Join(errs...)
}
