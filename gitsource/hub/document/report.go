package document

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Report collects the problems of one document.
type Report struct {
	// Origin is the position of the document, or of the item of a list.
	Origin api.Origin
	// Release identifies the chart of a kustomization that the object is from; empty for other objects.
	Release string
	// Root is the document, which is used to find lines; nil if only the origin is known.
	Root *yaml.Node
	// LinesBefore is the number of lines before the text that Root was parsed from.
	LinesBefore int
	// Limits are those of the file, for documents in the values of fields.
	Limits limit.Limits
	// Object is the position of the object in the document: nil, or the item of a list.
	Object *FieldPath

	// Problems are in the order in which they were found.
	Problems problem.List
	// count is the number of problems by severity.
	count map[problem.Severity]int
	// Lines are the lines of recorded fields.
	Lines map[string]int
	// Numbers are the fields that must be whole numbers and are written as a variable.
	Numbers []api.NumberField
	// muted are the fields of mappings for which a problem was reported.
	muted []string
}

// Field returns the path of a field of the object.
func (r *Report) Field(keys ...string) *FieldPath { return r.Object.Child(keys...) }

// Errorf reports an error at a field.
func (r *Report) Errorf(p *FieldPath, format string, args ...any) {
	r.Add(problem.Error, p, format, args...)
}

// Warnf reports a warning at a field.
func (r *Report) Warnf(p *FieldPath, format string, args ...any) {
	r.Add(problem.Warning, p, format, args...)
}

// MaxProblems limits the errors, and the warnings, of one document, since a hostile one could
// have a hundred thousand.
const MaxProblems = 100

// Full reports whether further problems of a severity are dropped.
func (r *Report) Full(severity problem.Severity) bool { return r.count[severity] > MaxProblems }

// Add reports a problem at a field, unless there are too many.
func (r *Report) Add(severity problem.Severity, p *FieldPath, format string, args ...any) {
	r.add(problem.Problem{Severity: severity}, p, format, args...)
}

// DropProblems forgets the problems that were reported so far, of a document that turns out not to be meant for the fleet.
func (r *Report) DropProblems() { r.Problems, r.count = nil, nil }

// AddUndecrypted is Add for something that cannot be decrypted; see problem.Problem.
func (r *Report) AddUndecrypted(p *FieldPath, format string, args ...any) {
	r.add(problem.Problem{Severity: problem.Failure, Undecrypted: true}, p, format, args...)
}

func (r *Report) add(found problem.Problem, p *FieldPath, format string, args ...any) {
	severity := found.Severity
	if r.Full(severity) {
		return
	}
	if r.count[severity] == MaxProblems {
		p, format, args = nil, "there are more %ss in this document than these %d", []any{severity, MaxProblems}
	}
	origin := r.Origin
	origin.Line = r.LineOf(p)
	found.Origin, found.Field, found.Message = origin, p.String(), fmt.Sprintf(format, args...)
	r.keep(found)
}

func (r *Report) keep(p problem.Problem) {
	if r.count == nil {
		r.count = map[problem.Severity]int{}
	}
	r.Problems = append(r.Problems, p)
	r.count[p.Severity]++
}

// Rulef reports a violated rule, unless a problem was reported in the same mapping: if a field
// is misspelt, the right one is not reported as missing as well.
func (r *Report) Rulef(p *FieldPath, format string, args ...any) {
	if !r.IsMuted(p.String()) {
		r.Errorf(p, format, args...)
	}
}

// Mute suppresses further rules for the mapping that contains p.
func (r *Report) Mute(p *FieldPath) { r.muted = append(r.muted, p.up.String()) }

// IsMuted reports whether rules for a field are suppressed.
func (r *Report) IsMuted(field string) bool {
	for _, m := range r.muted {
		if rest, ok := strings.CutPrefix(field, m); ok && (m == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Merge adds the problems of a part of the document. Warnings never displace errors.
func (r *Report) Merge(part *Report) {
	for _, p := range part.Problems {
		if !r.Full(p.Severity) {
			r.keep(p)
		}
	}
}

// Item returns the report of one item of a list in the document.
func (r *Report) Item(i int) *Report {
	sub := &Report{Origin: r.Origin, Release: r.Release, Root: r.Root, LinesBefore: r.LinesBefore, Limits: r.Limits, Object: r.Object.Child("items").At(i)}
	sub.Origin.Line = r.LineOf(sub.Object)
	return sub
}

// LineOf returns the line of a field in its file, or else that of the origin.
func (r *Report) LineOf(p *FieldPath) int {
	if r.Root == nil {
		return r.Origin.Line
	}
	_, line := Find(r.Root, p)
	return r.LinesBefore + line
}

// RecordLine records the line of a field, for problems that are found after the document was
// dropped.
func (r *Report) RecordLine(p *FieldPath) {
	if r.Lines == nil {
		r.Lines = map[string]int{}
	}
	r.Lines[p.String()] = r.LineOf(p)
}
