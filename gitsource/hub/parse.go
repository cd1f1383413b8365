package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A parsed file is the content of one file by itself: the unit of the cache.
type parsed struct {
	items    []*item
	problems Problems
	// transient says that the next attempt may succeed.
	transient bool
	// size is the approximate memory of the items. end is the position of the last one, and cut
	// that where the budget was used up, if it was.
	size     int64
	end, cut api.Origin
}

// parseFile parses a file and validates each object in it.
func parseFile(name string, data []byte, limits Limits, words vocabulary, spending *budget) *parsed {
	out := &parsed{}
	f := &fileParser{name: name, limits: limits}
	f.visit = func(r *report, root *yaml.Node) {
		c := &converter{r: r, limits: limits, words: words, ours: isOurs(root), budget: spending}
		out.items = append(out.items, c.items(root)...)
		out.size, out.end = out.size+c.size, r.origin
		if c.cut {
			out.cut, f.ended = r.origin, true
		}
	}
	f.read(data)
	out.problems = f.problems
	return out
}

// A syntax is the documents of a file for kustomize, not validated.
type syntax struct {
	documents []textDocument
	problems  Problems
	// size is the approximate memory of the documents.
	size int64
}

type textDocument struct {
	root   *yaml.Node
	before int // lines above it
	number int
}

// parseSyntax reads a file without validating its objects, since patches are none. Once the
// budget is used up, the rest is skipped.
func parseSyntax(name string, data []byte, limits Limits, spending *budget) *syntax {
	out, words := &syntax{}, vocabulary{}
	f := &fileParser{name: name, limits: limits}
	f.visit = func(r *report, root *yaml.Node) {
		c := &converter{r: r, limits: limits, words: words, budget: spending}
		c.document(root)
		out.size += c.size
		f.ended = c.cut
		out.documents = append(out.documents, textDocument{root, r.offset, r.origin.Document})
	}
	f.read(data)
	out.problems = f.problems
	return out
}

// parseBounded is parseSyntax for kustomization files.
func parseBounded(name string, data []byte, limits Limits) *syntax {
	spending := &budget{limit: limits.BuildInput}
	out := parseSyntax(name, data, limits, spending)
	if spending.exceeded() {
		out.problems = append(out.problems, Problem{Origin: api.Origin{Path: name}, Severity: Error, Message: inputExceeded(limits)})
	}
	return out
}

// A fileParser splits a file into documents.
type fileParser struct {
	name   string
	limits Limits
	// visit gets each document that can be read.
	visit func(*report, *yaml.Node)
	// ended says that the rest is skipped.
	ended bool

	problems Problems
	count    int // documents so far
}

func (f *fileParser) fail(line, document int, format string, args ...any) {
	f.problems = append(f.problems, Problem{
		Origin:   api.Origin{Path: f.name, Line: line, Document: document},
		Severity: Error, Message: fmt.Sprintf(format, args...),
	})
}

func (f *fileParser) read(data []byte) {
	defer func() {
		// A panic of the parser on strange input must not end the daemon.
		if p := recover(); p != nil {
			f.fail(0, 0, "the file makes the parser fail (%v); please report it, and list it in %s for now", p, IgnoreFile)
		}
	}()
	text, err := plainText(data)
	if err != nil {
		f.fail(0, 0, "%v", err)
		return
	}
	if path.Ext(f.name) == ".json" {
		f.json(chunk{text: text})
		return
	}
	for _, c := range split(text) {
		if f.ended {
			return
		}
		if f.count >= f.limits.Documents {
			f.fail(c.before+1, 0, "the file has more than %d documents; split it", f.limits.Documents)
			return
		}
		if start := bytes.TrimSpace(c.text); len(start) > 0 && start[0] == '{' && json.Valid(start) {
			f.json(c)
			continue
		}
		f.yaml(c)
	}
}

func (f *fileParser) json(c chunk) {
	docs, err := parseJSON(c.text, f.limits.Depth)
	for _, doc := range docs {
		f.document(doc, c.before)
	}
	if located := (*textError)(nil); errors.As(err, &located) {
		f.count++
		f.fail(c.before+located.line, f.count, "not valid JSON: %s", located.msg)
	}
}

func (f *fileParser) yaml(c chunk) {
	decoder := yaml.NewDecoder(bytes.NewReader(c.text))
	for !f.ended {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.count++
			line, msg := explain(c.text, err)
			f.fail(c.before+line, f.count, "not valid YAML: %s", msg)
			return
		}
		if len(doc.Content) == 1 && !isNothing(doc.Content[0]) {
			f.document(doc.Content[0], c.before)
		}
	}
}

func isNothing(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// document handles one document.
func (f *fileParser) document(root *yaml.Node, before int) {
	if f.ended {
		return
	}
	f.count++
	if f.count > f.limits.Documents {
		if f.count == f.limits.Documents+1 {
			f.fail(before+root.Line, f.count, "the file has more than %d documents; split it", f.limits.Documents)
		}
		return
	}
	r := &report{
		origin: api.Origin{Path: f.name, Line: before + root.Line, Document: f.count},
		root:   root, offset: before, limits: f.limits,
	}
	f.visit(r, root)
	f.problems = append(f.problems, r.problems...)
}

var yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// explain returns the line of an error of the YAML parser, and its usual cause.
func explain(text []byte, err error) (line int, msg string) {
	found := yamlErrorLine.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(found[1])
	msg = err.Error()[len(found[0]):]
	line = max(line, 1)
	if strings.HasPrefix(msg, "unknown anchor ") {
		msg = "an alias has no anchor; put a value that begins with * in quotes" // its name may be a password
	}
	if strings.Contains(msg, "did not find expected") {
		line = firstFailing(text, err.Error(), line)
	}
	if at, hint := hintFor(text, line, msg); hint != "" {
		line, msg = at, msg+"; "+hint
	}
	return line, msg
}

// firstFailing finds the line at which the parser fails: for a misplaced key or list item the
// parser reports the line where the mapping or list begins.
func firstFailing(text []byte, message string, named int) int {
	if len(text) > 64*kib {
		return named // the search parses the text several times
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	n := sort.Search(len(lines), func(n int) bool {
		err := yaml.Unmarshal(bytes.Join(lines[:n], nil), new(yaml.Node))
		return err != nil && err.Error() == message
	})
	return max(named, min(n, len(lines)))
}

// hintFor looks for the most common mistakes near the line of an error.
func hintFor(text []byte, line int, msg string) (at int, hint string) {
	lines := strings.Split(string(text), "\n")
	around := func(n int) string {
		if n < 1 || n > len(lines) {
			return ""
		}
		return lines[n-1]
	}
	for _, n := range []int{line, line + 1, line - 1} {
		indent := around(n)[:len(around(n))-len(strings.TrimLeft(around(n), " \t"))]
		switch {
		case strings.Contains(indent, "\t"):
			return n, "YAML is indented with spaces, and this line has a tab"
		case strings.Contains(around(n), "{{"):
			return n, "this looks like a template: render it first, or list the file in " + IgnoreFile
		case strings.HasPrefix(around(n), "<<<<<<<"), strings.HasPrefix(around(n), "======="), strings.HasPrefix(around(n), ">>>>>>>"):
			return n, "this is a merge conflict that was committed"
		}
	}
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		return line, "check the indentation here, and put text that has a colon in quotes"
	case strings.Contains(msg, "end of stream"):
		return line, "a quote or a bracket is not closed"
	case strings.Contains(msg, "did not find expected"), strings.Contains(msg, "could not find expected"):
		return line, "check the indentation and the quotes of this line and the one above"
	}
	return line, ""
}
