// Package problem has the type of the problems that are found in a commit, with their
// positions.
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Severity is the effect of a problem on the commit.
type Severity string

// An Error refuses the commit. A Failure does not, but the object cannot be placed on any
// cluster. A Warning is only reported.
const (
	Error   Severity = "error"
	Failure Severity = "failure"
	Warning Severity = "warning"
)

// A Problem is a problem at one position of the repository.
type Problem struct {
	api.Origin
	// Field is a field path such as spec.policy.placementType; empty for the whole document.
	Field    string
	Severity Severity
	// Message says what is wrong and how to fix it.
	Message string
	// Undecrypted says that something encrypted with SOPS cannot be decrypted with the configured keys.
	Undecrypted bool
}

// Error returns path:line: field: message, without the parts that are not known, and the
// kustomization that includes the position.
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

// Marked returns the text of Error, with "(warning)" after a warning. It is for lists of errors
// and warnings.
func (p Problem) Marked() string {
	if p.Severity == Warning {
		return p.Error() + " (warning)"
	}
	return p.Error()
}

// A List is sorted by path, line and field.
type List []Problem

// Err returns the problems as one error; nil if there are none.
func (ps List) Err() error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// HasErrors reports whether any of the problems refuses the commit.
func (ps List) HasErrors() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}

// Errors returns the problems that refuse the commit, in the same order.
func (ps List) Errors() List {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != Error })
}

// Warnings returns the problems as warnings.
func (ps List) Warnings() List {
	all := slices.Clone(ps)
	for i := range all {
		all[i].Severity = Warning
	}
	return all
}

// Failures returns the problems with the errors as failures.
func (ps List) Failures() List {
	all := slices.Clone(ps)
	for i := range all {
		if all[i].Severity == Error {
			all[i].Severity = Failure
		}
	}
	return all
}

// ErrorsFirst returns the problems with the errors first, so that a shortened list contains the
// reason of a refusal.
func (ps List) ErrorsFirst() List {
	return slices.Concat(ps.Errors(), slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity == Error }))
}

// Summary returns one line: the first error and the number of other problems; empty if there
// are none.
func (ps List) Summary() string {
	switch ps = ps.ErrorsFirst(); len(ps) {
	case 0:
		return ""
	case 1:
		return ps[0].Marked()
	case 2:
		return ps[0].Marked() + " (and 1 more problem)"
	default:
		return fmt.Sprintf("%s (and %d more problems)", ps[0].Marked(), len(ps)-1)
	}
}

// Sort sorts problems and removes duplicates: the problems of a base are found once for each
// kustomization that includes it.
func (ps List) Sort() List {
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
