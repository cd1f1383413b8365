package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// What a terminal is told: to use a screen of its own without a cursor, to come
// back from there, to begin at the top, to clear the rest of a line and of the
// screen.
const (
	enterScreen = "\033[?1049h\033[?25l"
	leaveScreen = "\033[?25h\033[?1049l"
	home        = "\033[H"
	clearLine   = "\033[K"
	clearRest   = "\033[J"
)

// A bulletin is a report, or why there is none.
type bulletin struct {
	report *status.Report
	err    error
}

// redraw shows on a terminal what draw makes of the newest report, in place,
// until ctx is done; then the last of it stays where the command began. A daemon
// that does not answer for a while, because it is restarted say, is said so and
// asked again.
func redraw(ctx context.Context, c *client, out io.Writer, draw func(r *status.Report, p page, now time.Time) []string) error {
	first, err := c.report(ctx)
	if err != nil {
		return err
	}
	updates := make(chan bulletin)
	go c.keepAsking(ctx, updates)
	now := bulletin{report: first}
	seen := time.Now()
	io.WriteString(out, enterScreen)
	for tick := time.NewTicker(time.Second); ; {
		p := pageOf(out)
		lines := draw(now.report, p, now.report.At.Add(time.Since(seen)))
		io.WriteString(out, screenful(p, lines, now.err))
		select {
		case <-ctx.Done():
			tick.Stop()
			_, err := io.WriteString(out, leaveScreen+strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if now.err = u.err; u.report != nil {
				now.report, seen = u.report, time.Now()
			}
		case <-tick.C:
		}
	}
}

// screenful is what replaces the screen before: no more lines than there is room
// for.
func screenful(p page, lines []string, trouble error) string {
	if trouble != nil {
		lines = append([]string{p.paint(red, shorten(strings.ReplaceAll(trouble.Error(), "\n", " "), p.width))}, lines...)
	}
	if most := p.height - 1; p.height > 0 && len(lines) > most {
		more := len(lines) - most + 1
		lines = append(lines[:max(0, most-1):max(0, most-1)], p.paint(dim, fmt.Sprintf("… %d more lines; make the window higher", more)))
	}
	return home + strings.Join(lines, clearLine+"\r\n") + clearLine + "\r\n" + clearRest
}

// retry is how long a daemon that does not answer is left alone.
const retry = time.Second

// keepAsking sends each new report, and each reason why there is none, until ctx
// is done.
func (c *client) keepAsking(ctx context.Context, updates chan<- bulletin) {
	after := ""
	for ctx.Err() == nil {
		r, number, err := c.next(ctx, after, "")
		if errors.Is(err, context.Canceled) {
			return
		}
		if err == nil && number == after {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case updates <- bulletin{r, err}:
		}
		if err == nil {
			after = number
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}
