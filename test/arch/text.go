package arch

import (
	"bytes"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// aliases reports import aliases with digits, such as fmt2, except the usual names of Kubernetes'
// API packages, such as metav1, and dot imports.
func aliases(t *tree, report report) {
	for _, f := range t.files {
		if f.generated {
			continue
		}
		for _, i := range f.imports {
			switch {
			case !i.alias:
			case i.name == ".":
				report(f.path, i.line, "a dot import of %s hides where its names come from", i.path)
			case strings.ContainsFunc(i.name, unicode.IsDigit) && i.name != groupVersion(i.path):
				report(f.path, i.line, "import alias %s has a digit", i.name)
			}
		}
	}
}

var version = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// groupVersion returns the usual alias of a package of an API group, and "" for other packages.
func groupVersion(importPath string) string {
	if v := path.Base(importPath); version.MatchString(v) {
		return path.Base(path.Dir(importPath)) + v
	}
	return ""
}

// markWords mark unfinished work. They are concatenated so that this file does not break the rule.
var (
	markWords = []string{"TO" + "DO", "FIX" + "ME"}
	marks     = regexp.MustCompile(`\b(` + strings.Join(markWords, "|") + `)\b`)
)

// checkedExtensions are the extensions of files that are searched for marks, besides Go files.
var checkedExtensions = map[string]bool{".md": true, ".sh": true, ".yaml": true, ".yml": true, "": true}

func unfinished(t *tree, report report) {
	const reason = "unfinished work: finish it, or open an issue"
	for _, f := range t.files {
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if marks.MatchString(c.Text) {
					report(f.path, t.line(c), reason)
				}
			}
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if importPath == "context" && marks.MatchString(name) {
				report(f.path, t.line(at), reason)
			}
		})
	}
	for _, x := range t.texts {
		if checkedExtensions[path.Ext(x.path)] && !within(x.path, "testdata") {
			for _, line := range x.find(marks, markWords) {
				report(x.path, line, reason)
			}
		}
	}
}

// localPath matches paths that exist only on somebody's machine. localPrefixes are substrings of
// which each match has one.
var (
	localPrefixes = []string{"../" + "shared", "/wo" + "rk/", "/ho" + "me/", "/Use" + "rs/", "/ro" + "ot/"}
	localPath     = regexp.MustCompile(`\.\./` + `shared\b|(^|[^\w.$})-])/(work|home|Users|root)/`)
)

func localPaths(t *tree, report report) {
	for _, x := range t.texts {
		for _, line := range x.find(localPath, localPrefixes) {
			report(x.path, line, "a path that exists only on somebody's machine")
		}
	}
}

// find returns the numbers of the lines that match a pattern. Every match contains one of the
// substrings, which are searched first because that is faster.
func (x text) find(pattern *regexp.Regexp, substrings []string) []int {
	if !slices.ContainsFunc(substrings, func(s string) bool { return bytes.Contains(x.content, []byte(s)) }) {
		return nil
	}
	var found []int
	n := 0
	for line := range bytes.Lines(x.content) {
		if n++; pattern.Match(line) {
			found = append(found, n)
		}
	}
	return found
}
