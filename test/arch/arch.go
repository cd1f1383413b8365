// Package arch checks the source code against the rules of docs/architecture.md: which package may
// import which packages and libraries, what pure packages may not use, and how code looks.
//
// The rules are tables. Check reads the import graph and the syntax, compiles nothing, and returns
// where each rule is broken, with the reason.
package arch

import (
	"cmp"
	"fmt"
	"slices"
)

// A Violation is one position in the source where one rule is broken.
type Violation struct {
	// Path is relative to the root; Line is zero if it is about the whole file
	// or directory.
	Path string
	Line int
	// Rule is the name of the broken rule.
	Rule string
	// Reason says what is wrong, and what to do instead.
	Reason string
}

// String returns the violation as compilers print errors: position, reason, rule.
func (v Violation) String() string {
	if v.Line == 0 {
		return fmt.Sprintf("%s: %s [%s]", v.Path, v.Reason, v.Rule)
	}
	return fmt.Sprintf("%s:%d: %s [%s]", v.Path, v.Line, v.Reason, v.Rule)
}

// A rule has a name, and a check that reports where the rule is broken.
type rule struct {
	name  string
	check func(*tree, report)
}

// A report records one violation.
type report func(path string, line int, format string, args ...any)

// rules are all rules. For each there is a fixture in testdata that breaks it.
var rules = []rule{
	{"top-level", topLevel},
	{"packages", packages},
	{"libraries", libraries},
	{"dependencies", dependencies},
	{"pure", pure},
	{"clock", clock},
	{"metrics", metrics},
	{"programs", programs},
	{"output", standardOutput},
	{"names", names},
	{"aliases", aliases},
	{"comments", comments},
	{"length", length},
	{"size", size},
	{"circles", circles},
	{"messages", messages},
	{"unfinished", unfinished},
	{"local-paths", localPaths},
}

// Check reads the module whose root is dir and returns its violations, sorted by position. An error
// means that the module could not be read.
func Check(dir string) ([]Violation, error) {
	t, err := read(dir)
	if err != nil {
		return nil, err
	}
	return t.violations(), nil
}

func (t *tree) violations() []Violation {
	var out []Violation
	for _, r := range rules {
		r.check(t, func(path string, line int, format string, args ...any) {
			out = append(out, Violation{Path: path, Line: line, Rule: r.name, Reason: fmt.Sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(out, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(out)
}
