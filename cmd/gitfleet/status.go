package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
			show := func(r *status.Report) error {
				o := newOverview(r)
				if output == "json" {
					return writeJSON(out, o)
				}
				_, err := io.WriteString(out, strings.Join(o.text(pageOf(out), r.At, all), "\n")+"\n")
				return err
			}
			switch {
			case watch && output == "text" && pageOf(out).terminal:
				return redraw(cmd.Context(), c, out, func(r *status.Report, p page, now time.Time) []string {
					return newOverview(r).text(p, now, all)
				})
			case watch:
				return c.follow(cmd.Context(), "", onChange(show))
			}
			r, err := c.report(cmd.Context())
			if err != nil {
				return err
			}
			return show(r)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and show each change")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show everything, however much it is")
	return cmd
}

// onChange shows a report only if it says something else than the one before,
// apart from the time. What is shown is set apart by an empty line, or in JSON
// is a document of its own.
func onChange(show func(*status.Report) error) func(*status.Report) (bool, error) {
	before := ""
	return func(r *status.Report) (bool, error) {
		o := newOverview(r)
		o.At, o.Source.LastPoll, o.Source.LastSuccess = time.Time{}, time.Time{}, time.Time{}
		said, err := json.Marshal(o)
		if err != nil || string(said) == before {
			return true, err
		}
		before = string(said)
		return true, show(r)
	}
}
