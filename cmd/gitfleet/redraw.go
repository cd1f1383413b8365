package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// redraw shows what draw makes of the newest overview on a terminal, in place, until ctx is
// done; then the last state is printed where the command began. While the daemon does not
// answer, as during a restart, that is shown, and the request is retried.
func redraw(ctx context.Context, c *client, out io.Writer, draw func(o *overview, p output.Page, now time.Time) []string) error {
	ask := c.overviews()
	first, _, err := ask(ctx, "")
	if err != nil {
		return err
	}
	updates := make(chan update[overview])
	go ask.keep(ctx, updates)
	now := update[overview]{news: first}
	seen := time.Now()
	io.WriteString(out, output.EnterScreen)
	for tick := time.NewTicker(time.Second); ; {
		p := output.PageOf(out)
		lines := draw(now.news, p, now.news.At.Add(now.news.age+time.Since(seen)))
		io.WriteString(out, output.Screenful(p, lines, now.err))
		select {
		case <-ctx.Done():
			tick.Stop()
			_, err := io.WriteString(out, output.LeaveScreen+strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if now.err = u.err; u.news != nil {
				now.news, seen = u.news, time.Now()
			}
		case <-tick.C:
		}
	}
}
