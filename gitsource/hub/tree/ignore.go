package tree

import (
	"path"
	"strings"
)

// IgnoreFile is the name of files that list paths not to be read, in the syntax of .gitignore.
// One may be in any directory, and applies to that directory and everything below.
const IgnoreFile = ".gitfleetignore"

// Patterns are the ignore patterns that apply to one directory. Nil ignores nothing.
type Patterns struct {
	up    *Patterns
	dir   string // the directory of the patterns; empty for the root
	rules []ignoreRule
}

type ignoreRule struct {
	// segments are the parts between slashes; "**" is any number of directories.
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
	below := &Patterns{up: g, dir: dir}
	for line := range strings.Lines(text) {
		if rule, ok := parseIgnore(strings.TrimRight(line, "\r\n")); ok {
			below.rules = append(below.rules, rule)
		}
	}
	return below
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
	begin := 0
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '/':
			all = append(all, pattern[begin:i])
			begin = i + 1
		case pattern[i] == '\\' && i+1 < len(pattern):
			if i++; pattern[i] == '/' {
				all = append(all, pattern[begin:i-1])
				begin = i + 1
			}
		}
	}
	return append(all, pattern[begin:])
}

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
	for ; g != nil; g = g.up {
		relative := name
		if g.dir != "" {
			relative = strings.TrimPrefix(name, g.dir+"/")
		}
		for i := len(g.rules) - 1; i >= 0; i-- {
			if g.rules[i].fits(relative, isDir) {
				return !g.rules[i].negated
			}
		}
	}
	return false
}

func (r *ignoreRule) fits(name string, isDir bool) bool {
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
	fits := make([]bool, len(name)+1) // fits[j] says whether the pattern's tail matches name[j:]
	fits[len(name)] = true
	for i := len(pattern) - 1; i >= 0; i-- {
		next := make([]bool, len(name)+1)
		for j := len(name); j >= 0; j-- {
			switch {
			case pattern[i] == "**" && i == len(pattern)-1:
				next[j] = j < len(name) // "a/**" matches everything in a, but not a itself
			case pattern[i] == "**":
				next[j] = fits[j] || j < len(name) && next[j+1]
			default:
				next[j] = j < len(name) && fits[j+1] && matchSegment(pattern[i], name[j])
			}
		}
		fits = next
	}
	return fits[0]
}

// matchSegment matches one name against "*", "?", classes such as [a-z], and escapes with a
// backslash. A class without a closing bracket matches nothing.
func matchSegment(pattern, name string) bool {
	fits := make([]bool, len(name)+1)
	fits[0] = true
	for len(pattern) > 0 {
		token, rest := cutToken(pattern)
		next := make([]bool, len(name)+1)
		for j := range fits {
			switch {
			case token == "*":
				next[j] = fits[j] || j > 0 && next[j-1]
			case fits[j] && j < len(name) && matchByte(token, name[j]):
				next[j+1] = true
			}
		}
		fits, pattern = next, rest
	}
	return fits[len(name)]
}

// cutToken splits one character, escape or class off a pattern.
func cutToken(pattern string) (token, rest string) {
	switch pattern[0] {
	case '\\':
		n := min(2, len(pattern))
		return pattern[:n], pattern[n:]
	case '[':
		for i := classStart(pattern); i < len(pattern); i++ {
			switch pattern[i] {
			case '\\':
				i++
			case ']':
				return pattern[:i+1], pattern[i+1:]
			}
		}
		return pattern, ""
	}
	return pattern[:1], pattern[1:]
}

// classStart returns the index from which the closing ] of a class is searched: after [ or [!,
// and after a ] directly behind them, which is a member of the class.
func classStart(pattern string) int {
	start := 1
	if len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^') {
		start = 2
	}
	if start < len(pattern) && pattern[start] == ']' {
		start++
	}
	return start
}

func matchByte(token string, b byte) bool {
	switch token[0] {
	case '?':
		return true
	case '\\':
		return len(token) == 2 && token[1] == b
	case '[':
		return len(token) > 1 && token[len(token)-1] == ']' && matchClass(token[1:len(token)-1], b)
	}
	return token[0] == b
}

func matchClass(class string, b byte) bool {
	negated := class != "" && (class[0] == '!' || class[0] == '^')
	if negated {
		class = class[1:]
	}
	found := false
	for i := 0; i < len(class); i++ {
		low := class[i]
		if low == '\\' && i+1 < len(class) {
			i++
			low = class[i]
		}
		high := low
		if i+2 < len(class) && class[i+1] == '-' {
			high = class[i+2]
			i += 2
			if high == '\\' && i+1 < len(class) {
				i++
				high = class[i]
			}
		}
		found = found || low <= b && b <= high
	}
	return found != negated
}
