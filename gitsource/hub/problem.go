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

// An Error refuses the commit. A Failure is accepted with the commit, but what
// it names cannot be placed on any cluster. A Warning is only reported.
const (
	Error   Severity = "error"
	Failure Severity = "failure"
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

// Marked is Error, with "(warning)" behind what is only one: for lists that hold
// both.
func (p Problem) Marked() string {
	if p.Severity == Warning {
		return p.Error() + " (warning)"
	}
	return p.Error()
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

// Errors are those that refuse the commit, in the same order.
func (ps Problems) Errors() Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != Error })
}

// ErrorsFirst returns the problems with those that refuse the commit before the
// others, so that a shortened list still says why.
func (ps Problems) ErrorsFirst() Problems {
	sorted := slices.Clone(ps)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		switch {
		case (a.Severity == Error) == (b.Severity == Error):
			return 0
		case a.Severity == Error:
			return -1
		}
		return 1
	})
	return sorted
}

// Summary is one line: the first error, and how many more problems there are;
// empty if there are none.
func (ps Problems) Summary() string {
	switch ps = ps.ErrorsFirst(); len(ps) {
	case 0:
		return ""
	case 1:
		return ps[0].Marked()
	case 2:
		return ps[0].Marked() + " (and 1 more problem)"
	}
	return fmt.Sprintf("%s (and %d more problems)", ps[0].Marked(), len(ps)-1)
}

// A LoadError says that a commit does not load because of what is in it. Any
// other error of Load means that the commit could not be read.
type LoadError struct {
	// Problems are all that was found, warnings as well, in order.
	Problems Problems
}

// Error lists the problems, one on each line, and marks those that are only
// warnings.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Marked()
	}
	return strings.Join(lines, "\n")
}

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
