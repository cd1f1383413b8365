package document

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A FieldPath is the path to a field of a document, from the innermost step outwards. The nil
// path is the whole document.
type FieldPath struct {
	up    *FieldPath
	key   string
	index int // if key is empty
}

// Child returns the path of a key, or of a key below other keys.
func (p *FieldPath) Child(keys ...string) *FieldPath {
	for _, k := range keys {
		p = &FieldPath{up: p, key: k}
	}
	return p
}

// Keys returns the steps of the path below another one, an index as its digits.
func (p *FieldPath) Keys(below *FieldPath) []string {
	var keys []string
	for ; p != nil && p != below; p = p.up {
		key := p.key
		if key == "" {
			key = strconv.Itoa(p.index)
		}
		keys = append(keys, key)
	}
	slices.Reverse(keys)
	return keys
}

// Within returns the path of a field of an object at p, by its Keys below p.
func (p *FieldPath) Within(object any, keys []string) *FieldPath {
	for _, key := range keys {
		switch v := object.(type) {
		case map[string]any:
			p, object = p.Child(key), v[key]
		case []any:
			i, _ := strconv.Atoi(key)
			p, object = p.At(i), v[i]
		}
	}
	return p
}

// IsField reports whether the last step is this key.
func (p *FieldPath) IsField(key string) bool { return p != nil && p.key == key }

// At returns the path of an item of a list.
func (p *FieldPath) At(i int) *FieldPath { return &FieldPath{up: p, index: i} }

// String returns, for example, spec.policy.tolerations[0].key, or
// metadata.labels[app.kubernetes.io/name] for keys that are not simple words.
func (p *FieldPath) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *FieldPath) write(b *strings.Builder) {
	if p == nil {
		return
	}
	p.up.write(b)
	switch {
	case p.key == "":
		b.WriteString("[" + strconv.Itoa(p.index) + "]")
	case p.up.holdsValues() && strings.ContainsAny(p.key, " \t\r\n"):
		b.WriteString("[…]") // the key may be a key and its secret value without the colon
	case !IsWord(p.key):
		b.WriteString("[" + p.key + "]")
	case b.Len() == 0:
		b.WriteString(p.key)
	default:
		b.WriteString("." + p.key)
	}
}

// holdsValues reports whether the values below the path are those of a Secret.
func (p *FieldPath) holdsValues() bool {
	return p != nil && (p.key == "data" || p.key == "stringData")
}

// IsWord reports whether a key has letters, digits, dashes and underscores only.
func IsWord(s string) bool {
	for _, c := range s {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Find returns the node of a field, nil if it does not exist. The line is that of the node or
// of its nearest existing parent.
func Find(root *yaml.Node, p *FieldPath) (*yaml.Node, int) {
	if p == nil {
		return root, root.Line
	}
	n, line := Find(root, p.up)
	if n == nil {
		return nil, line
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case p.key == "" && n.Kind == yaml.SequenceNode && p.index < len(n.Content):
		return n.Content[p.index], n.Content[p.index].Line
	case p.key == "" && n.Kind == yaml.MappingNode && p.index == 0:
		return n, line // written as a mapping, but decoded as a list of one item
	case p.key != "" && n.Kind == yaml.SequenceNode && len(n.Content) == 1:
		n = n.Content[0] // the other way round
	}
	if p.key != "" && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == p.key {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	}
	return nil, line
}
