// Package owners finds the owners of files that a CODEOWNERS file names.
package owners

import (
	"bytes"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"
)

// limit is the maximum size of a CODEOWNERS file, which is that of the forges.
const limit = 3 << 20

// section is the line that begins a section of a file for GitLab: its name, how many approvals it needs, and its owners,
// which are those of the lines that name none. A "^" says that it is optional.
var section = regexp.MustCompile(`^\^?\[([^\]]+)\](?:\[\d+\])?(.*)$`)

// maxLines limits the lines of a file that has rules, each of which takes some 10 µs to read.
const maxLines = 50_000

// Of returns the users and teams that own some files of a tree, without "@" and in the order in which they are found. at
// are the places where the CODEOWNERS file may be; the first that is there counts. Of a file's rules the last one that
// matches counts, in each section. Owners that are e-mail addresses and lines that cannot be read are left out. A file that is
// larger than forges allow, or has too many lines, names nobody.
func Of(tree fs.FS, at, files []string) []string {
	for _, name := range at {
		if info, err := fs.Stat(tree, name); err != nil || info.Size() > limit {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			continue
		}
		if bytes.Count(text, []byte("\n")) > maxLines {
			return nil
		}
		return owners(parse(string(text), files), len(files))
	}
	return nil
}

// A group is one section, or what comes before the first.
type group struct {
	name     string
	defaults []codeowners.Owner
	// owners are those of the last rule that matches each file.
	owners [][]codeowners.Owner
}

// parse returns the groups with the owners of some files. It keeps no rule, since a compiled one is a hundred times as large as its
// line.
func parse(text string, files []string) []*group {
	newGroup := func(name string) *group { return &group{name: name, owners: make([][]codeowners.Owner, len(files))} }
	groups := []*group{newGroup("")}
	named := map[string]*group{}
	now := groups[0]
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := section.FindStringSubmatch(line); found != nil {
			name := strings.ToLower(found[1])
			if now = named[name]; now == nil { // sections of one name are one
				now = newGroup(name)
				named[name] = now
				groups = append(groups, now)
			}
			if rule := parseLine("* " + found[2]); rule != nil && len(rule.Owners) > 0 {
				now.defaults = rule.Owners
			}
			continue
		}
		rule := parseLine(line)
		if rule == nil {
			continue
		}
		if len(rule.Owners) == 0 {
			rule.Owners = now.defaults
		}
		for i, file := range files {
			if matches, err := rule.Match(file); err == nil && matches {
				now.owners[i] = rule.Owners
			}
		}
	}
	return groups
}

// parseLine parses one line; nil if it has no rule that can be read. The pattern / matches nothing, and the library panics when a
// file is compared with it.
func parseLine(line string) *codeowners.Rule {
	rules, err := codeowners.ParseFile(strings.NewReader(line))
	if err != nil || len(rules) != 1 || rules[0].RawPattern() == "/" {
		return nil
	}
	return &rules[0]
}

func owners(groups []*group, files int) []string {
	var out []string
	for i := range files {
		for _, g := range groups {
			for _, o := range g.owners[i] {
				if o.Type != codeowners.EmailOwner && !slices.Contains(out, o.Value) {
					out = append(out, o.Value)
				}
			}
		}
	}
	return out
}
