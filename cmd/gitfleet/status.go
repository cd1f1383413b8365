package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newStatus() *cobra.Command {
	var at connection
	var output string
	var watch, all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say on one screen how everything is",
		Long: `Status says which commit is in force and whose it is, how far each placement is
on its clusters, who waits for whom and why, which members do not answer, and
what waits for a person: commits that are refused, deletions that are held,
objects that somebody changed.

With --watch it goes on and shows each change: on a terminal in place, elsewhere
one after the other.`,
		Example: `  gitfleet status
  gitfleet status --watch
  gitfleet status -o json | jq '.placements[] | select(.clusters.failed)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: use text or json", output)
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			show := func(o *overview) error {
				if output == "json" {
					return writeJSON(out, o)
				}
				_, err := io.WriteString(out, strings.Join(o.text(pageOf(out), o.At.Add(o.age), all), "\n")+"\n")
				return err
			}
			switch {
			case watch && output == "text" && pageOf(out).terminal:
				return redraw(cmd.Context(), c, out, func(o *overview, p page, now time.Time) []string { return o.text(p, now, all) })
			case watch:
				return c.overviews().follow(cmd.Context(), onChange(show))
			}
			o, _, err := c.overviews()(cmd.Context(), "")
			if err != nil {
				return err
			}
			return show(o)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and show each change")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show everything, however much it is")
	return cmd
}

// overviewPath is where the daemon tells how things are.
const overviewPath = "/overview"

// tellOverview has a server answer at overviewPath. polled is when the repository
// was last asked, and when it last answered: polls that find nothing make no
// report. With nil it is what the report says.
func tellOverview(srv *server.Server, polled func() (last, success time.Time)) {
	srv.Tell("GET "+overviewPath, func(r *status.Report) any {
		o := newOverview(r)
		if polled != nil {
			o.Source.LastPoll, o.Source.LastSuccess = polled()
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
		said, err := json.Marshal(&timeless)
		if err != nil || string(said) == before {
			return true, err
		}
		before = string(said)
		return true, show(o)
	}
}
