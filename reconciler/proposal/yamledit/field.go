package yamledit

import (
	"fmt"
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

// Entry finds a key of a mapping and its value; nil if the mapping itself does not have the
// key.
func Entry(n *yaml.Node, name string) (key, value *yaml.Node) {
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

// isOnlyEntry reports whether the field is the only one in a block mapping or sequence.
func (f *field) isOnlyEntry() bool {
	n := len(f.parent.Content)
	return f.node != nil && f.parent.Style&yaml.FlowStyle == 0 && (n == 1 || n == 2 && f.key != nil)
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
			f.key, f.node = Entry(f.parent, key)
			if _, merged := Entry(f.parent, "<<"); f.node == nil && merged != nil {
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

// Value decodes a YAML node. Integers become int64, and other numbers float64.
func Value(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return Canonical(v), nil
}

// Canonical converts a decoded value so that each JSON type has one Go type: integers are
// int64, and other numbers float64.
func Canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = Canonical(item)
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[fmt.Sprint(key)] = Canonical(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Canonical(item)
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

// Apply makes an edit of a decoded value, and returns it.
func Apply(v any, path []string, e FieldEdit) (any, error) {
	if len(path) == 0 {
		return Canonical(e.Value), nil
	}
	key, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		if len(rest) == 0 && e.Remove {
			delete(v, key)
			return v, nil
		}
		item, err := Apply(v[key], rest, e)
		v[key] = item
		return v, err
	case []any:
		if key == "-" {
			return append(v, Canonical(e.Value)), nil
		}
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, fmt.Errorf("the list has %d items in Git", len(v))
		}
		if len(rest) == 0 && e.Remove {
			return slices.Delete(v, i, i+1), nil
		}
		v[i], err = Apply(v[i], rest, e)
		return v, err
	}
	return nil, fmt.Errorf("it is not in the manifest")
}

// LookUp returns the value at a pointer. A pointer past the end of a list has none.
func LookUp(v any, keys []string) (value any, there bool) {
	for _, key := range keys {
		switch in := v.(type) {
		case map[string]any:
			if v, there = in[key]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Pointer returns the JSON pointer with these keys.
func Pointer(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("/" + api.EscapeKey(key))
	}
	return b.String()
}

// WithEdits returns a copy of an object with edits made.
func WithEdits(object map[string]any, edits []FieldEdit) (any, error) {
	v := Canonical(object)
	for _, e := range edits {
		var err error
		if v, err = Apply(v, api.SplitPointer(e.Path), e); err != nil {
			return nil, &FieldError{Path: e.Path, Reason: err.Error()}
		}
	}
	return v, nil
}
