package hub

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A report collects the problems of one document.
type report struct {
	origin api.Origin
	// root is the document, to find lines in it; nil if only its origin is known.
	root *yaml.Node
	// offset is the number of lines before the text that root was parsed from.
	offset int
	limits Limits
	// top is the position of the object in the document: nil, or an item of a list.
	top *fieldPath

	problems Problems
	// count is the number of problems by severity.
	count map[Severity]int
	// muted are fields near a reported problem.
	muted []string
}

func (r *report) field(keys ...string) *fieldPath { return r.top.child(keys...) }

func (r *report) errorf(p *fieldPath, format string, args ...any) { r.add(Error, p, format, args...) }
func (r *report) warnf(p *fieldPath, format string, args ...any)  { r.add(Warning, p, format, args...) }

// maxProblems limits the errors, and the warnings, of one document. A hostile one could have a
// hundred thousand.
const maxProblems = 100

// full reports whether further errors are dropped.
func (r *report) full() bool { return r.count[Error] > maxProblems }

func (r *report) add(severity Severity, p *fieldPath, format string, args ...any) {
	if r.count[severity] > maxProblems {
		return
	}
	if r.count[severity] == maxProblems {
		p, format, args = nil, "there are more %ss in this document than these %d", []any{severity, maxProblems}
	}
	origin := r.origin
	if r.root != nil {
		origin.Line = r.offset + lineOf(r.root, p)
	}
	r.keep(Problem{Origin: origin, Field: p.String(), Severity: severity, Message: fmt.Sprintf(format, args...)})
}

func (r *report) keep(p Problem) {
	if r.count == nil {
		r.count = map[Severity]int{}
	}
	r.problems = append(r.problems, p)
	r.count[p.Severity]++
}

// rulef reports a violated rule, unless a problem in the same mapping was reported: a misspelt
// field is not missing as well.
func (r *report) rulef(p *fieldPath, format string, args ...any) {
	if !r.isMuted(p.String()) {
		r.errorf(p, format, args...)
	}
}

// mute suppresses further rules for the mapping that has p.
func (r *report) mute(p *fieldPath) { r.muted = append(r.muted, p.up.String()) }

func (r *report) isMuted(field string) bool {
	for _, m := range r.muted {
		if rest, ok := strings.CutPrefix(field, m); ok && (m == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// merge adds the problems of a part of the document. Warnings do not displace errors.
func (r *report) merge(part *report) {
	for _, p := range part.problems {
		if r.count[p.Severity] <= maxProblems {
			r.keep(p)
		}
	}
}

// item returns the report of one item of a list in the document.
func (r *report) item(i int) *report {
	sub := &report{origin: r.origin, root: r.root, offset: r.offset, limits: r.limits, top: r.top.child("items").at(i)}
	if r.root != nil {
		sub.origin.Line = r.offset + lineOf(r.root, sub.top)
	}
	return sub
}

// lineOf is the line of a field in its file; zero if it is not known.
func (r *report) lineOf(p *fieldPath) int {
	if r.root == nil {
		return r.origin.Line
	}
	return r.offset + lineOf(r.root, p)
}
