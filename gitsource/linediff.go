package gitsource

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// The bounds of a file that is compared line by line.
const (
	maxDiffBytes = mib
	maxDiffLines = 20_000
)

// A lineChange replaces lines of one text by lines of another. Lines are counted from zero, and
// the last one is not included.
type lineChange struct {
	from, to       int // the lines that are replaced
	newFrom, newTo int // the lines that replace them
}

// splitLines returns the lines of a text with their line breaks. ok is false for a text that is
// not compared line by line: a binary one, or one that is too large.
func splitLines(content []byte) (lines []string, ok bool) {
	if len(content) > maxDiffBytes || bytes.IndexByte(content, 0) >= 0 || bytes.Count(content, []byte("\n")) >= maxDiffLines {
		return nil, false
	}
	for line := range strings.Lines(string(content)) {
		lines = append(lines, line)
	}
	return lines, true
}

// diffLines returns the changes that make one list of lines another, in order. There is at least
// one equal line between two of them. ok is false if that is not found out before the deadline.
func diffLines(from, to []string, deadline time.Time) (changes []lineChange, ok bool) {
	left := time.Until(deadline)
	if left <= 0 {
		return nil, false
	}
	differ := diffmatchpatch.New()
	differ.DiffTimeout = left
	before, after, _ := differ.DiffLinesToRunes(strings.Join(from, ""), strings.Join(to, ""))
	at, newAt, open := 0, 0, false
	for _, d := range differ.DiffMainRunes(before, after, false) {
		n := utf8.RuneCountInString(d.Text)
		if d.Type == diffmatchpatch.DiffEqual {
			at, newAt, open = at+n, newAt+n, open && n == 0
			continue
		}
		if !open {
			changes, open = append(changes, lineChange{at, at, newAt, newAt}), true
		}
		c := &changes[len(changes)-1]
		if d.Type == diffmatchpatch.DiffDelete {
			at += n
			c.to = at
		} else {
			newAt += n
			c.newTo = newAt
		}
	}
	return changes, !time.Now().After(deadline) // a diff that was cut short replaces more than it has to
}
