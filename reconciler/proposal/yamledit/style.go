package yamledit

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
)

// A layout is how a file is written.
type layout struct {
	// indent is the number of spaces by which a map is indented in another one.
	indent int
	// compact says that a list is indented like the key that has it.
	compact bool
}

// usual is the layout of new files.
var usual = layout{indent: 2}

// layoutOf returns the layout of a document, from the first map and the first list in it.
func layoutOf(root *yaml.Node) layout {
	out := usual
	var foundMap, foundList bool
	var visit func(*yaml.Node)
	visit = func(n *yaml.Node) {
		for i, value := range n.Content {
			if n.Style&yaml.FlowStyle != 0 || foundMap && foundList {
				return
			}
			block := i%2 == 1 && n.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && value.Line > n.Content[i-1].Line
			switch {
			case block && value.Kind == yaml.MappingNode && !foundMap:
				foundMap, out.indent = true, value.Column-n.Column
			case block && value.Kind == yaml.SequenceNode && !foundList:
				foundList, out.compact = true, value.Column == n.Column
			}
			visit(value)
		}
	}
	visit(root)
	return out
}

// block formats a value as YAML.
func (l layout) block(v any) (string, error) {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return "", err
	}
	quoteInvisible(&n)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(l.indent)
	if l.compact {
		e.CompactSeqIndent()
	}
	err := e.Encode(&n)
	return escapeInvisible(out.String(), false), err
}

// Block formats a value as YAML for a new file.
func Block(v any) (string, error) { return usual.block(v) }

// hasInvisible reports whether a reader of a text would see another one. Line ends and tabs in texts of several lines
// do not count.
func hasInvisible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && markdown.Invisible(r) })
}

// quoteInvisible writes the texts with invisible characters in double quotes, in which they can be escaped.
func quoteInvisible(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && hasInvisible(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		quoteInvisible(child)
	}
}

// escapeInvisible escapes the invisible characters of a text in YAML or JSON, which has them in double quotes only.
func escapeInvisible(text string, isJSON bool) string {
	if !hasInvisible(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case r == '\n' || r == '\t' || !markdown.Invisible(r):
			out.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04X`, r)
		case isJSON:
			fmt.Fprintf(&out, `\u%04X\u%04X`, high, low)
		default:
			fmt.Fprintf(&out, `\U%08X`, r)
		}
	}
	return out.String()
}

// byteOrderMark may begin a file. It is not part of its text.
var byteOrderMark = []byte("\ufeff")

// lineEnd returns the line end that a file has at an offset: that of the line, or of the one before if it is the last
// one and has none.
func lineEnd(text []byte, at int) string {
	end := bytes.IndexByte(text[at:], '\n')
	if end >= 0 {
		end += at
	} else {
		end = bytes.LastIndexByte(text[:at], '\n')
	}
	if end > 0 && text[end-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// otherLineEnds reports whether a text has characters that end a line in YAML and in no editor, so that its lines
// cannot be counted.
func otherLineEnds(text []byte) bool {
	return bytes.ContainsAny(text, "\u0085\u2028\u2029") || bytes.Count(text, []byte("\r")) != bytes.Count(text, []byte("\r\n"))
}

// withFinalNewline returns an edited text that ends with a line end if and only if the text before does.
func withFinalNewline(before, after []byte) []byte {
	end := lineEnd(before, len(before))
	had, has := bytes.HasSuffix(before, []byte("\n")), bytes.HasSuffix(after, []byte("\n"))
	switch {
	case len(before) == 0 || len(after) == 0 || had == has:
		return after
	case had:
		return append(bytes.Clone(after), end...)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(after, []byte("\n")), []byte("\r"))
}
