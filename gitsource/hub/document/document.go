// Package document reads the YAML and JSON documents of a file.
//
// Read splits a file into documents, and decodes each into the value that kubectl would read. A
// Report collects the problems of a document by field, and finds the line of each field. An invalid
// document does not hide the next one, and no message quotes a value, which may be secret.
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

// A File is what was read of a file.
type File struct {
	Problems problem.List
	// Size is the approximate memory of the values, in bytes, and End the position of the last one.
	Size int64
	End  api.Origin
	// Cut says that Size exceeds the limit, so that the rest was not read.
	Cut bool
	// GaveUp says that a document exceeds a limit, and was not decoded.
	GaveUp bool
}

// Read decodes the documents of a file until their values take more than maxSize bytes. It calls
// visit with each value, and the report of its problems.
func Read(name string, data []byte, limits limit.Limits, maxSize int64, visit func(r *Report, value any)) File {
	f := &fileReader{name: name, limits: limits, maxSize: maxSize, visit: visit}
	f.read(data)
	return f.File
}

// A fileReader splits a file into documents.
type fileReader struct {
	File
	name    string
	limits  limit.Limits
	maxSize int64
	visit   func(*Report, any)
	count   int // number of documents so far
}

func (f *fileReader) fail(line, document int, format string, args ...any) {
	f.Problems = append(f.Problems, problem.Problem{
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
		switch start := bytes.TrimSpace(c.text); {
		case f.Cut:
			return
		case f.count >= f.limits.Documents:
			f.fail(c.before+1, 0, "the file has more than %d documents; split it", f.limits.Documents)
			return
		case len(start) > 0 && start[0] == '{' && json.Valid(start):
			f.json(c)
		default:
			f.yaml(c)
		}
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
	for !f.Cut {
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
		root := doc.Content[0]
		if root.Kind != yaml.ScalarNode || root.Tag != "!!null" {
			f.document(root, c.before)
		}
	}
}

func (f *fileReader) document(root *yaml.Node, before int) {
	if f.Cut {
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
	value, size, ok := Decode(r, root, f.maxSize-f.Size)
	if ok {
		f.visit(r, value)
	}
	f.Problems = append(f.Problems, r.Problems...)
	f.GaveUp = f.GaveUp || !ok
	f.Size, f.End = f.Size+size, r.Origin
	f.Cut = f.Size > f.maxSize
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
		case strings.Contains(around(n), "\u00a0"):
			return n, "this line has a no-break space (U+00A0) in place of a space"
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
