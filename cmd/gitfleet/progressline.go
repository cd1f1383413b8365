package main

import (
	"fmt"
	"io"
)

// A progressLine shows what a command waits for: in place on a terminal, otherwise as a line
// for each change.
type progressLine struct {
	out  io.Writer
	page page
	last string
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, page: pageOf(out)}
}

// show replaces the line. An unchanged text prints nothing.
func (l *progressLine) show(text string) {
	text = harmless(text)
	switch {
	case text == l.last:
		return
	case l.page.terminal:
		fmt.Fprint(l.out, "\r"+shorten(text, l.page.width-1)+clearLine)
	default:
		fmt.Fprintln(l.out, text)
	}
	l.last = text
}

// end keeps the last line; further output begins on a new one.
func (l *progressLine) end() {
	if l.page.terminal && l.last != "" {
		fmt.Fprintln(l.out)
		l.last = ""
	}
}
