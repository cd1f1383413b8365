package proposal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A FieldEdit sets or removes one field of a manifest.
type FieldEdit struct {
	// Path is a JSON pointer into the manifest. If its last element is "-", the value is
	// appended to a list.
	Path string
	// Value is the new value, of a type that encoding/json decodes to, or an int64.
	Value any
	// Remove removes the field; Value is ignored.
	Remove bool
}

// A FieldError says why a field cannot be edited.
type FieldError struct {
	// Line is the line of the field, or of its nearest existing parent; zero if it is not
	// known.
	Line   int
	Path   string
	Reason string
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Path, e.Reason)
}

// A finder finds the node to edit in the text of a file.
type finder func(text []byte) (*yaml.Node, error)

// beginningOn returns a finder of the manifest that begins on a line, counted from 1.
func beginningOn(line int) finder {
	return func(text []byte) (*yaml.Node, error) { return manifestAt(text, line) }
}

// firstDocument finds the first document of a file.
func firstDocument(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, errors.New("the file is empty")
	}
	return doc.Content[0], nil
}

// editAll returns the text of a YAML or JSON file with edits of one node. Lines of other fields do
// not change, and comments, order, quotes and indentation are kept. The edits are made one after
// the other, as in RFC 6902; either all are made or none. The error is a *FieldError if one of them
// cannot be expressed in this text, for instance because the field comes from a YAML anchor.
func editAll(text []byte, in finder, edits []FieldEdit) ([]byte, error) {
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
func edit(text []byte, in finder, e FieldEdit) ([]byte, error) {
	before, err := in(text)
	if err != nil {
		return nil, err
	}
	want, err := value(before)
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
	if want, err = apply(want, api.SplitPointer(e.Path), e); err != nil {
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
			if got, err := value(after); err == nil && reflect.DeepEqual(got, want) {
				return out, nil
			}
			reason = "it cannot be edited in the form in which it is written"
		}
	}
	return nil, f.fail(reason)
}

// isOnlyEntry reports whether the field is the only one in a block mapping or sequence.
func (f *field) isOnlyEntry() bool {
	n := len(f.parent.Content)
	return f.node != nil && f.parent.Style&yaml.FlowStyle == 0 && (n == 1 || n == 2 && f.key != nil)
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

// manifestAt parses a file and returns the manifest that begins on a line: a
// document, or an item of a List.
func manifestAt(text []byte, line int) (*yaml.Node, error) {
	var found *yaml.Node
	err := eachDocument(text, func(doc *yaml.Node) {
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

// eachDocument visits the documents of a file, up to one that is not valid YAML.
func eachDocument(text []byte, visit func(*yaml.Node)) error {
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
	if _, items := entry(n, "items"); items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			if found := findManifest(item, line); found != nil {
				return found
			}
		}
	}
	return nil
}

// entry finds a key of a mapping and its value; nil if the mapping itself does not have the
// key.
func entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// A field is the position to which a JSON pointer leads. node is nil if there is none yet.
type field struct {
	path   string
	parent *yaml.Node
	last   string // the last element of the path
	key    *yaml.Node
	node   *yaml.Node
}

func (f *field) fail(reason string) error {
	at := f.parent
	if f.node != nil {
		at = f.node
	}
	return &FieldError{at.Line, f.path, reason}
}

// checkPlain returns an error if the field or its parent uses an anchor, an alias or a tag, so that
// an edit would affect other fields.
func (f *field) checkPlain() error {
	for _, n := range []*yaml.Node{f.parent, f.node} {
		switch {
		case n == nil:
		case n.Kind == yaml.AliasNode:
			return f.fail("its value comes from the YAML anchor *" + n.Value + "; edit that, or write the value here")
		case n.Anchor != "":
			return f.fail("other fields take their value from it through the YAML anchor &" + n.Anchor)
		case n.Style&yaml.TaggedStyle != 0:
			return f.fail("it has the YAML tag " + n.Tag)
		}
	}
	return nil
}

// find follows a JSON pointer up to its last element.
func find(root *yaml.Node, path string) (*field, error) {
	f := &field{path: path, parent: root}
	keys := api.SplitPointer(path)
	for i, key := range keys {
		last := i == len(keys)-1
		f.last, f.key, f.node = key, nil, nil
		switch f.parent.Kind {
		case yaml.MappingNode:
			f.key, f.node = entry(f.parent, key)
			if _, merged := entry(f.parent, "<<"); f.node == nil && merged != nil {
				return nil, f.fail("it may come from a YAML merge key (<<)")
			}
		case yaml.SequenceNode:
			n, err := strconv.Atoi(key)
			switch {
			case key == "-" && last: // behind the last item
			case err != nil || n < 0 || n >= len(f.parent.Content):
				return nil, f.fail(fmt.Sprintf("the list has %d items in Git", len(f.parent.Content)))
			default:
				f.node = f.parent.Content[n]
			}
		default:
			return nil, f.fail("it is not in the manifest")
		}
		if last {
			break
		}
		if f.node == nil {
			return nil, f.fail("it is not in the manifest")
		}
		if f.node.Kind == yaml.AliasNode {
			return nil, f.checkPlain()
		}
		f.parent = f.node
	}
	return f, nil
}

// value decodes a node; numbers are int64 or float64.
func value(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return canonical(v), nil
}

// canonical converts a decoded value so that each JSON type has one Go type: integers are
// int64, and other numbers float64.
func canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = canonical(item)
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[fmt.Sprint(key)] = canonical(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = canonical(item)
		}
		return out
	case int:
		return int64(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// apply makes an edit of a decoded value, and returns it.
func apply(v any, path []string, e FieldEdit) (any, error) {
	if len(path) == 0 {
		return canonical(e.Value), nil
	}
	key, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		if len(rest) == 0 && e.Remove {
			delete(v, key)
			return v, nil
		}
		item, err := apply(v[key], rest, e)
		v[key] = item
		return v, err
	case []any:
		if key == "-" {
			return append(v, canonical(e.Value)), nil
		}
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, fmt.Errorf("the list has %d items in Git", len(v))
		}
		if len(rest) == 0 && e.Remove {
			return slices.Delete(v, i, i+1), nil
		}
		v[i], err = apply(v[i], rest, e)
		return v, err
	}
	return nil, fmt.Errorf("it is not in the manifest")
}
