package document

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// expandedNodes limits the nodes of a document after its aliases are expanded, since all of
// them are in memory.
const expandedNodes = 250_000

// The approximate memory of decoded values.
const (
	objectBytes = 1 << 10 // an object without its fields: its ID, origin and hash
	valueBytes  = 16
	mapBytes    = 320 // a map of up to eight entries
	entryBytes  = 64  // each entry of a larger one
)

// Decode converts the YAML nodes of one document into a value of package unstructured:
// map[string]any, []any, string, bool, int64, float64 or nil. It reads scalars as kubectl does, and
// refuses ambiguous ones. Its messages quote no values, since the document may be a Secret. size is
// the approximate memory of the value. ok is false if the value exceeds a limit; more than maxSize
// bytes are not reported.
func Decode(r *Report, root *yaml.Node, maxSize int64) (value any, size int64, ok bool) {
	d := &decoder{report: r, root: root, ownKind: IsOwnKind(root), maxSize: maxSize}
	value = d.value(root, false)
	d.count(objectBytes)
	return value, d.size, !d.gaveUp
}

// SizeOf returns the approximate memory of a decoded object, as Decode does.
func SizeOf(v any) int64 { return objectBytes + sizeOf(v) }

func sizeOf(v any) int64 {
	switch v := v.(type) {
	case map[string]any:
		size := int64(max(mapBytes, entryBytes*len(v)))
		for key, field := range v {
			size += int64(len(key)) + sizeOf(field)
		}
		return size
	case []any:
		size := int64(2*valueBytes + valueBytes*len(v))
		for _, item := range v {
			size += sizeOf(item)
		}
		return size
	case string:
		return int64(valueBytes + len(v))
	}
	return valueBytes
}

type decoder struct {
	report  *Report
	root    *yaml.Node
	ownKind bool // the document is of one of gitfleet's kinds

	at       *FieldPath   // of the current value
	depth    int          // number of steps in that path
	within   []*yaml.Node // aliases that are being expanded
	expanded int
	own      int // number of nodes without expansion; counted when first needed

	size, maxSize int64
	gaveUp        bool
}

// count counts decoded bytes, and stops the decoder above the limit.
func (d *decoder) count(bytes int) {
	d.size += int64(bytes)
	d.gaveUp = d.gaveUp || d.size > d.maxSize
}

func (d *decoder) giveUp(format string, args ...any) any {
	if !d.gaveUp {
		d.gaveUp = true
		d.errorf(format, args...)
	}
	return nil
}

