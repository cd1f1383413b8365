package hub

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A report gathers what is wrong with one document.
type report struct {
	origin api.Origin
	// root is the document, to find lines in; nil if only its origin is known.
	root *yaml.Node
	// offset is the number of lines before the text that root was read from.
	offset int
	limits Limits
	// top is where in the document the object stands that is spoken of: nil, or
	// an item of a list.
	top *fieldPath

	problems Problems
	// count is how many of them there are of each severity.
	count map[Severity]int
	// muted are fields whose neighbourhood is known to be wrong.
	muted []string
}

func (r *report) field(keys ...string) *fieldPath { return r.top.child(keys...) }

func (r *report) errorf(p *fieldPath, format string, args ...any) { r.add(Error, p, format, args...) }
func (r *report) warnf(p *fieldPath, format string, args ...any)  { r.add(Warning, p, format, args...) }

// maxProblems is how many errors are told of one document, and how many
// warnings. Nobody reads more, and a hostile one could have a hundred thousand.
const maxProblems = 100

// full reports whether no more errors are told.
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

// rulef reports a broken rule, unless something in the same mapping is already
// known to be wrong: a misspelt field is not missing as well.
func (r *report) rulef(p *fieldPath, format string, args ...any) {
	if !r.isMuted(p.String()) {
		r.errorf(p, format, args...)
	}
}

// mute keeps the rules silent about the mapping that holds p.
func (r *report) mute(p *fieldPath) { r.muted = append(r.muted, p.up.String()) }

func (r *report) isMuted(field string) bool {
	for _, m := range r.muted {
		if rest, ok := strings.CutPrefix(field, m); ok && (m == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// take adds the problems of a part of the document. However many warnings there
// are, they keep no error from being told.
func (r *report) take(part *report) {
	for _, p := range part.problems {
		if r.count[p.Severity] <= maxProblems {
			r.keep(p)
		}
	}
}

// item is the report of one item of a list in the document.
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
