package main

import (
	"fmt"
	"io"
)

// A progressLine shows what is waited for: on a terminal in place, elsewhere with a
// line for each change.
type progressLine struct {
	out  io.Writer
	page page
	last string
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, page: pageOf(out)}
}

// show replaces what was shown before. A text that says the same shows nothing.
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

// end leaves the last line where it is; what is written next begins a line of its own.
func (l *progressLine) end() {
	if l.page.terminal && l.last != "" {
		fmt.Fprintln(l.out)
		l.last = ""
	}
}
