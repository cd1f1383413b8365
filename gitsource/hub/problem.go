package hub

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// Error returns path:line: field: message, leaving out what is not known, and
// the kustomization that brought the place in.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Origin)
	}
	if p.Field != "" {
		fmt.Fprintf(&b, "%s: ", p.Field)
	}
	b.WriteString(p.Message)
	if p.Kustomization != "" && p.Kustomization != p.Path {
		fmt.Fprintf(&b, " (built by %s)", p.Kustomization)
	}
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

// A LoadError says that a commit does not load because of what is in it. Any
// other error of Load means that the commit could not be read.
type LoadError struct {
	// Problems are all that was found, warnings as well, in order.
	Problems Problems
}

// Error lists the problems, one on each line.
func (e *LoadError) Error() string { return e.Problems.Err().Error() }

// sort puts problems in order and drops repetitions: a base that several
// kustomizations are built on says everything several times.
func (ps Problems) sort() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path), a.Line-b.Line, strings.Compare(a.Field, b.Field),
			strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(a.Message, b.Message),
			strings.Compare(a.Kustomization, b.Kustomization), a.Document-b.Document,
		)
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool {
		b.Kustomization, b.Document = a.Kustomization, a.Document
		return a == b
	})
}
