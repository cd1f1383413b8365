package sops

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An edit replaces the scalar of a node, or removes the metadata with its key.
type edit struct {
	node     *yaml.Node
	to       string
	metadata *yaml.Node
}

// errLayout says that a value is written in a way that SOPS does not use.
var errLayout = errors.New("an encrypted value is not written on one line, as SOPS does it; write the file with sops again")

// rewrite makes the edits. Lines stay where they are.
func rewrite(data []byte, edits []edit, inJSON bool) ([]byte, error) {
	starts := []int{0}
	for i, b := range data {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	slices.SortStableFunc(edits, func(x, y edit) int {
		return cmp.Or(cmp.Compare(x.node.Line, y.node.Line), cmp.Compare(x.node.Column, y.node.Column))
	})
	var out bytes.Buffer
	last, line, column, start := 0, 0, 0, 0
	for _, e := range edits {
		if e.node.Line != line {
			line, column, start = e.node.Line, 1, starts[e.node.Line-1]
		}
		// From the edit before on: a file may have thousands of values on one line.
		start += columnOffset(data[min(start, len(data)):], e.node.Column-column+1)
		column = e.node.Column
		if start < last || start > len(data) {
			return nil, errLayout
		}
		out.Write(data[last:start])
		if e.metadata != nil {
			end := endOfMetadata(data, starts, e, start)
			if inJSON {
				end = jsonEnd(data, start)
				if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 && rest[0] == ',' {
					end = len(data) - len(rest) + 1
				} else {
					trimComma(&out)
				}
			}
			out.Write(blank(data[start:end]))
			last = end
			continue
		}
		written := e.node.Value
		if e.node.Style&yaml.DoubleQuotedStyle != 0 {
			written = `"` + written + `"`
		} else if e.node.Style&yaml.SingleQuotedStyle != 0 {
			written = "'" + written + "'"
		}
		if !bytes.HasPrefix(data[start:], []byte(written)) {
			return nil, errLayout
		}
		out.WriteString(e.to)
		last = start + len(written)
	}
	out.Write(data[last:])
	return out.Bytes(), nil
}

// columnOffset returns the byte at a column, which counts characters.
func columnOffset(line []byte, column int) int {
	offset := 0
	for range column - 1 {
		for offset++; offset < len(line) && line[offset]&0xc0 == 0x80; offset++ {
		}
	}
	return offset
}

// endOfMetadata returns the end of the block under sops: the next line that is not indented more.
func endOfMetadata(data []byte, starts []int, e edit, from int) int {
	indent := e.node.Column - 1
	for _, start := range starts[e.node.Line:] {
		line := data[start:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		rest := bytes.TrimLeft(line, " ")
		deeper := len(line)-len(rest) > indent
		if len(bytes.TrimSpace(rest)) > 0 && !deeper && !(indent == 0 && bytes.HasPrefix(line, []byte("- "))) {
			return start
		}
	}
	return max(from, len(data))
}

// jsonEnd returns the end of a JSON member that begins with its key.
func jsonEnd(data []byte, start int) int {
	depth, inString := 0, false
	for i := start; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// trimComma removes the comma in front of the last member of a mapping, which is removed.
func trimComma(out *bytes.Buffer) {
	before := bytes.TrimRight(out.Bytes(), " \t\r\n")
	if n := len(before); n > 0 && before[n-1] == ',' {
		before[n-1] = ' '
	}
}

// blank replaces a text by its line breaks.
func blank(text []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(text, []byte("\n"))) }

// decryptDotenv decrypts a file of lines KEY=VALUE, in which the metadata has such lines as well.
func decryptDotenv(name string, data []byte, keys Keys) (*File, error) {
	metadata, nodes := &yaml.Node{Kind: yaml.MappingNode}, 0
	lines := strings.Split(string(data), "\n")
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			if key, is := strings.CutPrefix(key, "sops_"); is {
				if nodes += insert(metadata, strings.Split(key, "__"), strings.ReplaceAll(value, `\n`, "\n")); nodes > maxNodes {
					return nil, errors.New("its metadata has more than SOPS writes")
				}
			}
		}
	}
	d, _, err := newDecrypter(name, metadata, keys)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		key, value, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "#") || !ok:
			if isEncrypted(strings.TrimPrefix(line, "#")) {
				lines[i] = ""
			}
			continue
		case strings.HasPrefix(key, "sops_"):
			lines[i] = ""
			continue
		}
		if !isEncrypted(value) {
			if !d.onlyEncrypted {
				d.mac.Write([]byte(strings.ReplaceAll(value, `\n`, "\n")))
			}
			continue
		}
		v, err := open(value, d.key, key+":")
		if err != nil {
			return nil, err
		}
		d.mac.Write([]byte(v.text))
		d.values = append(d.values, v.text)
		lines[i] = key + "=" + strings.ReplaceAll(v.text, "\n", `\n`)
	}
	if err := d.checkMAC(); err != nil {
		return nil, err
	}
	return &File{Text: []byte(strings.Join(lines, "\n")), Values: d.values, Key: keyOf(d.key)}, nil
}

// insert sets a value of nested mappings and lists: list_0 is a step into the first item of a list, and map_KEY into a mapping.
// It returns how many nodes it has added.
func insert(n *yaml.Node, steps []string, value string) (added int) {
	for _, step := range steps {
		if added > maxNodes {
			return added
		}
		if index, is := strings.CutPrefix(step, "list_"); is {
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= maxRecipients {
				return added
			}
			n.Kind = yaml.SequenceNode
			for ; len(n.Content) <= i; added++ {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.MappingNode})
			}
			n = n.Content[i]
			continue
		}
		key := strings.TrimPrefix(step, "map_")
		next := field(n, key)
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, next)
			added++
		}
		n = next
	}
	n.Kind, n.Value = yaml.ScalarNode, value
	return added
}

// maxNodes limits the metadata of a file of lines: a line of a few bytes may add a hundred nodes for each step of its key.
const maxNodes = 10_000
