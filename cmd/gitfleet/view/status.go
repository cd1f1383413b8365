// Package view has the commands that show the state of the fleet.
package view

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
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
what needs attention: refused commits, stopped rollouts, blocked deletions,
drift.

With --watch it continues and shows each change: in place on a terminal, one
after the other elsewhere.

Exit codes: 0 if nothing needs attention, also while updates are in progress; 1
if the newest commit is refused, the repository cannot be read, a placement is
not on every cluster that its policy asks for, or something of it has failed, is
held, refused or suspended, or a member does not answer, lacks permissions, is
claimed by another fleet, or has new credentials that cannot be used; 2 if the
daemon could not be asked.`,
		Example: `  gitfleet status
  gitfleet status --watch
  gitfleet status -o json | jq '.placements[] | select(.clusters.failed)'`,
		Args: cobra.NoArgs,
		RunE: at.WithClient(func(cmd *cobra.Command, _ []string, c *client.Client) error {
			w := cmd.OutOrStdout()
			show := func(o *overview.Overview) error {
				return out.Print(w, o, func() string { return strings.Join(o.Text(output.PageOf(w), o.At.Add(o.Age), all), "\n") + "\n" })
			}
			switch {
			case watch && out.IsText() && output.PageOf(w).Terminal:
				return redraw(cmd.Context(), c, w.(*output.Writer), func(o *overview.Overview, p output.Page, now time.Time) []string { return o.Text(p, now, all) })
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
			return exit.Attention
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
	for o, err := range c.Overviews().All(ctx, "") {
		if err != nil {
			return err
		}
		timeless := *o
		timeless.At, timeless.Source.LastPoll, timeless.Source.LastSuccess, timeless.Source.NextPoll = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		encoded, err := json.Marshal(&timeless)
		if err == nil && string(encoded) != before {
			before, err = string(encoded), show(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// redraw shows the result of draw for the newest overview in place on a terminal, until ctx is
// done; then it prints the last state below the command. While the daemon does not respond, for
// instance during a restart, that is shown and the request is retried.
func redraw(ctx context.Context, c *client.Client, out *output.Writer, draw func(o *overview.Overview, p output.Page, now time.Time) []string) error {
	newest, number, err := c.Overviews()(ctx, "")
	if err != nil {
		return err
	}
	type update struct {
		newest *overview.Overview
		err    error
	}
	updates := make(chan update)
	go func() {
		for o, err := range c.Overviews().All(ctx, number) {
			select {
			case updates <- update{o, err}:
			case <-ctx.Done():
			}
		}
	}()
	seen := time.Now()
	out.EnterScreen()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p := output.PageOf(out)
		lines := draw(newest, p, newest.At.Add(newest.Age+time.Since(seen)))
		out.WriteScreen(p, lines, err)
		select {
		case <-ctx.Done():
			out.LeaveScreen()
			_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if err = u.err; u.newest != nil {
				newest, seen = u.newest, time.Now()
			}
		case <-tick.C:
		}
	}
}
