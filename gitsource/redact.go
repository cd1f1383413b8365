package gitsource

import (
	"regexp"
	"strings"
)

// urlSecrets are the parts of a URL that may have credentials: what is before the @, and the
// query.
var urlSecrets = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s"'?#]*@)?([^\s"'?#]*)(?:[?#][^\s"']*)?`)

// redact makes a text safe to show: one line of limited length, without credentials in URLs.
func redact(text string) string {
	return oneLine(urlSecrets.ReplaceAllString(text, "$1$2"))
}

const maxText = 1000

// oneLine replaces line breaks and control characters.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// Shown is the address of a repository as in a Status: without credentials. It is empty if it
// is not an address.
func Shown(address string) string {
	where, err := parseLocation(address)
	if err != nil {
		return ""
	}
	return where.String()
}
