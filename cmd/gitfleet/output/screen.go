package output

import (
	"fmt"
	"io"
	"strings"
)

// Terminal control sequences: to use the alternate screen without a cursor, to leave it, to go
// to the top, and to clear the rest of a line and of the screen.
const (
	EnterScreen = "\033[?1049h\033[?25l"
	LeaveScreen = "\033[?25h\033[?1049l"
	home        = "\033[H"
	clearLine   = "\033[K"
	clearRest   = "\033[J"
)

// Screenful returns the output that replaces the screen, truncated to its height.
func Screenful(p Page, lines []string, trouble error) string {
	if trouble != nil {
		lines = append([]string{p.Paint(Red, Truncate(strings.ReplaceAll(trouble.Error(), "\n", " "), p.Width))}, lines...)
	}
	if most := p.Height - 1; p.Height > 0 && len(lines) > most {
		more := len(lines) - most + 1
		lines = append(lines[:max(0, most-1):max(0, most-1)], p.Paint(Dim, fmt.Sprintf("… %d more lines; make the window higher", more)))
	}
	return home + strings.Join(lines, clearLine+"\r\n") + clearLine + "\r\n" + clearRest
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
