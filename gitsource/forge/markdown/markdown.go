// Package markdown quotes text of others in Markdown, so that it creates no link, no mention
// and no HTML.
package markdown

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Plain returns a text on one line without control characters.
func Plain(text string) string {
	text = strings.ReplaceAll(text, "\n", "↵")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
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
