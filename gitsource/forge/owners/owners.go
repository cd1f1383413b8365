// Package owners finds the owners of files that a CODEOWNERS file names.
package owners

import (
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

// Of returns the users and teams that own some files of a tree, without "@" and in the order in which they are found. at
// are the places where the CODEOWNERS file may be; the first that is there counts. Of a file's rules the last one that
// matches counts, in each section. Owners that are e-mail addresses and lines that cannot be read are left out.
func Of(tree fs.FS, at, files []string) []string {
	for _, name := range at {
		if info, err := fs.Stat(tree, name); err != nil || info.Size() > limit {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			continue
		}
		return owners(parse(string(text)), files)
	}
	return nil
}

// A group is one section, or what comes before the first.
type group struct {
	name     string
	defaults []codeowners.Owner
	rules    codeowners.Ruleset
}

func parse(text string) []*group {
	groups := []*group{{}}
	now := groups[0]
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := section.FindStringSubmatch(line); found != nil {
			name := strings.ToLower(found[1])
			if i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name }); i >= 0 {
				now = groups[i] // sections of one name are one
			} else {
				now = &group{name: name}
				groups = append(groups, now)
			}
			if rule := parseLine("* " + found[2]); rule != nil && len(rule.Owners) > 0 {
				now.defaults = rule.Owners
			}
			continue
		}
		if rule := parseLine(line); rule != nil {
			if len(rule.Owners) == 0 {
				rule.Owners = now.defaults
			}
			now.rules = append(now.rules, *rule)
		}
	}
	return groups
}

// parseLine parses one line; nil if it has no rule that can be read.
func parseLine(line string) *codeowners.Rule {
	rules, err := codeowners.ParseFile(strings.NewReader(line))
	if err != nil || len(rules) != 1 {
		return nil
	}
	return &rules[0]
}

func owners(groups []*group, files []string) []string {
	var out []string
	for _, file := range files {
		for _, g := range groups {
			rule, err := g.rules.Match(file)
			if err != nil || rule == nil {
				continue
			}
			for _, o := range rule.Owners {
				if o.Type != codeowners.EmailOwner && !slices.Contains(out, o.Value) {
					out = append(out, o.Value)
				}
			}
		}
	}
	return out
}
