package hub

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A fieldPath is the path to a field of a document, from the innermost step outwards. The nil
// path is the whole document.
type fieldPath struct {
	up    *fieldPath
	key   string
	index int // if key is empty
}

func (p *fieldPath) child(keys ...string) *fieldPath {
	for _, k := range keys {
		p = &fieldPath{up: p, key: k}
	}
	return p
}

func (p *fieldPath) at(i int) *fieldPath { return &fieldPath{up: p, index: i} }

// String returns, for example, spec.policy.tolerations[0].key, or
// metadata.labels[app.kubernetes.io/name] for keys that are not simple words.
func (p *fieldPath) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *fieldPath) write(b *strings.Builder) {
	if p == nil {
		return
	}
	p.up.write(b)
	switch {
	case p.key == "":
		b.WriteString("[" + strconv.Itoa(p.index) + "]")
	case p.up.holdsValues() && strings.ContainsAny(p.key, " \t\r\n"):
		b.WriteString("[…]") // not a key, but perhaps a key and its secret value without the colon
	case !isWord(p.key):
		b.WriteString("[" + p.key + "]")
	case b.Len() == 0:
		b.WriteString(p.key)
	default:
		b.WriteString("." + p.key)
	}
}

// holdsValues reports whether the path is that of a Secret's values.
func (p *fieldPath) holdsValues() bool {
	return p != nil && (p.key == "data" || p.key == "stringData")
}

func isWord(s string) bool {
	for _, c := range s {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// lineOf returns the line of a field, or of its nearest existing parent.
func lineOf(root *yaml.Node, p *fieldPath) int {
	_, line := find(root, p)
	return line
}

// find returns nil if the path does not exist.
func find(root *yaml.Node, p *fieldPath) (*yaml.Node, int) {
	if p == nil {
		return root, root.Line
	}
	n, line := find(root, p.up)
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
		return n, line // written as a mapping, decoded as a list of one
	case p.key != "" && n.Kind == yaml.SequenceNode && len(n.Content) == 1:
		n = n.Content[0] // the reverse
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
