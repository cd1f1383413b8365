package output

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Page is the destination of output: a terminal, or something else.
type Page struct {
	Terminal      bool
	Color         bool
	Width, Height int
}

// DefaultWidth is the default width.
const DefaultWidth = 80

// PageOf returns the page of a command's output, a Writer. Only terminals have colors, unless
// $NO_COLOR is set.
func PageOf(w io.Writer) Page {
	p := Page{Width: DefaultWidth}
	own, ok := w.(*Writer)
	if !ok || !own.terminal {
		return p
	}
	p.Terminal = os.Getenv("TERM") != "dumb"
	p.Color = p.Terminal && os.Getenv("NO_COLOR") == ""
	if width, height, err := own.size(); err == nil && width > 0 {
		p.Width, p.Height = max(width, 40), height
	}
	return p
}

// Paint returns a text with a style, for a Writer, if the page has colors.
func (p Page) Paint(s Style, text string) string {
	if !p.Color || s == Plain || text == "" {
		return text
	}
	return markerOf(s) + text + markerOf(reset)
}

// Sanitize replaces characters of a text that could move a terminal's cursor or change the
// direction of writing.
func Sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// Width returns the number of columns of a text, of which its styles take none.
func Width(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if _, style := styleOf(r); style {
			n--
		}
	}
	return n
}

// Fit pads or truncates a text to a width.
func Fit(text string, width int) string {
	text = Truncate(text, width)
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// Truncate truncates a text that is too long, with an ellipsis.
func Truncate(text string, width int) string {
	text = Sanitize(text)
	if Width(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-1)]) + "…"
}

// Fold breaks a line that is wider than a terminal between words, and indents all lines but the first. A word is left whole, so that
// it can be copied. Elsewhere the line is returned as it is.
func (p Page) Fold(line, indent string) string {
	if !p.Terminal || Width(line) <= p.Width {
		return line
	}
	var out strings.Builder
	column, spaces, words := 0, 0, 0
	for i, word := range strings.Split(line, " ") {
		if i > 0 {
			spaces++
		}
		if word == "" {
			continue
		}
		if words++; words > 1 && column+spaces+Width(word) > p.Width {
			out.WriteString("\n" + indent)
			column = Width(indent)
		} else {
			out.WriteString(strings.Repeat(" ", spaces))
			column += spaces
		}
		out.WriteString(word)
		column, spaces = column+Width(word), 0
	}
	return out.String()
}

// Hang returns a text after a head, in lines that are as far indented as the first, and of which each ends with a line break. What fits
// on one line is left as it is, and so is a single word, such as a path.
func Hang(head, text string, width int) string {
	lines := []string{Sanitize(text)}
	if room := width - Width(head); Width(text) > room && strings.Contains(text, " ") {
		lines = Wrap(text, room)
	}
	return head + strings.Join(lines, "\n"+strings.Repeat(" ", Width(head))) + "\n"
}

// Wrap breaks a text, and overlong words, into lines.
func Wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = Sanitize(word)
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			out = append(out, line)
			line = word
		}
		for runes := []rune(line); len(runes) > width; runes = []rune(line) {
			out = append(out, string(runes[:width]))
			line = string(runes[width:])
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// Escape quotes characters that a terminal or a log could misinterpret, such as line breaks
// and escape sequences, as in a Go string.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Count returns a count with its noun, which is in the plural unless n is 1.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// ShortHash returns the beginning of a commit hash.
func ShortHash(hash string) string { return hash[:min(len(hash), 8)] }

// Since returns the time between at and now in its largest units; a dash if at is zero.
func Since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at))
}
