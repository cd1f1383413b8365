package gitsource

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// mergeTime bounds the time for which one merge compares files line by line.
const mergeTime = 2 * time.Second

// mergeLines merges the changes that two texts make to a base, as Git does: both must leave at
// least one line between what they change, or make the same change. ok is false if they do not,
// or if the texts are not compared line by line.
func mergeLines(base, one, other []byte, deadline time.Time) (merged []byte, ok bool) {
	var texts [3][]string
	for i, content := range [][]byte{base, one, other} {
		if texts[i], ok = splitLines(content); !ok {
			return nil, false
		}
	}
	ours, ok := diffLines(texts[0], texts[1], deadline)
	if !ok {
		return nil, false
	}
	theirs, ok := diffLines(texts[0], texts[2], deadline)
	if !ok {
		return nil, false
	}
	a, b := &side{texts[1], ours, rangesOf(texts[0], texts[1], ours)}, &side{texts[2], theirs, rangesOf(texts[0], texts[2], theirs)}
	var out strings.Builder
	at := 0
	for len(a.changes)+len(b.changes) > 0 {
		next := a
		switch {
		case len(a.changes) == 0:
			next = b
		case len(b.changes) == 0:
		case a.ranges[0].touches(b.ranges[0]):
			if !a.equals(b) {
				return nil, false
			}
			b.drop()
		case b.changes[0].from < a.changes[0].from:
			next = b
		}
		c := next.changes[0]
		for _, line := range slices.Concat(texts[0][at:c.from], next.lines[c.newFrom:c.newTo]) {
			out.WriteString(line)
		}
		at = c.to
		next.drop()
	}
	for _, line := range texts[0][at:] {
		out.WriteString(line)
	}
	return []byte(out.String()), true
}

// A side has the changes of one text that are not merged yet.
type side struct {
	lines   []string
	changes []lineChange
	ranges  []lineRange
}

func (s *side) drop() { s.changes, s.ranges = s.changes[1:], s.ranges[1:] }

// equals reports whether the next changes of two sides are the same.
func (s *side) equals(other *side) bool {
	a, b := s.changes[0], other.changes[0]
	return a.from == b.from && a.to == b.to && slices.Equal(s.lines[a.newFrom:a.newTo], other.lines[b.newFrom:b.newTo])
}

// A lineRange is the part of the base in which a change can be made with the same result: a line that
// is added beside equal lines may as well be added below them. Two changes are merged only where
// it does not matter which of these a diff has chosen.
type lineRange struct{ from, to int }

func (r lineRange) touches(other lineRange) bool { return r.from <= other.to && other.from <= r.to }

// rangesOf returns the range of each change, which ends at the changes beside it.
func rangesOf(base, text []string, changes []lineChange) []lineRange {
	var out []lineRange
	for i, c := range changes {
		low, high := 0, len(base)
		if i > 0 {
			low = changes[i-1].to
		}
		if i+1 < len(changes) {
			high = changes[i+1].from
		}
		up, down := 0, 0
		switch {
		case c.from == c.to: // lines are added: those of the text move past equal ones of the base
			for c.from-up > low && base[c.from-up-1] == text[c.newTo-up-1] {
				up++
			}
			for c.to+down < high && base[c.to+down] == text[c.newFrom+down] {
				down++
			}
		case c.newFrom == c.newTo: // lines are removed
			for c.from-up > low && base[c.from-up-1] == base[c.to-up-1] {
				up++
			}
			for c.to+down < high && base[c.to+down] == base[c.from+down] {
				down++
			}
		}
		out = append(out, lineRange{c.from - up, c.to + down})
	}
	return out
}

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
