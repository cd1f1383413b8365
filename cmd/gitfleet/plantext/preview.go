package plantext

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// A PullRequest is the daemon's response about a pull request.
type PullRequest struct {
	Text string `json:"text"`
	// Changes says whether merging it changes anything, and Failed whether it cannot be planned
	// or has problems.
	Changes bool `json:"changes"`
	Failed  bool `json:"failed"`
}

// Preview returns the whole plan of a pull request.
func Preview(p *review.Preview) PullRequest {
	var b strings.Builder
	printPreview(&b, p)
	return PullRequest{Text: b.String(), Changes: !p.None(), Failed: p.Failed()}
}

func printPreview(b *strings.Builder, p *review.Preview) {
	_, status := p.Status()
	fmt.Fprintf(b, "Merging %s into %s: %s\n\n", output.ShortHash(p.Head), output.ShortHash(p.Base), output.Escape(status))
	for _, problem := range p.Problems {
		fmt.Fprintf(b, "%s: %s\n", problem.Severity, output.Escape(problem.Error()))
	}
	if len(p.Problems) > 0 {
		fmt.Fprintln(b)
	}
	if p.Failed() && !p.Changes.Compared {
		return
	}
	printAnswers(b, p.Answers)
	Changes(b, p.Changes, p.Deletions())
	for _, r := range p.Rollouts {
		fmt.Fprintf(b, "%s: %s", r.Placement, r.Summary())
		if len(r.First) > 0 {
			b.WriteString("; first " + forecast.FewOf(r.First))
		}
		b.WriteString("\n")
	}
}

// printAnswers writes the results of trials on members; nothing if there were none.
func printAnswers(b *strings.Builder, a *review.Answers) {
	if a == nil {
		return
	}
	fmt.Fprintf(b, "On the members, by a dry run: %s\n", output.Escape(a.Summary()))
	for _, f := range a.Findings() {
		fmt.Fprintf(b, "  %s (%s) on %s: %s\n", f.Object, f.Placement, forecast.FewOf(f.Clusters), f.Text)
		if f.Detail != "" {
			fmt.Fprintf(b, "      %s\n", output.Escape(f.Detail))
		}
	}
	fmt.Fprintln(b)
}
