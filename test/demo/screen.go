package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A screen shows progress: on a terminal with a line that counts the seconds, otherwise line by
// line.
type screen struct {
	out    io.Writer
	live   bool // whether it is a terminal on which a line can be rewritten
	colour bool
	mu     sync.Mutex
}

func newScreen(out *os.File) *screen {
	live := isTerminal(out) && os.Getenv("TERM") != "dumb"
	return &screen{out: out, live: live, colour: live && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// A step is one action that is waited for.
type step struct {
	name  string // shown when it is done
	while string // shown while it runs
	hint  string // how long it usually takes
	do    func(context.Context) (note string, err error)
}

// step runs one step and shows how long it took.
func (s *screen) step(ctx context.Context, st step) error {
	began, done := time.Now(), make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() { s.count(st, began, done) })
	note, err := st.do(ctx)
	close(done)
	counting.Wait()
	word := s.paint(green, "ok")
	if err != nil {
		word = s.paint(red, "--")
		st.name = st.while
	}
	s.rewrite(fmt.Sprintf("  %s %7.1fs  %-22s %s", word, time.Since(began).Seconds(), st.name, s.paint(dim, note)), true)
	if err != nil {
		return fmt.Errorf("%s: %w", st.while, err)
	}
	return nil
}

// count shows the elapsed time of a step: every second if the line can be rewritten, otherwise
// now and then.
func (s *screen) count(st step, began time.Time, done <-chan struct{}) {
	wait, next := 3*time.Second, 30*time.Second
	if s.live {
		wait, next = 200*time.Millisecond, time.Second
	}
	for {
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		wait = next
		text := fmt.Sprintf("  .. %7.0fs  %s", time.Since(began).Seconds(), st.while)
		if st.hint != "" {
			text += s.paint(dim, " ("+st.hint+")")
		}
		s.rewrite(text, false)
	}
}

// rewrite replaces the counting line, if there is one.
func (s *screen) rewrite(line string, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line = strings.TrimRight(line, " ")
	switch {
	case !s.live:
		fmt.Fprintln(s.out, line)
	case final:
		fmt.Fprintf(s.out, "\r\033[K%s\n", line)
	default:
		fmt.Fprintf(s.out, "\r\033[K%s", line)
	}
}

func (s *screen) say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range lines {
		fmt.Fprintln(s.out, line)
	}
}

func (s *screen) title(text string) { s.say("", s.paint(bold, text), "") }

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (s *screen) paint(how, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\033[" + how + "m" + text + "\033[0m"
}
