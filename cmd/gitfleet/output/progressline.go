package output

import (
	"fmt"
	"io"
)

// A progressLine shows what a command waits for: on a terminal in place, otherwise as a new
// line for each change.
type progressLine struct {
	out  io.Writer
	page Page
	last string
}

// NewProgressLine returns an empty line.
func NewProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, page: PageOf(out)}
}

// Show replaces the line. An unchanged text prints nothing.
func (l *progressLine) Show(text string) {
	text = Sanitize(text)
	switch {
	case text == l.last:
		return
	case l.page.Terminal:
		fmt.Fprint(l.out, "\r"+Truncate(text, l.page.Width-1)+clearLine)
	default:
		fmt.Fprintln(l.out, text)
	}
	l.last = text
}

// End keeps the last line; further output begins on a new one.
func (l *progressLine) End() {
	if l.page.Terminal && l.last != "" {
		fmt.Fprintln(l.out)
		l.last = ""
	}
}
