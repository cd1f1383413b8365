package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A source is the text of a file with the offsets of its lines.
type source struct {
	text   []byte
	starts []int // offset of each line, and the end of the text
	layout layout
}

// A cut replaces the text between two offsets.
type cut struct {
	from, to int
	text     string
	// other is another form of the text, if the first one does not give the value; empty if there is none.
	other string
}

var (
	errSpans    = errors.New("its value spans several lines")
	errNested   = errors.New("its value is a list or a map, and is written in a form that cannot be replaced")
	errUnclosed = errors.New("the end of its value was not found")
	// errInvisible is about values that a reviewer would read as others.
	errInvisible = errors.New("its value has characters that are invisible or turn the direction of the text, and is written in a form in which they cannot be escaped")
)

func newSource(text []byte) *source {
	s := &source{text, []int{0}, usual}
	for i, b := range text {
		if b == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	if n := len(text); s.starts[len(s.starts)-1] != n {
		s.starts = append(s.starts, n)
	}
	return s
}

// line returns a line without its end; lines count from 1.
func (s *source) line(n int) string {
	return strings.TrimRight(string(s.text[s.starts[n-1]:s.starts[n]]), "\r\n")
}

// count is the number of lines.
func (s *source) count() int { return len(s.starts) - 1 }

// offset returns the offset of a node.
func (s *source) offset(n *yaml.Node) int {
	at := s.starts[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(s.text[at:])
		at += size
	}
	return at
}

// cutFor returns the replacement of text that makes an edit.
func (s *source) cutFor(f *field, e FieldEdit) (cut, error) {
	flow := f.parent.Style&yaml.FlowStyle != 0
	switch {
	case e.Remove && f.node == nil:
		return cut{}, errors.New("it is not in the manifest")
	case e.Remove && flow:
		return s.removeFlow(f)
	case e.Remove:
		return s.removeBlock(f)
	case f.node == nil && flow:
		return s.addFlow(f, e.Value)
	case f.node == nil:
		return s.addBlock(f, e.Value)
	case f.node.Kind != yaml.ScalarNode || collection(e.Value):
		return s.replaceEntry(f, e.Value, flow)
	case f.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return s.replaceBlockScalar(f, e.Value)
	}
	from := s.offset(f.node)
	to, err := s.end(f.node)
	if err != nil {
		return cut{}, err
	}
	text, err := scalar(e.Value, f.node.Style, flow)
	if from == to { // the value is empty
		text = " " + text
	}
	return cut{from: from, to: to, text: text}, err
}

func collection(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// end returns the end of a scalar, or of a flow collection on one line.
func (s *source) end(n *yaml.Node) (int, error) {
	at := s.offset(n)
	rest := s.text[at:s.starts[n.Line]]
	switch {
	case n.Kind == yaml.AliasNode:
		return 0, errNested
	case n.Style&yaml.FlowStyle != 0:
		return s.closing(at)
	case n.Kind != yaml.ScalarNode:
		return 0, errNested
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		end := quoted(s.text, at)
		if end < 0 || end > at+len(rest) {
			return 0, errSpans
		}
		return end, nil
	case n.Tag == "!!null" && n.Value == "":
		return at, nil
	case !bytes.HasPrefix(rest, []byte(n.Value)):
		return 0, errSpans
	}
	return at + len(n.Value), nil
}

// quoted returns the end of the quoted scalar that begins at an offset; -1 if it has none.
func quoted(text []byte, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return -1
}

// closing returns the end of the flow collection that begins at an offset.
func (s *source) closing(at int) (int, error) {
	depth := 0
	for i := at; i < len(s.text); i++ {
		switch b := s.text[i]; {
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case (b == '"' || b == '\'') && strings.IndexByte(" \t\n{[,:", s.text[i-1]) >= 0:
			end := quoted(s.text, i)
			if end < 0 {
				return 0, errUnclosed
			}
			i = end - 1
		case b == '#' && strings.IndexByte(" \t\n", s.text[i-1]) >= 0:
			next := bytes.IndexByte(s.text[i:], '\n')
			if next < 0 {
				return 0, errUnclosed
			}
			i += next
		}
	}
	return 0, errUnclosed
}

// scalar formats a value in the given style if possible.
func scalar(v any, style yaml.Style, flow bool) (string, error) {
	text, isText := v.(string)
	if !isText {
		raw, err := json.Marshal(v)
		return string(raw), err
	}
	switch {
	case hasInvisible(text) || strings.ContainsFunc(text, unicode.IsControl):
	case style&yaml.SingleQuotedStyle != 0:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'", nil
	case style&yaml.DoubleQuotedStyle != 0:
	case flow && strings.ContainsAny(text, ",[]{}"):
	default:
		raw, err := yaml.Marshal(text)
		return strings.TrimSuffix(string(raw), "\n"), err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return escapeInvisible(strings.TrimSuffix(out.String(), "\n"), false), err
}

// indentation returns the number of spaces at the beginning of a line.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// after returns the line after a block that begins on a line and is indented more than indent.
// Blank lines and comments at its end are not part of it. A list that is the value of a key may
// be indented like the key itself.
func (s *source) after(line, indent int, list bool) int {
	last := line
	for n := line + 1; n <= s.count(); n++ {
		text := s.line(n)
		trimmed := strings.TrimLeft(text, " \t")
		switch depth := indentation(text); {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") && depth <= indent:
			continue
		case depth > indent:
		case list && depth == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- ")):
		default:
			return last + 1
		}
		last = n
	}
	return last + 1
}

// extent returns the line after an entry of a block mapping or sequence.
func (s *source) extent(f *field, key, node *yaml.Node) int {
	if f.parent.Kind == yaml.SequenceNode {
		return s.after(node.Line, f.parent.Column-1, false)
	}
	return s.after(key.Line, f.parent.Column-1, node.Kind == yaml.SequenceNode)
}

// at returns the offset of the start of a line, and the length of the text for the line
// after the last one.
func (s *source) at(line int) int { return s.starts[min(line-1, len(s.starts)-1)] }

func (s *source) removeBlock(f *field) (cut, error) {
	begin := f.key
	if begin == nil {
		begin = f.node
	}
	end := s.extent(f, f.key, f.node)
	if prefix := s.line(begin.Line)[:s.offset(begin)-s.starts[begin.Line-1]]; f.key != nil && strings.TrimSpace(prefix) != "" {
		// the first key of a list item is behind the dash, and the next key moves there
		next := f.parent.Content[2]
		if f.key != f.parent.Content[0] || next.Line < end {
			return cut{}, errNested
		}
		return cut{from: s.offset(f.key), to: s.offset(next)}, nil
	}
	return cut{from: s.starts[begin.Line-1], to: s.at(end)}, nil
}

func (s *source) addBlock(f *field, v any) (cut, error) {
	if len(f.parent.Content) == 0 {
		return cut{}, errNested
	}
	n := len(f.parent.Content)
	key, node := (*yaml.Node)(nil), f.parent.Content[n-1]
	if f.parent.Kind == yaml.MappingNode {
		key = f.parent.Content[n-2]
	}
	indent := strings.Repeat(" ", f.parent.Column-1)
	var wrapped any = map[string]any{f.last: v}
	if key == nil {
		wrapped = []any{v}
	}
	text, err := s.layout.block(wrapped)
	if err != nil {
		return cut{}, err
	}
	text = indent + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+indent) + "\n"
	at := s.at(s.extent(f, key, node))
	if at > 0 && s.text[at-1] != '\n' {
		text = "\n" + strings.TrimSuffix(text, "\n")
	}
	return cut{from: at, to: at, text: text}, nil
}

func (s *source) addFlow(f *field, v any) (cut, error) {
	end, err := s.closing(s.offset(f.parent))
	if err != nil {
		return cut{}, err
	}
	text, err := flowText(v, s.isJSON(f.parent))
	if f.parent.Kind == yaml.MappingNode {
		name, _ := scalar(f.last, s.keyStyle(f.parent), true)
		text = name + ": " + text
	}
	at := end - 1
	if len(f.parent.Content) > 0 {
		last, err := s.end(f.parent.Content[len(f.parent.Content)-1])
		if err != nil {
			return cut{}, err
		}
		at, text = last, ", "+text
	}
	return cut{from: at, to: at, text: text}, err
}

// isJSON reports whether the keys of a flow mapping are quoted, as in JSON.
func (s *source) isJSON(n *yaml.Node) bool { return s.keyStyle(n) == yaml.DoubleQuotedStyle }

func (s *source) keyStyle(n *yaml.Node) yaml.Style {
	if len(n.Content) == 0 {
		return 0
	}
	return n.Content[0].Style & yaml.DoubleQuotedStyle
}

func (s *source) removeFlow(f *field) (cut, error) {
	begin, width := f.key, 2
	if begin == nil {
		begin, width = f.node, 1
	}
	to, err := s.end(f.node)
	if err != nil {
		return cut{}, err
	}
	from := s.offset(begin)
	for i := 0; i < len(f.parent.Content); i += width {
		if f.parent.Content[i] != begin {
			continue
		}
		if i+width < len(f.parent.Content) {
			return cut{from: from, to: s.offset(f.parent.Content[i+width])}, nil
		}
		if i > 0 {
			if from, err = s.end(f.parent.Content[i-1]); err != nil {
				return cut{}, err
			}
		}
	}
	return cut{from: from, to: to}, nil
}

// blockHeader matches the header of a literal or folded scalar: its style, the number of spaces of its indentation, what
// becomes of the line ends at its end, and a comment.
var blockHeader = regexp.MustCompile(`^([|>])(?:([1-9])[+-]?|[+-]([1-9]?))?(.*)$`)

// replaceBlockScalar replaces the lines of a literal or folded scalar. A folded one stays folded if it can express the
// text, with the lines that it has.
func (s *source) replaceBlockScalar(f *field, v any) (cut, error) {
	text, isText := v.(string)
	if !isText || text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return cut{}, errSpans
	}
	from, indent := s.offset(f.node), f.parent.Column-1+s.layout.indent
	end := s.after(f.node.Line, f.parent.Column-1, false)
	var old []string
	for n := f.node.Line + 1; n < end; n++ {
		line := s.line(n)
		if strings.TrimSpace(line) != "" && strings.TrimSpace(strings.Join(old, "")) == "" {
			indent = indentation(line)
		}
		old = append(old, strings.TrimPrefix(line, strings.Repeat(" ", min(indent, indentation(line)))))
	}
	header := blockHeader.FindStringSubmatch(string(s.text[from : from+len(s.line(f.node.Line))-(from-s.starts[f.node.Line-1])]))
	if header == nil || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return cut{}, errSpans
	}
	chomp := ""
	switch body := strings.TrimRight(text, "\n"); {
	case body == text:
		chomp = "-"
	case body+"\n" != text:
		chomp = "+"
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if slices.ContainsFunc(lines, func(line string) bool { return hasInvisible(line) && !slices.Contains(old, line) }) {
		return cut{}, errInvisible
	}
	form := func(style string, lines []string) string {
		out := style + header[2] + header[3] + chomp + header[4] + "\n"
		for _, line := range lines {
			if line != "" {
				line = strings.Repeat(" ", indent) + line
			}
			out += line + "\n"
		}
		return out
	}
	literal := cut{from: from, to: s.at(end), text: form("|", lines)}
	if header[1] == ">" && chomp != "+" {
		literal.text, literal.other = form(">", folded(old, lines)), literal.text
	}
	return literal, nil
}

// folded returns the lines of a folded scalar with the given lines of text. A text of one line keeps the lines that
// the scalar had at its beginning and at its end.
func folded(old, lines []string) []string {
	if len(lines) == 1 && !slices.Contains(old, "") {
		rest, first, last := lines[0], 0, len(old)
		for first < last && strings.HasPrefix(rest, old[first]+" ") {
			rest, first = rest[len(old[first])+1:], first+1
		}
		for last > first && strings.HasSuffix(rest, " "+old[last-1]) {
			rest, last = rest[:len(rest)-len(old[last-1])-1], last-1
		}
		return slices.Concat(old[:first], []string{rest}, old[last:])
	}
	var out []string
	for i, line := range lines {
		if i > 0 {
			out = append(out, "")
		}
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// replaceEntry replaces a value where the old or the new one is a list or a map.
func (s *source) replaceEntry(f *field, v any, flow bool) (cut, error) {
	from := s.offset(f.node)
	if flow {
		to, err := s.end(f.node)
		if err != nil {
			return cut{}, err
		}
		text, err := flowText(v, s.isJSON(f.parent))
		return cut{from: from, to: to, text: text}, err
	}
	if !collection(v) { // the old value is a list or a map
		v = Canonical(v)
	}
	var text string
	var err error
	indent := f.parent.Column - 1
	if f.key == nil {
		indent = f.node.Column - 1
		text, err = s.layout.block(v)
	} else if from, err = s.end(f.key); err == nil { // the key stays as it is written
		text, err = s.layout.block(map[string]any{"k": v})
		if text = strings.TrimPrefix(text, "k"); f.node.Line > f.key.Line && strings.HasPrefix(text, ":\n") {
			from, text = s.starts[f.key.Line], strings.Repeat(" ", indent)+text[2:] // and so does what is behind it
		}
	}
	if err != nil {
		return cut{}, err
	}
	end := s.at(s.extent(f, f.key, f.node))
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+strings.Repeat(" ", indent))
	if end > 0 && s.text[end-1] == '\n' {
		text += "\n"
	}
	return cut{from: from, to: end, text: text}, nil
}

// flowText formats a value on one line: as JSON, or as YAML in flow style.
func flowText(v any, isJSON bool) (string, error) {
	if text, isText := v.(string); isText && !isJSON {
		return scalar(text, 0, true)
	}
	var n yaml.Node
	if !isJSON && n.Encode(v) == nil {
		setFlow(&n)
		quoteInvisible(&n)
		if text, err := yaml.Marshal(&n); err == nil && strings.Count(string(text), "\n") == 1 {
			return escapeInvisible(strings.TrimSuffix(string(text), "\n"), false), nil
		}
	}
	raw, err := json.Marshal(v)
	return escapeInvisible(string(raw), true), err
}

func setFlow(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	for _, child := range n.Content {
		if collection := child.Kind == yaml.MappingNode || child.Kind == yaml.SequenceNode; collection {
			setFlow(child)
		}
	}
}
