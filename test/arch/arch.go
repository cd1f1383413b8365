// Package arch holds the house to its plan: who may import whom, what the pure
// rooms must not know, and how code looks.
//
// The rules are tables; docs/architecture.md tells them in words. Check reads
// the import graph and the syntax, compiles nothing, and says of each broken
// rule where it is broken and why it is one.
package arch

import (
	"cmp"
	"fmt"
	"slices"
)

// A Violation is one place where one rule is broken.
type Violation struct {
	// Path is relative to the root; Line is zero if it is about the whole file
	// or directory.
	Path string
	Line int
	// Rule is the name of the rule that is broken.
	Rule string
	// Reason says what is wrong, and what would be right.
	Reason string
}

// String gives the violation as compilers give theirs: place, reason, rule.
func (v Violation) String() string {
	if v.Line == 0 {
		return fmt.Sprintf("%s: %s [%s]", v.Path, v.Reason, v.Rule)
	}
	return fmt.Sprintf("%s:%d: %s [%s]", v.Path, v.Line, v.Reason, v.Rule)
}

// A rule is a name and what finds the places where it is broken.
type rule struct {
	name  string
	check func(*tree, report)
}

// A report takes one place where a rule is broken.
type report func(path string, line int, format string, args ...any)

// rules are all the rules of the house. Every one is broken by a fixture in
// testdata.
var rules = []rule{
	{"top-level", topLevel},
	{"rooms", rooms},
	{"libraries", libraries},
	{"leaves", leaves},
	{"pure", pure},
	{"clock", clock},
	{"metrics", metrics},
	{"programs", programs},
	{"names", names},
	{"aliases", aliases},
	{"comments", comments},
	{"length", length},
	{"unfinished", unfinished},
	{"workplace", workplace},
}

// Check reads the module whose root is dir, and returns where it breaks a
// rule, sorted by place. An error means that it could not be read.
func Check(dir string) ([]Violation, error) {
	t, err := read(dir)
	if err != nil {
		return nil, err
	}
	var out []Violation
	for _, r := range rules {
		r.check(t, func(path string, line int, format string, args ...any) {
			out = append(out, Violation{Path: path, Line: line, Rule: r.name, Reason: fmt.Sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(out, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(out), nil
}
