// Package markdown writes texts of others into Markdown, where they have no meaning: no
// link, no mention, no HTML.
package markdown

import (
	"regexp"
	"strings"
	"unicode"
)

// Plain puts a text on one line without characters that control anything.
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

// longestRun is the length of the longest run of backticks in a text.
func longestRun(text string) int {
	longest := 0
	for _, run := range backticks.FindAllString(text, -1) {
		longest = max(longest, len(run))
	}
	return longest
}

// Code is a text as inline code, on one line.
func Code(text string) string {
	text = Plain(text)
	fence := strings.Repeat("`", longestRun(text)+1)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// CodeBlock is a text as a block of code in a language. The text ends with a line break.
func CodeBlock(language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	return fence + language + "\n" + text + fence + "\n"
}