// value converts one node. If text is true, scalars below it are strings, however they are
// written.
func (d *decoder) value(n *yaml.Node, text bool) any {
	if d.gaveUp {
		return nil
	}
	if len(d.within) > 0 {
		if d.own == 0 {
			d.own = countNodes(d.root)
		}
		if d.expanded++; d.expanded > min(d.own*d.report.Limits.AliasExpansion, expandedNodes) {
			return d.giveUp("the YAML aliases of this document expand to more than %d times its size; write it out, or split it", d.report.Limits.AliasExpansion)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.alias(n, text)
	case yaml.MappingNode:
		return d.mapping(n, text)
	case yaml.SequenceNode:
		return d.sequence(n)
	default:
		d.count(valueBytes + len(n.Value))
		return d.scalar(n, text)
	}
}

func countNodes(n *yaml.Node) int {
	count := 1
	for _, child := range n.Content {
		count += countNodes(child)
	}
	return count
}

func (d *decoder) alias(n *yaml.Node, text bool) any {
	return d.expand(n, func() any { return d.value(n.Alias, text) })
}

// expand decodes an alias, unless that is being done already.
func (d *decoder) expand(n *yaml.Node, decode func() any) any {
	if slices.Contains(d.within, n.Alias) {
		return d.giveUp("the YAML anchor %q contains itself", n.Value)
	}
	d.within = append(d.within, n.Alias)
	defer func() { d.within = d.within[:len(d.within)-1] }()
	return decode()
}

func (d *decoder) deeper() bool {
	if d.depth < d.report.Limits.Depth {
		return true
	}
	d.giveUp("nested deeper than %d levels", d.report.Limits.Depth)
	return false
}

func (d *decoder) sequence(n *yaml.Node) any {
	if tagOf(n) != "!!seq" {
		d.errorf("the YAML tag %s is not supported; write a plain list", n.Tag)
	}
	if !d.deeper() {
		return nil
	}
	d.count(2*valueBytes + valueBytes*len(n.Content))
	list := make([]any, len(n.Content))
	for i, child := range n.Content {
		d.below(d.at.At(i), func() { list[i] = d.value(child, false) })
	}
	return list
}

func (d *decoder) mapping(n *yaml.Node, text bool) any {
	if tagOf(n) != "!!map" {
		d.errorf("the YAML tag %s is not supported; write a plain mapping", n.Tag)
	}
	if !d.deeper() {
		return nil
	}
	if d.depth == 2 && d.at.up.IsField("items") {
		d.ownKind = IsOwnKind(n)
	}
	d.count(max(mapBytes, entryBytes*len(n.Content)/2))
	m := make(map[string]any, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merged = append(merged, n.Content[i+1])
		} else {
			d.pair(m, n, i, text)
		}
	}
	for _, from := range merged {
		d.merge(m, from, text)
	}
	return m
}

func (d *decoder) pair(m map[string]any, n *yaml.Node, i int, text bool) {
	key, ok := d.key(n.Content[i])
	if !ok {
		return
	}
	d.below(d.at.Child(key), func() {
		if _, twice := m[key]; twice {
			d.duplicate(n, i)
			return
		}
		m[key] = d.value(n.Content[i+1], text || d.textBelow())
	})
}

// below runs decode at a path one step further down.
func (d *decoder) below(p *FieldPath, decode func()) {
	up := d.at
	d.at, d.depth = p, d.depth+1
	decode()
	d.at, d.depth = up, d.depth-1
}

// duplicate reports a duplicate key at its second occurrence; the report by itself would find
// the line of the first.
func (d *decoder) duplicate(n *yaml.Node, i int) {
	again := n.Content[i]
	if d.report.Full(problem.Error) {
		return
	}
	for j := 0; j < i; j += 2 {
		if first := n.Content[j]; first.Value == again.Value {
			d.errorf("this key is already set on line %d; remove one of them", d.report.LinesBefore+first.Line)
			if d.report.Root != nil {
				d.report.Problems[len(d.report.Problems)-1].Line = d.report.LinesBefore + again.Line
			}
			return
		}
	}
}

// merge adds the fields of merged mappings (<<) that the mapping does not set. The first of
// several merged mappings wins.
func (d *decoder) merge(m map[string]any, n *yaml.Node, text bool) {
	sources := []*yaml.Node{n}
	switch list := dealias(n); {
	case list.Kind == yaml.SequenceNode && list != n:
		d.expand(n, func() any { d.merge(m, list, text); return nil })
		return
	case list.Kind == yaml.SequenceNode:
		sources = list.Content
	}
	for _, source := range sources {
		if dealias(source).Kind != yaml.MappingNode {
			d.errorf("only mappings can be merged with <<")
			return
		}
		from, _ := d.value(source, text).(map[string]any)
		for key, value := range from {
			if _, set := m[key]; !set {
				d.count(entryBytes)
				m[key] = value
			}
		}
	}
}

// textBelow reports whether the values of the current field are strings, however they are
// written, since users often write the values of labels as numbers.
func (d *decoder) textBelow() bool {
	if d.at.IsField("matchLabels") {
		return d.ownKind
	}
	if !d.at.IsField("labels") || !d.at.up.IsField("metadata") {
		return false
	}
	return d.depth == 2 || d.depth == 4 && d.at.up.up.up.IsField("items")
}
