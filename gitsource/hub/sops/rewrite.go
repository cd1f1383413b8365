package sops

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

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
