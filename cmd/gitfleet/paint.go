package main

import (
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

// wrap breaks a text into lines of a width, at most so many: what is left over
// is cut.
func wrap(text string, width, lines int) []string {
	var out []string
	words := strings.Fields(text)
	for len(words) > 0 {
		line := words[0]
		words = words[1:]
		if len(out) == lines-1 {
			return append(out, shorten(strings.Join(append([]string{line}, words...), " "), width))
		}
		for len(words) > 0 && wide(line)+1+wide(words[0]) <= width {
			line += " " + words[0]
			words = words[1:]
		}
		out = append(out, shorten(line, width))
	}
	return out
}
