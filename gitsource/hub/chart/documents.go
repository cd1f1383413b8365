package chart

import "regexp"

// documents returns the output of a template as Helm writes it into a release: it ends with a line break of its own, so that a block of
// text at its end does, too; and what follows a separator begins on the next line.
func documents(text []byte) []byte {
	return append(joined.ReplaceAll(text, []byte("---\n$1")), '\n')
}

// notes is the name of the file that Helm shows after an installation.
const notes = "NOTES.txt"

// joined matches the beginning of a document that follows its separator on the same line, as in {{- if .x }}---{{ end -}} and then text
// or a comment.
var joined = regexp.MustCompile(`(?m)^---[ \t]*(\S)`)
