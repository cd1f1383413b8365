package tree

import (
	"path"
	"strings"
	"unicode/utf8"
)

// IgnoreFile is the name of files that list paths not to be read, in the syntax of .gitignore.
// One may be in any directory, and applies to that directory and everything below.
const IgnoreFile = ".gitfleetignore"

// Patterns are the ignore patterns that apply to one directory. Nil ignores nothing.
type Patterns struct {
	up    *Patterns
	dir   string // the directory of the patterns; empty for the root
	rules []ignoreRule
	size  int64
}

type ignoreRule struct {
	// segments are the parts between slashes, in the syntax of path.Match; "**" is any number of
	// directories.
	segments []string
	// anywhere says that the pattern has no slash and matches at every depth.
	anywhere bool
	negated  bool
	dirOnly  bool
}

// With returns the patterns for dir, given the text of its ignore file.
func (g *Patterns) With(dir, text string) *Patterns {
	if dir == "." {
		dir = ""
	}
	below := &Patterns{up: g, dir: dir, size: g.Size() + int64(len(text))}
	for line := range strings.Lines(text) {
		if rule, ok := parseIgnore(strings.TrimRight(line, "\r\n")); ok {
			below.rules = append(below.rules, rule)
		}
	}
	return below
}

// Size returns how many bytes of patterns apply, with which each name is compared.
func (g *Patterns) Size() int64 {
	if g == nil {
		return 0
	}
	return g.size
}

func parseIgnore(line string) (ignoreRule, bool) {
	line = trimBlanks(line)
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false
	}
	var rule ignoreRule
	if line[0] == '!' {
		rule.negated, line = true, line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		rule.dirOnly, line = true, rest
	}
	rule.anywhere = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return ignoreRule{}, false
	}
	rule.segments = segmentsOf(line)
	return rule, true
}

// segmentsOf splits a pattern at its slashes, which may be escaped.
func segmentsOf(pattern string) []string {
	var all []string
	for segment := range strings.SplitSeq(slashes.Replace(pattern), "/") {
		all = append(all, goPattern(segment))
	}
	return all
}

// slashes removes the backslash of escaped slashes, and of nothing else.
var slashes = strings.NewReplacer(`\\`, `\\`, `\/`, `/`)

// trimBlanks removes trailing blanks that are not escaped.
func trimBlanks(s string) string {
	for strings.HasSuffix(s, " ") {
		if rest := s[:len(s)-1]; (len(rest)-len(strings.TrimRight(rest, `\`)))%2 == 1 {
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}

// Ignores reports whether an entry of a directory is ignored. The last pattern that matches
// decides. Ignore files closer to the entry take precedence.
func (g *Patterns) Ignores(name string, isDir bool) bool {
	ignored, _ := g.Decide(name, isDir)
	return ignored
}

// Decide is like Ignores, and also returns the ignore file that decides; empty if none does.
func (g *Patterns) Decide(name string, isDir bool) (ignored bool, file string) {
	for ; g != nil; g = g.up {
		relative := name
		if g.dir != "" {
			relative = strings.TrimPrefix(name, g.dir+"/")
		}
		for i := len(g.rules) - 1; i >= 0; i-- {
			if g.rules[i].matches(relative, isDir) {
				return !g.rules[i].negated, path.Join(g.dir, IgnoreFile)
			}
		}
	}
	return false, ""
}

func (r *ignoreRule) matches(name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anywhere {
		return matchSegment(r.segments[0], path.Base(name))
	}
	return matchSegments(r.segments, strings.Split(name, "/"))
}

// matchSegments matches names from the end of the pattern. For each tail of the name it records
// whether the tail matches, so that many "**" cost no more than one.
func matchSegments(pattern, name []string) bool {
	matches := make([]bool, len(name)+1) // matches[j] says whether the pattern's tail matches name[j:]
	matches[len(name)] = true
	for i := len(pattern) - 1; i >= 0; i-- {
		next := make([]bool, len(name)+1)
		for j := len(name); j >= 0; j-- {
			switch {
			case pattern[i] == "**" && i == len(pattern)-1:
				next[j] = j < len(name) // "a/**" matches everything in a, but not a itself
			case pattern[i] == "**":
				next[j] = matches[j] || j < len(name) && next[j+1]
			default:
				next[j] = j < len(name) && matches[j+1] && matchSegment(pattern[i], name[j])
			}
		}
		matches = next
	}
	return matches[0]
}

// matchSegment matches one name against a segment. A malformed one, such as a class without a
// closing bracket, matches nothing.
func matchSegment(segment, name string) bool {
	matches, err := path.Match(segment, name)
	return matches && err == nil
}

// goPattern translates a segment into the syntax of path.Match, which differs in classes: only ^
// negates them, and a ] or a - must be escaped where it is an ordinary member.
func goPattern(segment string) string {
	var b strings.Builder
	for segment != "" {
		n := 1
		switch segment[0] {
		case '[':
			segment = writeClass(&b, segment[1:])
			continue
		case '\\':
			n = min(2, len(segment))
		}
		b.WriteString(segment[:n])
		segment = segment[n:]
	}
	return b.String()
}

// writeClass writes a class up to its closing bracket, and returns the rest of the segment.
func writeClass(b *strings.Builder, segment string) (rest string) {
	b.WriteByte('[')
	if strings.HasPrefix(segment, "!") || strings.HasPrefix(segment, "^") {
		b.WriteByte('^')
		segment = segment[1:]
	}
	for first := true; segment != "" && (first || segment[0] != ']'); first = false {
		segment = writeMember(b, segment)
		if len(segment) > 1 && segment[0] == '-' && segment[1] != ']' {
			b.WriteByte('-')
			segment = writeMember(b, segment[1:])
		}
	}
	return segment
}

func writeMember(b *strings.Builder, segment string) (rest string) {
	if len(segment) > 1 {
		segment = strings.TrimPrefix(segment, `\`)
	}
	_, size := utf8.DecodeRuneInString(segment)
	b.WriteString(`\` + segment[:size])
	return segment[size:]
}
