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

// A style is the ANSI style of a text on a terminal.
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

// A page is where output goes: a terminal, or something else.
type page struct {
	terminal      bool
	colour        bool
	width, height int
}

// pageWidth is the default width.
const pageWidth = 80

// pageOf examines the output of a command. Colors are for terminals, unless $NO_COLOR is set.
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

// harmless replaces characters of a text that could move a terminal's cursor or change the
// direction of writing.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// wide returns the number of columns of an unstyled text.
func wide(text string) int { return utf8.RuneCountInString(text) }

// fit pads or truncates a text to a width.
func fit(text string, width int) string {
	text = harmless(text)
	if n := wide(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	return shorten(text, width)
}

// shorten truncates a text that is too long, with an ellipsis.
func shorten(text string, width int) string {
	text = harmless(text)
	if wide(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-1)]) + "…"
}

// print writes a line; on a terminal it is wrapped, and all but the first line are indented.
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

// wrap breaks a text, and overlong words, into lines.
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
