package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewEvents returns the command events.
func NewEvents() *cobra.Command {
	var at client.Connection
	var watch bool
	var newest int
	var out output.Format
	cmd := &cobra.Command{
		Use:   "events [PLACEMENT|CLUSTER]",
		Short: "Show recent events",
		Long: `Events are about placements, member clusters and the repository. They are listed
with the newest last. The daemon keeps the newest events, across restarts too;
history goes back further.

With --watch it continues and prints each new event.`,
		Example: `  gitfleet events
  gitfleet events crp/web --watch`,
		Args: cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			if newest < 0 {
				return fmt.Errorf("--newest %d: must not be negative", newest)
			}
			var of client.Subject
			if len(args) > 0 {
				var err error
				if of, err = c.Subject(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			w := cmd.OutOrStdout()
			if watch {
				return watchEvents(cmd.Context(), c.Reports(of), w, out)
			}
			r, err := c.Report(cmd.Context(), of)
			if err != nil {
				return err
			}
			events := last(newest, r.Events)
			switch {
			case !out.IsText():
				return out.Write(w, output.ListOf(eventsVersion, events))
			case len(events) == 0:
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "no events")
				return err
			}
			eventTable(events, r.At).Print(w, out)
			if more := len(r.Events) - len(events); more > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s not shown; --newest 0 shows all\n", output.Count(more, "older event"))
			}
			return nil
		}),
	}
	out.Bind(cmd.Flags(), "table")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "continue, and print each new event")
	cmd.Flags().IntVar(&newest, "newest", fewLines, "how many events to show at most, the last ones; 0 for all")
	at.Bind(cmd.Flags())
	return cmd
}

// eventsVersion identifies the schema of events in JSON. Fields of a version are never removed;
// new ones may be added.
const eventsVersion = "gitfleet.dev/events/v1"

func eventTable(events []status.Event, now time.Time) output.Table {
	t := output.Table{Header: []string{"LAST SEEN", "COUNT", "TYPE", "REASON", "OBJECT", "CLUSTER", "MESSAGE"}}
	for i := range events {
		e := &events[i]
		t.Rows = append(t.Rows, []string{
			duration.HumanDuration(max(0, now.Sub(e.Last))), strconv.Itoa(int(e.Count)), e.Type, e.Reason, e.About(), cmp.Or(e.Cluster, "-"), e.Message,
		})
	}
	return t
}

// watchEvents prints each event that is new or has occurred again.
func watchEvents(ctx context.Context, feed client.Feed[status.Report], w io.Writer, out output.Format) error {
	printed := map[status.EventKey]int32{}
	for r, err := range feed.All(ctx, "") {
		if err != nil {
			return err
		}
		counts := make(map[status.EventKey]int32, len(r.Events))
		for i := range r.Events {
			e := &r.Events[i]
			key := e.Key()
			if counts[key] = e.Count; printed[key] == e.Count {
				continue
			}
			if err := printEvent(w, e, out); err != nil {
				return err
			}
		}
		printed = counts
	}
	return nil
}

func printEvent(w io.Writer, e *status.Event, out output.Format) error {
	return out.Print(w, e, func() string {
		where := e.About()
		if e.Cluster != "" {
			where += " on " + e.Cluster
		}
		return fmt.Sprintf("%s  %-7s  %s  %s: %s\n", e.Last.UTC().Format(time.RFC3339), e.Type, e.Reason, where, output.Sanitize(e.Message))
	})
}
