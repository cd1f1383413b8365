package hub

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// expandedNodes limits the nodes of a document after its aliases are expanded, since all of them
// are in memory.
const expandedNodes = 250_000

// A converter converts the YAML nodes of one document into the values of package unstructured:
// map[string]any, []any, string, bool, int64, float64 and nil. It reads scalars as kubectl does
// and refuses ambiguous ones. Its messages quote no values, since the document may be a Secret.
type converter struct {
	r      *report
	limits Limits
	words  vocabulary
	// ours says that the document is of one of gitfleet's kinds.
	ours bool

	steps    []step
	within   []*yaml.Node // aliases being expanded
	expanded int
	own      int // nodes of the document without expansion; counted when needed
	nodes    *yaml.Node
	gaveUp   bool

	// size is the memory of what has been decoded, charged the part that the budget, if any, was
	// charged with. cut says that the budget was exceeded.
	size, charged int64
	budget        *budget
	cut           bool
}

type step struct {
	key   string
	index int
}

func (c *converter) here() *fieldPath {
	var p *fieldPath
	for _, s := range c.steps {
		p = &fieldPath{up: p, key: s.key, index: s.index}
	}
	return p
}

func (c *converter) errorf(format string, args ...any) { c.r.errorf(c.here(), format, args...) }

func (c *converter) giveUp(format string, args ...any) any {
	if !c.gaveUp {
		c.gaveUp = true
		c.errorf(format, args...)
	}
	return nil
}

// document converts a whole document; ok is false if it was given up.
func (c *converter) document(n *yaml.Node) (value any, ok bool) {
	c.nodes = n
	value = c.value(n, false)
	c.count(objectBytes)
	c.charge()
	return value, !c.gaveUp
}

// value converts one node. If text is true, scalars below it are strings, however they are
// written.
func (c *converter) value(n *yaml.Node, text bool) any {
	if c.gaveUp {
		return nil
	}
	if len(c.within) > 0 {
		c.expanded++
		if c.tooLarge() {
			return c.giveUp("the YAML aliases of this document expand to more than %d times its size; write it out, or split it", c.limits.AliasExpansion)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n, text)
	case yaml.MappingNode:
		return c.mapping(n, text)
	case yaml.SequenceNode:
		return c.sequence(n)
	default:
		c.count(valueBytes + len(n.Value))
		return c.scalar(n, text)
	}
}

func (c *converter) tooLarge() bool {
	if c.own == 0 {
		c.own = countNodes(c.nodes)
	}
	return c.expanded > c.own*c.limits.AliasExpansion || c.expanded > expandedNodes
}

func countNodes(n *yaml.Node) int {
	count := 1
	for _, child := range n.Content {
		count += countNodes(child)
	}
	return count
}

func (c *converter) alias(n *yaml.Node, text bool) any {
	if slices.Contains(c.within, n.Alias) {
		return c.giveUp("the YAML anchor %q contains itself", n.Value)
	}
	c.within = append(c.within, n.Alias)
	defer func() { c.within = c.within[:len(c.within)-1] }()
	return c.value(n.Alias, text)
}

func (c *converter) deeper() bool {
	if len(c.steps) < c.limits.Depth {
		return true
	}
	c.giveUp("nested deeper than %d levels", c.limits.Depth)
	return false
}

func (c *converter) sequence(n *yaml.Node) any {
	if tagOf(n) != "!!seq" {
		c.errorf("the YAML tag %s is not supported; write a plain list", n.Tag)
	}
	if !c.deeper() {
		return nil
	}
	c.count(2*valueBytes + valueBytes*len(n.Content))
	list := make([]any, len(n.Content))
	for i, child := range n.Content {
		c.steps = append(c.steps, step{index: i})
		list[i] = c.value(child, c.textBelow())
		c.steps = c.steps[:len(c.steps)-1]
	}
	return list
}

func (c *converter) mapping(n *yaml.Node, text bool) any {
	if tagOf(n) != "!!map" {
		c.errorf("the YAML tag %s is not supported; write a plain mapping", n.Tag)
	}
	if !c.deeper() {
		return nil
	}
	if len(c.steps) == 2 && c.steps[0].key == "items" {
		c.ours = isOurs(n)
	}
	c.count(max(mapBytes, entryBytes*len(n.Content)/2))
	m := make(map[string]any, len(n.Content)/2)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merges = true
			continue
		}
		c.pair(m, n, i, text)
	}
	for i := 0; merges && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			c.merge(m, n.Content[i+1], text)
		}
	}
	return m
}

func (c *converter) pair(m map[string]any, n *yaml.Node, i int, text bool) {
	key, ok := c.key(n.Content[i])
	if !ok {
		return
	}
	c.steps = append(c.steps, step{key: key})
	defer func() { c.steps = c.steps[:len(c.steps)-1] }()
	if _, twice := m[key]; twice {
		c.duplicate(n, i)
		return
	}
	m[key] = c.value(n.Content[i+1], text || c.textBelow())
}

// duplicate reports a duplicate key at its second occurrence; the report would find the line of
// the first.
func (c *converter) duplicate(n *yaml.Node, i int) {
	again := n.Content[i]
	if c.r.full() {
		return
	}
	for j := 0; j < i; j += 2 {
		if first := n.Content[j]; first.Value == again.Value {
			c.errorf("this key is already set on line %d; remove one of them", c.r.offset+first.Line)
			if c.r.root != nil {
				c.r.problems[len(c.r.problems)-1].Line = c.r.offset + again.Line
			}
			return
		}
	}
}

// merge adds the fields of merged mappings that the mapping does not set. The first of several
// merged mappings wins.
func (c *converter) merge(m map[string]any, n *yaml.Node, text bool) {
	sources := []*yaml.Node{n}
	if list := dealias(n); list.Kind == yaml.SequenceNode {
		sources = list.Content
	}
	for _, source := range sources {
		if dealias(source).Kind != yaml.MappingNode {
			c.errorf("only mappings can be merged with <<")
			return
		}
		from, _ := c.value(source, text).(map[string]any)
		for key, value := range from {
			if _, set := m[key]; !set {
				c.count(entryBytes)
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

// textBelow reports whether the values below the last step are strings, however they are
// written: users often write values of labels as numbers.
func (c *converter) textBelow() bool {
	n := len(c.steps)
	if n == 0 {
		return false
	}
	last := c.steps[n-1].key
	if last == "matchLabels" {
		return c.ours
	}
	return last == "labels" && n >= 2 && c.steps[n-2].key == "metadata" && (n == 2 || n == 4 && c.steps[0].key == "items")
}
