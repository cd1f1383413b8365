package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// A finding is a problem, and the rule that it violates.
type finding struct {
	problem.Problem
	rule *rule
}

// A rule is one kind of finding of validate.
type rule struct{ id, name, text string }

// The rules. Their IDs are part of the output of validate and are never changed.
var (
	invalid  = &rule{"invalid", "Invalid", "The commit would be refused as a whole, and the last good one would stay in force."}
	doubtful = &rule{"doubtful", "Doubtful", "This is accepted, but is probably not what was meant."}
	unfit    = &rule{"unfit", "Unfit", "The commit would be accepted, but this part of it could not be carried out."}
	dead     = &rule{"dead-configuration", "DeadConfiguration", "This has no effect: nothing uses it, or it selects nothing."}

	blockedDeletions = &rule{"held-deletions", "HeldDeletions", "The commit would be accepted, but these deletions would wait for a commit that allows them."}

	ambiguousRename = &rule{"ambiguous-rename", "AmbiguousRename", "The commit would be accepted, but nothing of these placements would be placed or deleted until a commit makes clear which of them was renamed."}

	rules = []*rule{invalid, doubtful, unfit, dead, blockedDeletions, ambiguousRename}
)

func findingsOf(ps problem.List) []finding {
	var all []finding
	for _, p := range ps {
		r := invalid
		switch p.Severity {
		case problem.Warning:
			r = doubtful
		case problem.Failure:
			r, p.Severity = unfit, problem.Error
		}
		all = append(all, finding{p, r})
	}
	return all
}

// sortFindings sorts by position and removes duplicates.
func sortFindings(all []finding) []finding {
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path), a.Line-b.Line, strings.Compare(a.Field, b.Field),
			strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(a.Message, b.Message),
			strings.Compare(a.Kustomization, b.Kustomization), a.Document-b.Document,
		)
	})
	return slices.CompactFunc(all, func(a, b finding) bool { return a.Error() == b.Error() })
}

// countFindings counts errors and warnings.
func countFindings(all []finding) (errors, warnings int) {
	for _, f := range all {
		if f.Severity == problem.Warning {
			warnings++
		} else {
			errors++
		}
	}
	return errors, warnings
}

// text is path:line: field: message, on one line whatever the repository calls
// its files.
func (f finding) text() string {
	return output.Escape(f.Marked())
}

// message returns the text without the position.
func (f finding) message() string {
	p := f.Problem
	p.Path = ""
	return output.Escape(p.Error())
}

func writeText(w io.Writer, all []finding) error {
	for _, f := range all {
		if _, err := fmt.Fprintln(w, f.text()); err != nil {
			return err
		}
	}
	return nil
}

// validateVersion identifies the schema of validate in JSON and YAML. Fields of a version are
// never removed; new ones may be added.
const validateVersion = "gitfleet.dev/validate/v1"

type validateDocument struct {
	APIVersion string            `json:"apiVersion"`
	Commit     string            `json:"commit,omitempty"`
	Valid      bool              `json:"valid"`
	Errors     int               `json:"errors"`
	Warnings   int               `json:"warnings"`
	Problems   []findingDocument `json:"problems"`
}

type findingDocument struct {
	Path          string           `json:"path"`
	Line          int              `json:"line"`
	Document      int              `json:"document"`
	Kustomization string           `json:"kustomization,omitempty"`
	Field         string           `json:"field"`
	Severity      problem.Severity `json:"severity"`
	Rule          string           `json:"rule"`
	Message       string           `json:"message"`
}

// validateDocumentOf lists findings; the snapshot is nil if nothing was loaded.
func validateDocumentOf(s *hub.Snapshot, all []finding) validateDocument {
	d := validateDocument{APIVersion: validateVersion, Problems: []findingDocument{}}
	if s != nil {
		d.Commit = s.Commit.Hash
	}
	d.Errors, d.Warnings = countFindings(all)
	d.Valid = d.Errors == 0
	for _, f := range all {
		d.Problems = append(d.Problems, findingDocument{f.Path, f.Line, f.Document, f.Kustomization, f.Field, f.Severity, f.rule.id, f.Message})
	}
	return d
}

var (
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// writeGitHub writes the workflow commands by which GitHub annotates lines of a pull request.
func writeGitHub(w io.Writer, all []finding) error {
	for _, f := range all {
		properties := []string{"title=" + githubProperty.Replace("gitfleet: "+f.rule.id)}
		if f.Path != "" {
			properties = append(properties, "file="+githubProperty.Replace(output.Escape(f.Path)))
		}
		if f.Line > 0 {
			properties = append(properties, "line="+strconv.Itoa(f.Line))
		}
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", f.Severity, strings.Join(properties, ","), githubText.Replace(f.message())); err != nil {
			return err
		}
	}
	return nil
}
