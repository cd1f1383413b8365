package view

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewExplain returns the command explain.
func NewExplain() *cobra.Command {
	var at client.Connection
	var path string
	var in offline.Input
	var out output.Format
	cmd := &cobra.Command{
		Use:   "explain PLACEMENT [CLUSTER]",
		Short: "Explain why a placement selects a cluster, or does not",
		Long: `Explain shows how a scheduling decision was made: for each cluster the filters,
the parts of its score, ties and missing properties, and for a cluster that is
not selected what would have to change.

It asks the daemon. With --path it computes the decision for a checkout instead,
as plan does, offline.`,
		Example: `  gitfleet explain crp/web
  gitfleet explain rp/shop/web member-3 -o json
  gitfleet explain crp/web --path . --clusters ../clusters.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, cluster := args[0], api.ClusterName(strings.Join(args[1:], ""))
			var e *status.Explanation
			var err error
			switch {
			case path != "":
				e, err = explainCheckout(path, in, name, cluster)
			case in != offline.Input{}:
				err = errors.New("--clusters and --current need --path: the daemon uses its own state")
			default:
				e, err = askExplanation(cmd.Context(), &at, name, cluster)
			}
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return out.Print(w, e, func() string { return explanationText(e, output.PageOf(w)) })
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "explain the decision for this checkout, without the daemon")
	out.Bind(cmd.Flags(), "text")
	in.Bind(cmd.Flags())
	at.Bind(cmd.Flags())
	return cmd
}

// explainCheckout returns the explanation of a placement, on a cluster or on all, in a checkout.
func explainCheckout(path string, in offline.Input, placement, cluster string) (*status.Explanation, error) {
	s, err := offline.ReadDir(path, hub.Options{})
	if bad, ok := errors.AsType[*hub.LoadError](err); ok {
		return nil, fmt.Errorf("%s does not load:\n%w", path, bad)
	}
	if err != nil {
		return nil, err
	}
	o, err := in.Forecast(s)
	if err != nil {
		return nil, err
	}
	if placement, err = lookup.Placement(placement, lookup.Placements(o.Report)); err != nil {
		return nil, err
	}
	e, err := o.Report.Explain(placement, cluster)
	if err != nil {
		return nil, err
	}
	e.Scheduled.LastTransitionTime = metav1.Time{} // nothing has happened
	for i := range e.Clusters {
		e.Clusters[i].Waits = ""
	}
	return e, nil
}

// askExplanation requests the explanation from the daemon.
func askExplanation(ctx context.Context, at *client.Connection, placement, cluster string) (*status.Explanation, error) {
	c, err := at.Client()
	if err != nil {
		return nil, err
	}
	e := &status.Explanation{}
	name, err := c.Placement(ctx, placement)
	if err == nil {
		err = c.Get(ctx, "/explain", url.Values{"placement": {name}, "cluster": {cluster}}, e)
	}
	if _, silent := errors.AsType[*client.UnreachableError](err); silent {
		err = fmt.Errorf("%w\nWithout a daemon, use --path", err)
	}
	return e, err
}

// explanationText writes an explanation as text.
func explanationText(e *status.Explanation, p output.Page) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Fold(fmt.Sprintf("%s  (%s, %s)", e.Placement, e.PlacementType, e.Origin), "  "))
	fmt.Fprintln(&b, p.Fold(e.Scheduled.Reason+": "+e.Scheduled.Message, "  "))
	for _, problem := range e.Problems {
		fmt.Fprintln(&b, p.Fold("warning: "+problem, "  "))
	}
	for _, c := range e.Clusters {
		printCluster(&b, c, p)
	}
	return b.String()
}

func printCluster(b *strings.Builder, c status.ExplainedCluster, p output.Page) {
	verdict := "- " + c.Cluster + " is not selected"
	if c.Selected {
		verdict = "+ " + c.Cluster + " is selected"
	}
	fmt.Fprintf(b, "\n%s\n%s\n", verdict, p.Fold("  "+c.Reason, "    "))
	row := func(label, text string) {
		fmt.Fprintln(b, p.Fold(fmt.Sprintf("  %-14s%s", label, text), strings.Repeat(" ", 16)))
	}
	if c.Waits != "" {
		row("rollout", c.Waits)
	}
	if c.How != "" {
		row("how", c.How)
	}
	printFilters(row, c.Filters)
	printRequired(row, c.Required)
	for _, p := range c.Preferred {
		row("preferred", fmt.Sprintf("%+d  of %s: %s", p.Points, p.Preference, p.Reason))
	}
	for _, s := range c.Spread {
		row("spread", spreadText(s))
	}
	if c.Tie != "" {
		row("tie", c.Tie)
	}
	for _, change := range c.Change {
		row("to change", change)
	}
}

// printFilters writes each filter that rejects the cluster on a line, and the others on one.
func printFilters(row func(label, text string), filters []placement.Verdict) {
	var passed []string
	for _, f := range filters {
		if f.Passed {
			passed = append(passed, f.Filter)
		}
	}
	if len(passed) > 0 {
		row("passes", strings.Join(passed, ", "))
	}
	for _, f := range filters {
		if !f.Passed {
			row("fails", f.Filter+": "+f.Reason)
		}
	}
}

func printRequired(row func(label, text string), terms []placement.TermVerdict) {
	for i, t := range terms {
		of := "required"
		if len(terms) > 1 {
			of = fmt.Sprintf("required %d", i+1)
		}
		if len(t.Parts) == 0 {
			row(of, map[bool]string{true: "yes  any cluster", false: "no"}[t.Matches])
		}
		for _, p := range t.Parts {
			row(of, map[bool]string{true: "yes  ", false: "no   "}[p.Holds]+p.Demand+": "+p.Found)
		}
	}
}

func spreadText(s placement.SpreadVerdict) string {
	if !s.Labeled {
		return fmt.Sprintf("%+d  of %s: the cluster has no such label, and is not counted", s.Score, s.Constraint)
	}
	what := fmt.Sprintf("would change the skew by %+d", s.Delta)
	if s.Violated {
		what = "would be too uneven"
	}
	return fmt.Sprintf("%+d  of %s: %q has %d, the least is %d and the most %d; one more %s", s.Score, s.Constraint, s.Domain, s.Count, s.Low, s.High, what)
}
