package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
)

// A commit is a commit object, parsed strictly: its fields and its signature cover the same
// bytes.
type commit struct {
	hash    plumbing.Hash
	tree    plumbing.Hash
	parents []plumbing.Hash
	author  string
	email   string
	time    time.Time
	message string
	raw     []byte
}

// parseCommit parses the header lines in the only order that Git writes.
func parseCommit(h plumbing.Hash, raw []byte) (*commit, error) {
	c := &commit{hash: h, raw: raw}
	header, message, found := bytes.Cut(raw, []byte("\n\n"))
	if !found {
		header = bytes.TrimSuffix(raw, []byte("\n"))
	}
	c.message = string(message)
	lines := strings.Split(string(header), "\n")
	var err error
	if c.tree, lines, err = takeHash(lines, "tree"); err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	for len(lines) > 0 && strings.HasPrefix(lines[0], "parent ") {
		var p plumbing.Hash
		if p, lines, err = takeHash(lines, "parent"); err != nil {
			return nil, fmt.Errorf("commit %s: %w", h, err)
		}
		c.parents = append(c.parents, p)
	}
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "author ") || !strings.HasPrefix(lines[1], "committer ") {
		return nil, fmt.Errorf("commit %s: author and committer do not follow the parents", h)
	}
	c.author, c.email, _ = parsePerson(strings.TrimPrefix(lines[0], "author "))
	_, _, c.time = parsePerson(strings.TrimPrefix(lines[1], "committer "))
	return c, nil
}

func takeHash(lines []string, key string) (plumbing.Hash, []string, error) {
	if len(lines) == 0 {
		return plumbing.ZeroHash, nil, fmt.Errorf("has no %s", key)
	}
	value, ok := strings.CutPrefix(lines[0], key+" ")
	if !ok || len(value) != 40 || !plumbing.IsHash(value) {
		return plumbing.ZeroHash, nil, fmt.Errorf("has no %s where it should be", key)
	}
	return plumbing.NewHash(value), lines[1:], nil
}

// parsePerson parses "Name <email> seconds zone". Old tools wrote it carelessly, and nothing is
// decided by it, so invalid parts are left empty.
func parsePerson(s string) (name, email string, when time.Time) {
	open := strings.IndexByte(s, '<')
	end := strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(s), "", time.Time{}
	}
	name, email = strings.TrimSpace(s[:open]), s[open+1:end]
	fields := strings.Fields(s[end+1:])
	if len(fields) == 0 {
		return name, email, time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return name, email, time.Time{}
	}
	when = time.Unix(seconds, 0).UTC()
	if len(fields) > 1 {
		if zone, err := time.Parse("-0700", fields[1]); err == nil {
			when = when.In(zone.Location())
		}
	}
	return name, email, when
}

// public returns the commit for other packages. Text is converted to UTF-8, and control
// characters are replaced in everything that is shown.
func (c *commit) public() Commit {
	message := strings.ToValidUTF8(c.message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	out := Commit{
		Hash:    c.hash.String(),
		Author:  printable(c.author),
		Email:   printable(c.email),
		Subject: strings.TrimSpace(printable(subject)),
		Message: message,
		Time:    c.time,
	}
	for _, p := range c.parents {
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

var errTagDepth = errors.New("tag of a tag of a tag: more than 8 deep")

// parseTag returns the target of an annotated tag.
func parseTag(raw []byte) (target plumbing.Hash, kind string, err error) {
	lines := strings.SplitN(string(raw), "\n", 3)
	target, lines, err = takeHash(lines, "object")
	if err != nil {
		return target, "", err
	}
	if len(lines) == 0 {
		return target, "", errors.New("has no type")
	}
	kind, ok := strings.CutPrefix(lines[0], "type ")
	if !ok {
		return target, "", errors.New("has no type where it should be")
	}
	return target, kind, nil
}
