package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Terminal control sequences: to use the alternate screen without a cursor, to leave it, to go
// to the top, and to clear the rest of a line and of the screen.
const (
	enterScreen = "\033[?1049h\033[?25l"
	leaveScreen = "\033[?25h\033[?1049l"
	home        = "\033[H"
	clearLine   = "\033[K"
	clearRest   = "\033[J"
)

// redraw shows what draw makes of the newest overview on a terminal, in place, until ctx is
// done; then the last state is printed where the command began. While the daemon does not
// answer, as during a restart, that is shown, and the request is retried.
func redraw(ctx context.Context, c *client, out io.Writer, draw func(o *overview, p page, now time.Time) []string) error {
	ask := c.overviews()
	first, _, err := ask(ctx, "")
	if err != nil {
		return err
	}
	updates := make(chan update[overview])
	go ask.keep(ctx, updates)
	now := update[overview]{news: first}
	seen := time.Now()
	io.WriteString(out, enterScreen)
	for tick := time.NewTicker(time.Second); ; {
		p := pageOf(out)
		lines := draw(now.news, p, now.news.At.Add(now.news.age+time.Since(seen)))
		io.WriteString(out, screenful(p, lines, now.err))
		select {
		case <-ctx.Done():
			tick.Stop()
			_, err := io.WriteString(out, leaveScreen+strings.Join(lines, "\n")+"\n")
			return err
		case u := <-updates:
			if now.err = u.err; u.news != nil {
				now.news, seen = u.news, time.Now()
			}
		case <-tick.C:
		}
	}
}

// screenful returns what replaces the screen, truncated to its height.
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
