package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// A Finding is the result of the trial of one object, if it says more than the plan.
type Finding struct {
	Object    api.ID
	Placement api.PlacementKey
	// Text says what would happen to the object. Detail is the message of the API server, or
	// the fields, if there are any. Both contain no values of fields.
	Text, Detail string
	Clusters     []string
}

// markdown returns the finding as one line of a comment.
func (f Finding) markdown() string {
	text := fmt.Sprintf("%s of %s on %s: %s", markdown.Code(f.Object.String()), markdown.Code(f.Placement.String()), firstNames(f.Clusters), f.Text)
	if f.Detail != "" {
		text += ": " + markdown.Code(shortened(f.Detail))
	}
	return text
}

// Findings returns the results that say more than the plan, refusals first.
func (a *Answers) Findings() []Finding {
	var out []Finding
	for _, refused := range []bool{true, false} {
		for _, m := range a.Members {
			for _, c := range m.Changes {
				text, detail := describeChange(c)
				if text == "" || refused != isRefused(c) {
					continue
				}
				i := slices.IndexFunc(out, func(f Finding) bool {
					return f.Object == c.ID && f.Placement == c.Placement && f.Text == text && f.Detail == detail
				})
				if i < 0 {
					i = len(out)
					out = append(out, Finding{Object: c.ID, Placement: c.Placement, Text: text, Detail: detail})
				}
				out[i].Clusters = append(out[i].Clusters, m.Cluster)
			}
		}
	}
	return out
}

// isTakenOver reports whether gitfleet would take over an object of others.
func isTakenOver(c member.Change) bool { return c.Effect == member.Changes && c.TakesOver }

// setsFieldsOfOthers reports whether fields of gitfleet's objects would be set that others own.
func setsFieldsOfOthers(c member.Change) bool {
	return c.Effect == member.Changes && !c.TakesOver && slices.ContainsFunc(c.Diffs, ownedByOthers)
}

// describeChange returns what the trial of an object says; empty if the plan says the same.
func describeChange(c member.Change) (text, detail string) {
	switch {
	case c.Effect == member.Fails:
		return "the API server refuses it", c.Message
	case c.Refused:
		return "it exists already and is not taken over", c.Message
	case c.Effect == member.Unknown:
		return "it cannot be tried", c.Message
	case c.Effect == member.Recreates:
		return "it is deleted and created anew", fieldNames(c.Diffs)
	case c.Effect == member.Differs:
		return "it stays as it is", c.Message
	case isTakenOver(c) && len(c.Diffs) > 0:
		return "it exists already and is taken over, with other values", fieldNames(c.Diffs)
	case isTakenOver(c):
		return "it exists already and is taken over as it is", ""
	case setsFieldsOfOthers(c):
		return "it sets fields that others own", fieldNames(slices.DeleteFunc(slices.Clone(c.Diffs), func(d api.Difference) bool { return !ownedByOthers(d) }))
	case c.Effect == member.Adds && c.Message != "":
		return "it cannot be tried yet", c.Message
	}
	return "", ""
}

// ownedByOthers reports whether somebody other than gitfleet owns a field.
func ownedByOthers(d api.Difference) bool {
	return slices.ContainsFunc(d.By, func(by api.Actor) bool { return by.Manager != api.FieldManager })
}

// fieldNames returns the paths of fields with their owners.
func fieldNames(all []api.Difference) string {
	var out []string
	for _, d := range all[:min(maxFields, len(all))] {
		text := d.Path
		if ownedByOthers(d) {
			text += " of " + d.By[0].String()
		}
		out = append(out, text)
	}
	if rest := len(all) - maxFields; rest > 0 {
		out = append(out, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, ", ")
}

// Summary returns the totals, and the members that did not answer.
func (a *Answers) Summary() string {
	objects, clusters := 0, 0
	var silent, parts []string
	for _, m := range a.Members {
		if m.Err != nil {
			silent = append(silent, m.Cluster)
			continue
		}
		objects += m.Objects
		clusters++
	}
	for _, part := range []struct {
		what string
		is   func(member.Change) bool
	}{
		{"refused", isRefused}, {"recreated", func(c member.Change) bool { return c.Effect == member.Recreates }}, {"taken over", isTakenOver}, {"with fields of others", setsFieldsOfOthers},
		{"that cannot be tried", func(c member.Change) bool { return c.Effect == member.Unknown }},
	} {
		if n := a.count(part.is); n > 0 || part.what == "refused" {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.what))
		}
	}
	var said []string
	if clusters > 0 {
		said = append(said, fmt.Sprintf("%s tried on %s: %s.", markdown.Count(objects, "object"), markdown.Count(clusters, "cluster"), strings.Join(parts, ", ")))
	}
	if len(silent) > 0 {
		said = append(said, "No answer from "+strings.Join(silent, ", ")+".")
	}
	if a.Rest > 0 {
		said = append(said, markdown.Count(a.Rest, "object")+" not tried.")
	}
	return strings.Join(said, " ")
}

// membersText returns the results of the trials, or a note that they are running.
func (r *Result) membersText(asking bool) string {
	const title = "**On the members** (server-side dry run)\n\n"
	switch {
	case asking:
		return title + "The dry run is in progress; its results will be here.\n\n"
	case r.Answers == nil:
		return ""
	}
	text := title + r.Answers.Summary() + "\n\n"
	if all := r.Answers.Findings(); len(all) > 0 {
		text += items(all, maxProblems, Finding.markdown) + "\n"
	}
	return text
}
