// Package view has the commands that show the state of the fleet.
package view

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewStatus returns the command status.
func NewStatus() *cobra.Command {
	var at client.Connection
	var out output.Format
	var watch, all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a summary of the fleet",
		Long: `Status shows the commit in force and its author, the progress of each placement
on its clusters, what is waiting and why, the members that do not answer, and
what needs attention: refused commits, stopped rollouts, held deletions, drift.

With --watch it continues and shows each change: in place on a terminal, one
after the other elsewhere.

Exit codes: 0 if nothing needs attention; 1 if the newest commit is refused, the
repository cannot be read, a rollout is stopped, deletions are held or refused,
permissions are missing on a member, or another fleet holds one; 2 if the daemon
could not be asked.`,
		Example: `  gitfleet status
  gitfleet status --watch
  gitfleet status -o json | jq '.placements[] | select(.clusters.failed)'`,
		Args: cobra.NoArgs,
		RunE: at.WithClient(func(cmd *cobra.Command, _ []string, c *client.Client) error {
			w := cmd.OutOrStdout()
			show := func(o *overview.Overview) error {
				return out.Print(w, o, strings.Join(o.Text(output.PageOf(w), o.At.Add(o.Age), all), "\n")+"\n")
			}
			switch {
			case watch && out.IsText() && output.PageOf(w).Terminal:
				return redraw(cmd.Context(), c, w, func(o *overview.Overview, p output.Page, now time.Time) []string { return o.Text(p, now, all) })
			case watch:
				return watchOverview(cmd.Context(), c, show)
			}
			o, _, err := c.Overviews()(cmd.Context(), "")
			if err != nil {
				return err
			}
			if err := show(o); err != nil || !o.NeedsAttention() {
				return err
			}
			return exit.Differences
		}),
	}
	out.Bind(cmd.Flags(), "text")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "continue, and show each change")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show everything, without limits")
	at.Bind(cmd.Flags())
	return cmd
}

// watchOverview calls show with each overview that differs from the previous one in more than its
// times.
func watchOverview(ctx context.Context, c *client.Client, show func(*overview.Overview) error) error {
	before := ""
	for o, err := range c.Overviews().All(ctx) {
		if err != nil {
			return err
		}
		timeless := *o
		timeless.At, timeless.Source.LastPoll, timeless.Source.LastSuccess = time.Time{}, time.Time{}, time.Time{}
		if o.Standby != nil {
			timeless.Standby = &status.Standby{Leader: o.Standby.Leader}
		}
		said, err := json.Marshal(&timeless)
		if err == nil && string(said) != before {
			before, err = string(said), show(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
