package remote

import (
	"regexp"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// urlSecrets matches the parts of URLs that may contain credentials: user information and
// query.
var urlSecrets = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s"'?#]*@)?([^\s"'?#]*)(?:[?#][^\s"']*)?`)

// Redact makes a text safe to show: one line of limited length, without the credentials in
// URLs.
func Redact(text string) string {
	return oneLine(urlSecrets.ReplaceAllString(text, "$1$2"))
}

const maxText = 1000

func oneLine(text string) string { return mask.Line(text, maxText) }

// Shown returns the address of a repository without credentials, as a Status shows it. It is
// empty if the argument is not an address.
func Shown(address string) string {
	where, err := ParseLocation(address)
	if err != nil {
		return ""
	}
	return where.String()
}
