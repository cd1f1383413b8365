// Package yamledit edits fields in the text of a YAML or JSON file, and leaves everything else as it is written.
//
// [EditAll] sets and removes fields, and [WithoutDocument] removes a document. Lines of other fields, comments, order, quotes and
// indentation stay. Each result is parsed and compared with the wanted value: an edit that cannot be expressed is refused.
package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Finder finds the node to edit in the text of a file.
type Finder func(text []byte) (*yaml.Node, error)

// BeginningOn returns a finder of the manifest that begins on a line, counted from 1.
func BeginningOn(line int) Finder {
	return func(text []byte) (*yaml.Node, error) { return ManifestAt(text, line) }
}

// FirstDocument finds the first document of a file.
func FirstDocument(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, errors.New("the file is empty")
	}
	return doc.Content[0], nil
}

// EditAll returns the text of a YAML or JSON file with edits of one node. Lines of other fields do
// not change, and comments, order, quotes and indentation are kept. The edits are made one after
// the other, as in RFC 6902; either all are made or none. The error is a *FieldError if one of them
// cannot be expressed in this text, for instance because the field comes from a YAML anchor.
func EditAll(text []byte, in Finder, edits []FieldEdit) ([]byte, error) {
	body, marked := bytes.CutPrefix(text, byteOrderMark)
	if otherLineEnds(body) {
		return nil, errors.New("the file has line ends other than LF and CRLF")
	}
	for _, e := range edits {
		edited, err := edit(body, in, e)
		if err != nil {
			return nil, err
		}
		body = edited
	}
	if marked {
		return slices.Concat(byteOrderMark, body), nil
	}
	return body, nil
}

// edit makes one edit. It parses the result, and returns an error if anything else in the
// manifest has changed.
func edit(text []byte, in Finder, e FieldEdit) ([]byte, error) {
	before, err := in(text)
	if err != nil {
		return nil, err
	}
	want, err := Value(before)
	if err != nil {
		return nil, err
	}
	f, err := find(before, e.Path)
	if err != nil {
		return nil, err
	}
	if err := f.checkPlain(); err != nil {
		return nil, err
	}
	if want, err = Apply(want, api.SplitPointer(e.Path), e); err != nil {
		return nil, f.fail(err.Error())
	}
	at := f
	if e.Remove && f.isOnlyEntry() { // a block mapping or sequence cannot be empty
		if at, e, err = emptyParent(before, f); err != nil {
			return nil, err
		}
	}
	s := newSource(text)
	s.layout = layoutOf(before)
	cut, err := s.cutFor(at, e)
	if err != nil {
		return nil, f.fail(err.Error())
	}
	forms := []string{cut.text}
	if cut.other != "" {
		forms = append(forms, cut.other)
	}
	reason := ""
	for _, form := range forms {
		form = strings.ReplaceAll(form, "\n", lineEnd(text, cut.from))
		edited := slices.Concat(text[:cut.from], []byte(form), text[cut.to:])
		for _, out := range [][]byte{withFinalNewline(text, edited), edited} {
			after, err := in(out)
			if err != nil {
				reason = "the file would not be valid YAML: " + err.Error()
				continue
			}
			if got, err := Value(after); err == nil && reflect.DeepEqual(got, want) {
				return out, nil
			}
			reason = "it cannot be edited in the form in which it is written"
		}
	}
	return nil, f.fail(reason)
}

// emptyParent returns the edit that replaces the parent of a field by an empty one.
func emptyParent(root *yaml.Node, f *field) (*field, FieldEdit, error) {
	e := FieldEdit{Path: f.path[:max(0, strings.LastIndex(f.path, "/"))], Value: map[string]any{}}
	if f.parent.Kind == yaml.SequenceNode {
		e.Value = []any{}
	}
	if e.Path == "" {
		return nil, e, f.fail("it is the only one there; remove what it is in")
	}
	parent, err := find(root, e.Path)
	return parent, e, err
}

// ManifestAt parses a file and returns the manifest that begins on a line: a
// document, or an item of a List.
func ManifestAt(text []byte, line int) (*yaml.Node, error) {
	var found *yaml.Node
	err := EachDocument(text, func(doc *yaml.Node) {
		if n := findManifest(doc, line); n != nil && found == nil {
			found = n
		}
	})
	switch {
	case found != nil:
		return found, nil
	case err != nil:
		return nil, fmt.Errorf("no manifest begins on line %d: %w", line, err)
	}
	return nil, fmt.Errorf("no manifest begins on line %d", line)
}

// EachDocument visits the documents of a file, up to one that is not valid YAML.
func EachDocument(text []byte, visit func(*yaml.Node)) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		visit(doc.Content[0])
	}
}

func findManifest(n *yaml.Node, line int) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	if n.Line == line {
		return n
	}
	if _, items := Entry(n, "items"); items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			if found := findManifest(item, line); found != nil {
				return found
			}
		}
	}
	return nil
}

// NthDocument returns a finder of the document of a file with a number, from 0.
func NthDocument(number int) Finder {
	return func(text []byte) (*yaml.Node, error) {
		var found *yaml.Node
		n := -1
		err := EachDocument(text, func(doc *yaml.Node) {
			if n++; n == number {
				found = doc
			}
		})
		if found == nil && err == nil {
			err = errors.New("the file has no such document")
		}
		return found, err
	}
}

// WithoutDocument removes the document that begins on a line, with the comments before it; nil
// if no document is left.
func WithoutDocument(text []byte, line int) ([]byte, error) {
	body, marked := bytes.CutPrefix(text, byteOrderMark)
	left, err := removeDocument(body, line)
	if left != nil && marked {
		left = slices.Concat(byteOrderMark, left)
	}
	return left, err
}

func removeDocument(text []byte, line int) ([]byte, error) {
	if otherLineEnds(text) {
		return nil, errors.New("the file has line ends other than LF and CRLF")
	}
	s := newSource(text)
	separates := func(n int) bool { l := s.line(n); return l == "---" || strings.HasPrefix(l, "--- ") }
	documents, number := 0, 0
	err := EachDocument(text, func(doc *yaml.Node) {
		if documents++; doc.Line == line {
			number = documents
		}
	})
	switch {
	case err != nil:
		return nil, err
	case number == 0:
		return nil, errors.New("the object is not a document of its own")
	case documents == 1:
		return nil, nil
	}
	from, to := line, line+1
	for from > 1 && !separates(from-1) {
		from--
	}
	for to <= s.count() && !separates(to) {
		to++
	}
	if from > 1 { // the separator before it is removed as well
		from--
	} else if to <= s.count() {
		to++
	}
	return withFinalNewline(text, slices.Concat(text[:s.at(from)], text[s.at(to):])), nil
}
