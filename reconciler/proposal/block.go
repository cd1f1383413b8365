package proposal

import (
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// replaceEntry replaces a value where the old or the new one is a list or a map.
func (s *source) replaceEntry(f *field, v any, flow bool) (cut, error) {
	from := s.offset(f.node)
	if flow {
		to, err := s.end(f.node)
		if err != nil {
			return cut{}, err
		}
		text, err := flowText(v, s.isJSON(f.parent))
		return cut{from, to, text}, err
	}
	if !collection(v) { // the old value is a list or a map
		v = canonical(v)
	}
	indent, wrapped := f.parent.Column-1, any(map[string]any{f.last: v})
	if f.key == nil {
		indent, wrapped = f.node.Column-1, v
	} else {
		from = s.offset(f.key)
	}
	text, err := block(wrapped)
	if err != nil {
		return cut{}, err
	}
	end := s.at(s.extent(f, f.key, f.node))
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+strings.Repeat(" ", indent))
	if end > 0 && s.text[end-1] == '\n' {
		text += "\n"
	}
	return cut{from, end, text}, nil
}

// flowText formats a value on one line: as JSON, or as YAML in flow style.
func flowText(v any, isJSON bool) (string, error) {
	if text, isText := v.(string); isText && !isJSON {
		return scalar(text, 0, true)
	}
	var n yaml.Node
	if !isJSON && n.Encode(v) == nil {
		setFlow(&n)
		if text, err := yaml.Marshal(&n); err == nil && strings.Count(string(text), "\n") == 1 {
			return strings.TrimSuffix(string(text), "\n"), nil
		}
	}
	raw, err := json.Marshal(v)
	return string(raw), err
}

func setFlow(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	for _, child := range n.Content {
		if collection := child.Kind == yaml.MappingNode || child.Kind == yaml.SequenceNode; collection {
			setFlow(child)
		}
	}
}

// empty replaces a block mapping or sequence that loses its only entry.
func (s *source) empty(f *field) (cut, error) {
	if f.owner == nil {
		return cut{}, errors.New("it is the only one there; remove what it is in")
	}
	from, err := s.end(f.owner)
	if err != nil {
		return cut{}, err
	}
	text := " {}"
	if f.parent.Kind == yaml.SequenceNode {
		text = " []"
	}
	end := s.at(s.after(f.owner.Line, f.owner.Column-1, f.parent.Kind == yaml.SequenceNode))
	if from >= len(s.text) || s.text[from] != ':' {
		return cut{}, errNested
	}
	if s.text[end-1] == '\n' {
		text += "\n"
	}
	return cut{from + 1, end, text}, nil
}
