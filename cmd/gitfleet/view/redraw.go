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
	ask := c.Overviews()
	first, _, err := ask(ctx, "")
	if err != nil {
		return err
	}
	updates := make(chan client.Update[overview.Overview])
	go ask.Stream(ctx, updates)
	now := client.Update[overview.Overview]{News: first}
	seen := time.Now()
	io.WriteString(out, output.EnterScreen)
	for tick := time.NewTicker(time.Second); ; {
		p := output.PageOf(out)
		lines := draw(now.News, p, now.News.At.Add(now.News.Age+time.Since(seen)))
		io.WriteString(out, output.Screenful(p, lines, now.Err))
		select {
		case <-ctx.Done():
			tick.Stop()
			_, err := io.WriteString(out, output.LeaveScreen+strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if now.Err = u.Err; u.News != nil {
				now.News, seen = u.News, time.Now()
			}
		case <-tick.C:
		}
	}
}
