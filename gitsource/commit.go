package gitsource

import (
	"strings"
	"unicode"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// publicCommit converts a commit for other packages: text becomes UTF-8, and control characters
// are replaced in everything that is shown.
func publicCommit(c *objects.Commit) Commit {
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	out := Commit{
		Hash:    c.Hash.String(),
		Author:  printable(c.Author),
		Email:   printable(c.Email),
		Subject: strings.TrimSpace(printable(subject)),
		Message: message,
		Time:    c.Time,
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.String())
	}
	return out
}

// printable replaces invalid UTF-8 and control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ReplaceAll(strings.TrimSuffix(text, "\r"), "\t", " "))
}
