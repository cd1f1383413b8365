package output

import (
	"fmt"
	"io"
	"strings"
)

// Terminal control sequences: to use the alternate screen without a cursor, to leave it, to go
// to the top or to the begin of a line, and to clear the rest of a line and of the screen.
const (
	enterScreen = "\033[?1049h\033[?25l"
	leaveScreen = "\033[?25h\033[?1049l"
	home        = "\033[H"
	lineStart   = "\r"
	clearLine   = "\033[K"
	clearRest   = "\033[J"
)

// EnterScreen makes a terminal show a screen of its own, until LeaveScreen.
func (w *Writer) EnterScreen() error { return w.control(enterScreen) }

// LeaveScreen makes a terminal show again what it showed before EnterScreen.
func (w *Writer) LeaveScreen() error { return w.control(leaveScreen) }

// WriteScreen replaces the content of the screen by as many lines as fit on the page, below an
// error, if there is one.
func (w *Writer) WriteScreen(p Page, lines []string, err error) error {
	var frame strings.Builder // written at once, so that it does not flicker
	draw := Writer{to: &frame, terminal: true}
	draw.control(home)
	for _, line := range fitScreen(p, lines, err) {
		io.WriteString(&draw, line)
		draw.control(clearLine + "\r\n")
	}
	draw.control(clearRest)
	return w.control(frame.String())
}

// fitScreen returns as many lines as fit on a page without scrolling.
func fitScreen(p Page, lines []string, err error) []string {
	if err != nil {
		lines = append([]string{p.Paint(Red, Truncate(strings.ReplaceAll(err.Error(), "\n", " "), p.Width))}, lines...)
	}
	if most := p.Height - 1; p.Height > 0 && len(lines) > most {
		more := len(lines) - most + 1
		lines = append(lines[:max(0, most-1):max(0, most-1)], p.Paint(Dim, fmt.Sprintf("… %d more lines; make the window higher", more)))
	}
	return lines
}

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
		terminal := l.out.(*Writer)
		terminal.control(lineStart)
		io.WriteString(terminal, Truncate(text, l.page.Width-1))
		terminal.control(clearLine)
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
