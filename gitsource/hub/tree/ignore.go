package tree

import (
	"regexp"
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
}

type ignoreRule struct {
	path    *regexp.Regexp // of the paths below the directory that it matches
	negated bool
	dirOnly bool
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
	if strings.HasPrefix(line, "#") {
		return ignoreRule{}, false
	}
	var rule ignoreRule
	line, rule.negated = strings.CutPrefix(line, "!")
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	expression := pathExpression(strings.TrimPrefix(line, "/"))
	if !strings.Contains(line, "/") {
		expression = "(?:.*/)?" + expression // it matches at every depth
	}
	var err error
	rule.path, err = regexp.Compile("(?s)^" + expression + "$")
	return rule, err == nil && line != "" // a malformed pattern matches nothing
}

var (
	// slashes removes the backslash of escaped slashes, and of nothing else.
	slashes = strings.NewReplacer(`\\`, `\\`, `\/`, `/`)
	// class is a class of characters in a pattern.
	class = regexp.MustCompile(`^\[([!^]?)((?:\[:[a-z]+:\]|\\.|[^\\])(?:\[:[a-z]+:\]|\\.|[^\\\]])*)\]`)
	// needless are backslashes in a class that a regular expression does not know.
	needless = regexp.MustCompile(`\\([^[:punct:]])`)
)

// pathExpression translates a pattern into a regular expression, which is matched in linear time.
func pathExpression(pattern string) string {
	var b strings.Builder
	segments := strings.Split(slashes.Replace(pattern), "/")
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == "**" && last:
			b.WriteString(".+") // "a/**" matches everything in a, but not a itself
		case segment == "**":
			b.WriteString("(?:[^/]+/)*")
		default:
			writeSegment(&b, segment)
			if !last {
				b.WriteByte('/')
			}
		}
	}
	return b.String()
}

func writeSegment(b *strings.Builder, segment string) {
	for segment != "" {
		if found := class.FindStringSubmatch(segment); found != nil {
			b.WriteByte('[')
			if found[1] != "" {
				b.WriteString("^/")
			}
			b.WriteString(needless.ReplaceAllString(found[2], "$1") + "]")
			segment = segment[len(found[0]):]
			continue
		}
		escaped := false
		if len(segment) > 1 {
			segment, escaped = strings.CutPrefix(segment, `\`)
		}
		_, size := utf8.DecodeRuneInString(segment)
		switch char := segment[:size]; {
		case char == "*" && !escaped:
			b.WriteString("[^/]*")
		case char == "?" && !escaped:
			b.WriteString("[^/]")
		case char == "[" && !escaped:
			b.WriteString(`[^\x00-\x{10FFFF}]`) // nothing matches a class that does not end
		default:
			b.WriteString(regexp.QuoteMeta(char))
		}
		segment = segment[size:]
	}
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
			if r := g.rules[i]; (isDir || !r.dirOnly) && r.path.MatchString(relative) {
				return !r.negated
			}
		}
	}
	return false
}
