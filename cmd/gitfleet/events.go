package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newEvents() *cobra.Command {
	var at connection
	var watch bool
	var output string
	cmd := &cobra.Command{
		Use:   "events [crp/NAME|rp/NAMESPACE/NAME]",
		Short: "Show what has happened lately",
		Long: `Events are told of placements, member clusters and the repository, the oldest
first. The newest are kept, also over restarts of the daemon; history goes
further back.

With --watch it goes on and prints each as it happens.`,
		Example: `  gitfleet events
  gitfleet events crp/web --watch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("-o %s: use table or json", output)
			}
			name := ""
			if len(args) > 0 {
				var err error
				if name, err = placementName(args[0]); err != nil {
					return err
				}
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if watch {
				return c.reports(part{placement: name}).follow(cmd.Context(), asTheyHappen(out, output))
			}
			r, err := c.only(cmd.Context(), part{placement: name})
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(out, append([]status.Event{}, r.Events...))
			}
			if len(r.Events) == 0 {
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "nothing has happened")
				return err
			}
			eventTable(r.Events, r.At).print(out)
			return nil
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and print each as it happens")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func eventTable(events []status.Event, now time.Time) table {
	t := table{header: []string{"LAST SEEN", "COUNT", "TYPE", "REASON", "OBJECT", "CLUSTER", "MESSAGE"}}
	for i := range events {
		e := &events[i]
		t.rows = append(t.rows, []string{
			duration.HumanDuration(max(0, now.Sub(e.Last))), strconv.Itoa(int(e.Count)), e.Type, e.Reason, e.About(), orDash(e.Cluster), e.Message,
		})
	}
	return t
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// asTheyHappen prints each event that is new or has happened again.
func asTheyHappen(w io.Writer, output string) func(*status.Report) (bool, error) {
	told := map[status.EventKey]int32{}
	return func(r *status.Report) (bool, error) {
		counts := make(map[status.EventKey]int32, len(r.Events))
		for i := range r.Events {
			e := &r.Events[i]
			key := e.Key()
			if counts[key] = e.Count; told[key] == e.Count {
				continue
			}
			if err := tellEvent(w, e, output); err != nil {
				return false, err
			}
		}
		told = counts
		return true, nil
	}
}

func tellEvent(w io.Writer, e *status.Event, output string) error {
	if output == "json" {
		return writeJSON(w, e)
	}
	where := e.About()
	if e.Cluster != "" {
		where += " on " + e.Cluster
	}
	_, err := fmt.Fprintf(w, "%s  %-7s  %s  %s: %s\n", e.Last.UTC().Format(time.RFC3339), e.Type, e.Reason, where, harmless(e.Message))
	return err
}
