package main

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newStatus() *cobra.Command {
	var at connection
	var out format
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			show := func(o *overview) error {
				if !out.isText() {
					return out.write(w, o)
				}
				_, err := io.WriteString(w, strings.Join(o.text(pageOf(w), o.At.Add(o.age), all), "\n")+"\n")
				return err
			}
			switch {
			case watch && out.isText() && pageOf(w).terminal:
				return redraw(cmd.Context(), c, w, func(o *overview, p page, now time.Time) []string { return o.text(p, now, all) })
			case watch:
				return c.overviews().follow(cmd.Context(), onChange(show))
			}
			o, _, err := c.overviews()(cmd.Context(), "")
			if err != nil {
				return err
			}
			if err := show(o); err != nil || !o.needsAttention() {
				return err
			}
			return exitCode(exitDifferences)
		},
	}
	out.bind(cmd.Flags(), "text")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "continue, and show each change")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show everything, without limits")
	at.bind(cmd.Flags())
	return cmd
}

// overviewPath is where the daemon tells how things are.
const overviewPath = "/overview"

// tellOverview has a server answer at overviewPath. polled is when the repository
// was last asked, and when it last answered: polls that find nothing make no
// report. With nil it is what the report says. forgeTroubles is what cannot be done on the
// forge; nil if nothing is.
func tellOverview(srv *server.Server, polled func() (last, success time.Time), forgeTroubles func() []string) {
	srv.Tell("GET "+overviewPath, func(r *status.Report) any {
		o := newOverview(r)
		if polled != nil {
			o.Source.LastPoll, o.Source.LastSuccess = polled()
		}
		if forgeTroubles != nil {
			o.Forge = forgeTroubles()
		}
		return o
	})
}

// onChange shows an overview only if it says something else than the one before,
// apart from the time.
func onChange(show func(*overview) error) func(*overview) (bool, error) {
	before := ""
	return func(o *overview) (bool, error) {
		timeless := *o
		timeless.At, timeless.Source.LastPoll, timeless.Source.LastSuccess = time.Time{}, time.Time{}, time.Time{}
		if o.Standby != nil {
			timeless.Standby = &status.Standby{Leader: o.Standby.Leader}
		}
		said, err := json.Marshal(&timeless)
		if err != nil || string(said) == before {
			return true, err
		}
		before = string(said)
		return true, show(o)
	}
}
