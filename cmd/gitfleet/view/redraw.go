package view

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
)

// redraw shows the result of draw for the newest overview in place on a terminal, until ctx is
// done; then it prints the last state below the command. While the daemon does not respond, for
// instance during a restart, that is shown and the request is retried.
func redraw(ctx context.Context, c *client.Client, out io.Writer, draw func(o *overview.Overview, p output.Page, now time.Time) []string) error {
	newest, _, err := c.Overviews()(ctx, "")
	if err != nil {
		return err
	}
	type update struct {
		newest  *overview.Overview
		trouble error
	}
	updates := make(chan update)
	go func() {
		for o, err := range c.Overviews().All(ctx) {
			select {
			case updates <- update{o, err}:
			case <-ctx.Done():
			}
		}
	}()
	seen, trouble := time.Now(), error(nil)
	io.WriteString(out, output.EnterScreen)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p := output.PageOf(out)
		lines := draw(newest, p, newest.At.Add(newest.Age+time.Since(seen)))
		io.WriteString(out, output.Screenful(p, lines, trouble))
		select {
		case <-ctx.Done():
			_, err := io.WriteString(out, output.LeaveScreen+strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if trouble = u.trouble; u.newest != nil {
				newest, seen = u.newest, time.Now()
			}
		case <-tick.C:
		}
	}
}
