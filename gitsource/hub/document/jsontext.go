package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseJSON parses JSON values into YAML nodes with their lines, and the columns of mappings, so that both formats are
// handled alike. After a syntax error it returns the values before it, and the line and the
// message of the error. The YAML parser cannot be used: escaped surrogate pairs of JSON are not
// valid YAML.
func parseJSON(data []byte, depth int) (docs []*yaml.Node, line int, fault string) {
	p := &jsonParser{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1, depth: depth}
	p.decoder.UseNumber()
	for {
		n, err := p.next(0)
		if errors.Is(err, io.EOF) {
			return docs, 0, ""
		}
		if err == nil {
			docs = append(docs, n)
			continue
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file ends in the middle of a value")
		}
		// The offset is that of the wrong token, or the end of the last one.
		return docs, p.lineAt(p.decoder.InputOffset()), strings.TrimPrefix(err.Error(), "json: ")
	}
}

type jsonParser struct {
	decoder *json.Decoder
	data    []byte
	depth   int

	// line is the line of offset at, and column the number of characters before it in that line.
	line, column int
	at           int64
}

func (p *jsonParser) lineAt(offset int64) int {
	offset = min(offset, int64(len(p.data)))
	if offset > p.at {
		passed := p.data[p.at:offset]
		if last := bytes.LastIndexByte(passed, '\n'); last >= 0 {
			p.line, p.column = p.line+bytes.Count(passed, []byte("\n")), 0
			passed = passed[last+1:]
		}
		p.column += utf8.RuneCount(passed)
		p.at = offset
	}
	return p.line
}

// next reads one value. Commas and colons are skipped by the decoder.
func (p *jsonParser) next(depth int) (*yaml.Node, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.lineAt(p.decoder.InputOffset())}
	if depth > p.depth {
		return nil, fmt.Errorf("nested deeper than %d levels", p.depth)
	}
	switch t := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			n.Kind, n.Tag, n.Column = yaml.MappingNode, "!!map", p.column
		}
		for p.decoder.More() {
			child, err := p.next(depth + 1)
			if err != nil {
				return nil, midValue(err)
			}
			n.Content = append(n.Content, child)
		}
		_, err := p.decoder.Token()
		return n, midValue(err)
	case string:
		n.Tag, n.Value, n.Style = "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(t)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// midValue distinguishes an end of file within a value from one between values.
func midValue(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
