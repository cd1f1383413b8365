package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// printExplanation writes an explanation as text.
func printExplanation(w io.Writer, e *status.Explanation) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  (%s, %s)\n%s: %s\n", e.Placement, e.PlacementType, e.Origin, e.Scheduled.Reason, e.Scheduled.Message)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "warning: %s\n", p)
	}
	for _, c := range e.Clusters {
		printCluster(&b, c)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func printCluster(b *bytes.Buffer, c status.ExplainedCluster) {
	verdict := "- " + c.Cluster + " is not selected"
	if c.Selected {
		verdict = "+ " + c.Cluster + " is selected"
	}
	fmt.Fprintf(b, "\n%s\n  %s\n", verdict, c.Reason)
	say := func(label, text string) { fmt.Fprintf(b, "  %-14s%s\n", label, text) }
	if c.How != "" {
		say("how", c.How)
	}
	printFilters(say, c.Filters)
	printRequired(say, c.Required)
	for _, p := range c.Preferred {
		say("preferred", fmt.Sprintf("%+d  of %s: %s", p.Points, p.Preference, p.Reason))
	}
	for _, s := range c.Spread {
		say("spread", spreadText(s))
	}
	if c.Tie != "" {
		say("tie", c.Tie)
	}
	for _, change := range c.Change {
		say("to change", change)
	}
}

// printFilters writes each filter that rejects the cluster on a line, and the others on one.
func printFilters(say func(label, text string), filters []status.ExplainedFilter) {
	var passed []string
	for _, f := range filters {
		if f.Passed {
			passed = append(passed, f.Filter)
		}
	}
	if len(passed) > 0 {
		say("passes", strings.Join(passed, ", "))
	}
	for _, f := range filters {
		if !f.Passed {
			say("fails", f.Filter+": "+f.Reason)
		}
	}
}

func printRequired(say func(label, text string), terms []status.ExplainedTerm) {
	for i, t := range terms {
		of := "required"
		if len(terms) > 1 {
			of = fmt.Sprintf("required %d", i+1)
		}
		if len(t.Parts) == 0 {
			say(of, map[bool]string{true: "yes  any cluster", false: "no"}[t.Matches])
		}
		for _, p := range t.Parts {
			say(of, map[bool]string{true: "yes  ", false: "no   "}[p.Holds]+p.Demand+": "+p.Found)
		}
	}
}

func spreadText(s status.ExplainedSpread) string {
	if !s.Labeled {
		return fmt.Sprintf("%+d  of %s: the cluster has no such label, and is not counted", s.Score, s.Constraint)
	}
	what := fmt.Sprintf("would change the skew by %+d", s.Delta)
	if s.Violated {
		what = "would be too uneven"
	}
	return fmt.Sprintf("%+d  of %s: %q has %d, the least is %d and the most %d; one more %s", s.Score, s.Constraint, s.Domain, s.Count, s.Low, s.High, what)
}
