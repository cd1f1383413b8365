// Package markdown quotes text of others in Markdown, so that it creates no link, no mention
// and no HTML.
package markdown

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Plain returns a text on one line, in which characters that a reader does not see are escaped.
func Plain(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\n", "↵")
	if !strings.ContainsFunc(text, Invisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if Invisible(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blank are letters, marks and symbols of no width, or that look like a space.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, {Lo: 0x115f, Hi: 0x1160, Stride: 1}, {Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, {Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}},
}

// Invisible reports whether a reader does not see a character, sees it as a space, or sees the text around it in
// another order: a control or format character, such as U+202E and U+200B, or another one without a shape.
func Invisible(r rune) bool {
	return r != ' ' && unicode.In(r, unicode.C, unicode.Z, blank)
}

var backticks = regexp.MustCompile("`+")

// longestRun returns the length of the longest run of backticks in a text.
func longestRun(text string) int {
	longest := 0
	for _, run := range backticks.FindAllString(text, -1) {
		longest = max(longest, len(run))
	}
	return longest
}

// Code returns a text as inline code, on one line.
func Code(text string) string {
	text = Plain(text)
	fence := strings.Repeat("`", longestRun(text)+1)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// CodeBlock returns a text as a code block in a language. The result ends with a line break.
func CodeBlock(language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	return fence + language + "\n" + text + fence + "\n"
}

// List returns the first few names as inline code, and the number of the others.
func List(names []string, most int) string {
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, Code(name))
	}
	if rest := len(names) - most; rest > 0 {
		out = append(out, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, ", ")
}

// Count returns a number with its noun, which is in the plural unless the number is 1.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
