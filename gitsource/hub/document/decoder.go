package document

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
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

// A Decoder converts the YAML nodes of one document into the values of package unstructured:
// map[string]any, []any, string, bool, int64, float64 and nil. It reads scalars as kubectl
// does, and refuses ambiguous ones. Its messages quote no values, since the document may be a
// Secret.
type Decoder struct {
	// Report receives the problems.
	Report *Report
	// Strings is shared by all documents that one goroutine decodes; nil if the values are not kept.
	Strings Interner
	// OwnKind says that the document is of one of gitfleet's kinds.
	OwnKind bool

	at       *FieldPath   // of the current value
	depth    int          // number of steps in that path
	within   []*yaml.Node // aliases that are being expanded
	expanded int
	own      int // number of nodes without expansion; counted when first needed
	nodes    *yaml.Node
	gaveUp   bool

	// Budget, if not nil, limits the memory of the decoded values. Size is that memory, and Cut
	// says that the budget was exceeded.
	Budget *limit.Budget
	Size   int64
	Cut    bool
}

// count counts decoded bytes, and stops the decoder once the budget is used up.
func (d *Decoder) count(bytes int) {
	d.Size += int64(bytes)
	if d.Budget != nil && !d.Budget.Charge(int64(bytes)) {
		d.gaveUp, d.Cut = true, true
	}
}

func (d *Decoder) errorf(format string, args ...any) { d.Report.Errorf(d.at, format, args...) }

func (d *Decoder) giveUp(format string, args ...any) any {
	if !d.gaveUp {
		d.gaveUp = true
		d.errorf(format, args...)
	}
	return nil
}

// Decode converts a whole document. ok is false if it gave up.
func (d *Decoder) Decode(n *yaml.Node) (value any, ok bool) {
	d.nodes = n
	value = d.value(n, false)
	d.count(objectBytes)
	return value, !d.gaveUp
}

// value converts one node. If text is true, scalars below it are strings, however they are
// written.
func (d *Decoder) value(n *yaml.Node, text bool) any {
	if d.gaveUp {
		return nil
	}
	if len(d.within) > 0 {
		d.expanded++
		if d.tooLarge() {
			return d.giveUp("the YAML aliases of this document expand to more than %d times its size; write it out, or split it", d.Report.Limits.AliasExpansion)
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

func (d *Decoder) tooLarge() bool {
	if d.own == 0 {
		d.own = countNodes(d.nodes)
	}
	return d.expanded > d.own*d.Report.Limits.AliasExpansion || d.expanded > expandedNodes
}

func countNodes(n *yaml.Node) int {
	count := 1
	for _, child := range n.Content {
		count += countNodes(child)
	}
	return count
}

func (d *Decoder) alias(n *yaml.Node, text bool) any {
	if slices.Contains(d.within, n.Alias) {
		return d.giveUp("the YAML anchor %q contains itself", n.Value)
	}
	d.within = append(d.within, n.Alias)
	defer func() { d.within = d.within[:len(d.within)-1] }()
	return d.value(n.Alias, text)
}

func (d *Decoder) deeper() bool {
	if d.depth < d.Report.Limits.Depth {
		return true
	}
	d.giveUp("nested deeper than %d levels", d.Report.Limits.Depth)
	return false
}

func (d *Decoder) sequence(n *yaml.Node) any {
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

func (d *Decoder) mapping(n *yaml.Node, text bool) any {
	if tagOf(n) != "!!map" {
		d.errorf("the YAML tag %s is not supported; write a plain mapping", n.Tag)
	}
	if !d.deeper() {
		return nil
	}
	if d.depth == 2 && d.at.up.IsField("items") {
		d.OwnKind = IsOwnKind(n)
	}
	d.count(max(mapBytes, entryBytes*len(n.Content)/2))
	m := make(map[string]any, len(n.Content)/2)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merges = true
			continue
		}
		d.pair(m, n, i, text)
	}
	for i := 0; merges && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			d.merge(m, n.Content[i+1], text)
		}
	}
	return m
}

func (d *Decoder) pair(m map[string]any, n *yaml.Node, i int, text bool) {
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
func (d *Decoder) below(p *FieldPath, decode func()) {
	up := d.at
	d.at, d.depth = p, d.depth+1
	decode()
	d.at, d.depth = up, d.depth-1
}

// duplicate reports a duplicate key at its second occurrence; the report by itself would find
// the line of the first.
func (d *Decoder) duplicate(n *yaml.Node, i int) {
	again := n.Content[i]
	if d.Report.Full(problem.Error) {
		return
	}
	for j := 0; j < i; j += 2 {
		if first := n.Content[j]; first.Value == again.Value {
			d.errorf("this key is already set on line %d; remove one of them", d.Report.LinesBefore+first.Line)
			if d.Report.Root != nil {
				d.Report.Problems[len(d.Report.Problems)-1].Line = d.Report.LinesBefore + again.Line
			}
			return
		}
	}
}

// merge adds the fields of merged mappings (<<) that the mapping does not set. The first of
// several merged mappings wins.
func (d *Decoder) merge(m map[string]any, n *yaml.Node, text bool) {
	sources := []*yaml.Node{n}
	if list := dealias(n); list.Kind == yaml.SequenceNode {
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

func dealias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// textBelow reports whether the values of the current field are strings, however they are
// written, since users often write the values of labels as numbers.
func (d *Decoder) textBelow() bool {
	if d.at.IsField("matchLabels") {
		return d.OwnKind
	}
	if !d.at.IsField("labels") || !d.at.up.IsField("metadata") {
		return false
	}
	return d.depth == 2 || d.depth == 4 && d.at.up.up.up.IsField("items")
}
