package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A style is how a text is set off on a terminal, as ANSI has it.
type style string

const (
	plainStyle style = ""
	bold       style = "1"
	dim        style = "2"
	red        style = "31"
	green      style = "32"
	yellow     style = "33"
	cyan       style = "36"
)

// A page is where a person reads: a terminal, or something that is none.
type page struct {
	terminal      bool
	colour        bool
	width, height int
}

// pageWidth is what a text is made for where nobody says how wide it may be.
const pageWidth = 80

// pageOf looks at where a command writes. Colours are for terminals, and only if
// $NO_COLOR is not set.
func pageOf(w io.Writer) page {
	p := page{width: pageWidth}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.terminal = os.Getenv("TERM") != "dumb"
	p.colour = p.terminal && os.Getenv("NO_COLOR") == ""
	if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		p.width, p.height = max(width, 40), height
	}
	return p
}

func (p page) paint(s style, text string) string {
	if !p.colour || s == plainStyle || text == "" {
		return text
	}
	return "\033[" + string(s) + "m" + text + "\033[0m"
}

// harmless is a text that came from elsewhere as it may be shown: what could
// move a terminal's cursor, or turn the direction of writing, is replaced.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// wide is how many columns a text takes that is not painted.
func wide(text string) int { return utf8.RuneCountInString(text) }

// fit makes a text exactly so wide: what is too long is cut at its end.
func fit(text string, width int) string {
	text = harmless(text)
	if n := wide(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	return shorten(text, width)
}

// shorten cuts what is too long, and shows that it did.
func shorten(text string, width int) string {
	text = harmless(text)
	if wide(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-1)]) + "…"
}

// print writes a line; on a terminal it is wrapped, and what follows the first
// line is indented.
func (p page) print(w io.Writer, line, indent string) error {
	if p.terminal && wide(line) > p.width {
		rest := strings.TrimLeft(line, " ")
		first := line[:len(line)-len(rest)]
		lines := wrap(rest, p.width-wide(indent))
		line = first + strings.Join(lines, "\n"+indent)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// wrap breaks a text into lines of a width, and words that are longer as well:
// nothing is cut.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = harmless(word)
		switch {
		case line == "":
			line = word
		case wide(line)+1+wide(word) <= width:
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
