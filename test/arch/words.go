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

// aliases are free of digits: a second fmt is not fmt2, it is called by what it
// is. Kubernetes' own names of a group and its version are words everybody
// knows, such as metav1.
func aliases(t *tree, report report) {
	for _, f := range t.files {
		if f.generated {
			continue // a program named it
		}
		for _, i := range f.imports {
			switch {
			case !i.alias:
			case i.name == ".":
				report(f.path, i.line, "import %s by a name: nobody can see where its words come from", i.path)
			case strings.ContainsFunc(i.name, unicode.IsDigit) && i.name != groupVersion(i.path):
				report(f.path, i.line, "import alias %s has a digit: call it by what it is", i.name)
			}
		}
	}
}

var version = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// groupVersion returns what everybody calls a package of an API group; empty if
// it is none.
func groupVersion(importPath string) string {
	if v := path.Base(importPath); version.MatchString(v) {
		return path.Base(path.Dir(importPath)) + v
	}
	return ""
}

// maxLines is how long a file may be.
const maxLines = 500

func length(t *tree, report report) {
	for _, f := range t.files {
		if f.lines > maxLines && !f.generated {
			report(f.path, 0, "%d lines, and %d are too many: a file is one idea", f.lines, maxLines)
		}
	}
}

// markWords are the words for work that was not finished. They are put together
// here so that a search for them finds only what is unfinished.
var (
	markWords = []string{"TO" + "DO", "FIX" + "ME"}
	marks     = regexp.MustCompile(`\b(` + strings.Join(markWords, "|") + `)\b`)
)

// prose are the files, beside Go files, that tell something to people.
var prose = map[string]bool{".md": true, ".sh": true, ".yaml": true, ".yml": true, "": true}

func unfinished(t *tree, report report) {
	const reason = "work that is not finished: finish it, or open an issue"
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
		if prose[path.Ext(x.path)] && !within(x.path, "testdata") {
			for _, line := range x.find(marks, markWords) {
				report(x.path, line, reason)
			}
		}
	}
}

// places are paths of the machine that somebody works at, and of what lies
// beside the repository there; workplaces is how they look, and no others do.
var (
	places     = []string{"../" + "shared", "/wo" + "rk/", "/ho" + "me/", "/Use" + "rs/", "/ro" + "ot/"}
	workplaces = regexp.MustCompile(`\.\./` + `shared\b|(^|[^\w.$})-])/(work|home|Users|root)/`)
)

func workplace(t *tree, report report) {
	for _, x := range t.texts {
		for _, line := range x.find(workplaces, places) {
			report(x.path, line, "a path of somebody's machine: no other machine has it")
		}
	}
}

// find returns the numbers of the lines in which a pattern occurs. No text has it
// that has none of some words, and most have none.
func (x text) find(pattern *regexp.Regexp, words []string) []int {
	if !slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(x.content, []byte(w)) }) {
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
