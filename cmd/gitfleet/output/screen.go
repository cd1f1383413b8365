package output

import (
	"fmt"
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
