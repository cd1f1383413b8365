package objects

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Commit is a parsed commit object. The parser is strict, so that the parsed fields are
// exactly those that the signature covers.
type Commit struct {
	Hash    plumbing.Hash
	Tree    plumbing.Hash
	Parents []plumbing.Hash
	Author  string
	Email   string
	// Time is the time of the committer.
	Time    time.Time
	Message string
	// Raw is the whole commit object.
	Raw []byte
}

// ParseCommit parses a commit whose header lines are in the only order that Git writes.
func ParseCommit(h plumbing.Hash, raw []byte) (*Commit, error) {
	c := &Commit{Hash: h, Raw: raw}
	header, message, found := bytes.Cut(raw, []byte("\n\n"))
	if !found {
		header = bytes.TrimSuffix(raw, []byte("\n"))
	}
	c.Message = string(message)
	lines := strings.Split(string(header), "\n")
	var err error
	if c.Tree, lines, err = takeHash(lines, "tree"); err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	for len(lines) > 0 && strings.HasPrefix(lines[0], "parent ") {
		var p plumbing.Hash
		if p, lines, err = takeHash(lines, "parent"); err != nil {
			return nil, fmt.Errorf("commit %s: %w", h, err)
		}
		c.Parents = append(c.Parents, p)
	}
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "author ") || !strings.HasPrefix(lines[1], "committer ") {
		return nil, fmt.Errorf("commit %s: author and committer do not follow the parents", h)
	}
	c.Author, c.Email, _ = parsePerson(strings.TrimPrefix(lines[0], "author "))
	_, _, c.Time = parsePerson(strings.TrimPrefix(lines[1], "committer "))
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

// parsePerson parses "Name <email> seconds zone". Old tools wrote it carelessly, and nothing
// depends on it, so that invalid parts are left empty.
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

// ParseHash parses a full hash. Abbreviations are refused, since they can become ambiguous.
func ParseHash(s string) (plumbing.Hash, error) {
	if len(s) != 40 || !plumbing.IsHash(s) {
		return plumbing.ZeroHash, fmt.Errorf("%q is not a whole commit hash of 40 hexadecimal digits", s)
	}
	return plumbing.NewHash(s), nil
}
