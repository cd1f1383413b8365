// Package document reads the YAML and JSON documents of a file.
//
// Read splits a file into documents. A Decoder converts a document into the value that kubectl
// would read. A Report collects the problems of a document by field, and finds the line of each
// field. An invalid document does not hide the next one, and no message quotes a value, which
// may be secret.
package document

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

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Read splits a file into documents. It calls visit with each document that can be read and the
// report of its problems, until visit returns false. It returns all problems.
func Read(name string, data []byte, limits limit.Limits, visit func(*Report, *yaml.Node) (more bool)) problem.List {
	f := &fileReader{name: name, limits: limits, visit: visit}
	f.read(data)
	return f.problems
}

// A fileReader splits a file into documents.
type fileReader struct {
	name   string
	limits limit.Limits
	visit  func(*Report, *yaml.Node) (more bool)
	// ended says that the rest is skipped.
	ended bool

	problems problem.List
	count    int // number of documents so far
}

func (f *fileReader) fail(line, document int, format string, args ...any) {
	f.problems = append(f.problems, problem.Problem{
		Origin:   api.Origin{Path: f.name, Line: line, Document: document},
		Severity: problem.Error, Message: fmt.Sprintf(format, args...),
	})
}

func (f *fileReader) read(data []byte) {
	defer func() {
		// A panic of the parser on strange input must not end the daemon.
		if p := recover(); p != nil {
			f.fail(0, 0, "the file makes the parser fail (%v); please report it, and list it in %s for now", p, tree.IgnoreFile)
		}
	}()
	text, err := PlainText(data)
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

func (f *fileReader) json(c chunk) {
	docs, line, fault := parseJSON(c.text, f.limits.Depth)
	for _, doc := range docs {
		f.document(doc, c.before)
	}
	if fault != "" {
		f.count++
		f.fail(c.before+line, f.count, "not valid JSON: %s", fault)
	}
}

func (f *fileReader) yaml(c chunk) {
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
func (f *fileReader) document(root *yaml.Node, before int) {
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
	r := &Report{
		Origin: api.Origin{Path: f.name, Line: before + root.Line, Document: f.count},
		Root:   root, LinesBefore: before, Limits: f.limits,
	}
	f.ended = !f.visit(r, root)
	f.problems = append(f.problems, r.Problems...)
}

var yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// explain returns the line of an error of the YAML parser, and its usual cause.
func explain(text []byte, err error) (line int, msg string) {
	found := yamlErrorLine.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(found[1])
	msg = err.Error()[len(found[0]):]
	line = max(line, 1)
	if strings.HasPrefix(msg, "unknown anchor ") {
		msg = "an alias has no anchor; put a value that begins with * in quotes" // the name of the alias may be a password
	}
	if strings.Contains(msg, "did not find expected") {
		line = firstFailing(text, err.Error(), line)
	}
	if at, hint := hintFor(text, line, msg); hint != "" {
		line, msg = at, msg+"; "+hint
	}
	return line, msg
}

// firstFailing finds the line at which the parser fails. For a misplaced key or list item the
// parser reports the line where the mapping or list begins.
func firstFailing(text []byte, message string, named int) int {
	if len(text) > 64<<10 {
		return named // the search parses the text several times
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	n, found := sort.Find(len(lines)+1, func(n int) int {
		if err := yaml.Unmarshal(bytes.Join(lines[:n], nil), new(yaml.Node)); err != nil && err.Error() == message {
			return 0
		}
		return 1
	})
	if !found {
		return named // the error is in a later document of the text
	}
	return max(named, n)
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
			return n, "this looks like a template: render it first, or list the file in " + tree.IgnoreFile
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
