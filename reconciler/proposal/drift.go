package proposal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// textFields are the maps of Kubernetes objects whose values are always text.
var textFields = []string{"annotations", "labels", "matchLabels", "nodeSelector", "data", "stringData"}

// Changes returns the edits that give the manifest that begins on a line of a file the
// values that a member has. It returns a *FieldError if the file does not have the value
// that the drift names as that of Git, because the file has changed since or an override
// sets the field; and if the value is a list or a map, since a drift holds it as text
// only.
func Changes(text []byte, line int, drift []api.PatchDetail) ([]Change, error) {
	manifest, err := manifestAt(text, line)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, d := range drift {
		f, err := find(manifest, d.Path)
		if err != nil {
			return nil, err
		}
		c, err := f.change(d)
		if err != nil {
			return nil, f.fail(err.Error())
		}
		out = append(out, c)
	}
	return out, nil
}

// change returns the edit that gives a field the value that a member has.
func (f *field) change(d api.PatchDetail) (Change, error) {
	c := Change{Path: d.Path, Remove: d.ValueInMember == ""}
	switch {
	case f.node == nil && d.ValueInHub != "":
		return c, fmt.Errorf("the file has no such field; Git wants %q", d.ValueInHub)
	case f.node != nil && f.last != "-" && d.ValueInHub == "":
		return c, fmt.Errorf("the file has it already")
	case f.node != nil && f.node.Kind == yaml.ScalarNode && f.node.Value != d.ValueInHub && f.node.Tag != "!!float":
		return c, fmt.Errorf("the file has %q; Git wants %q", f.node.Value, d.ValueInHub)
	case c.Remove:
		return c, nil
	case strings.HasSuffix(d.ValueInMember, "…"):
		return c, fmt.Errorf("its value is longer than gitfleet remembers; edit it by hand, with the value of the member")
	case f.node != nil && f.node.Kind != yaml.ScalarNode,
		strings.HasPrefix(d.ValueInMember, "map[") && strings.HasSuffix(d.ValueInMember, "]"):
		return c, fmt.Errorf("its value is a list or a map; edit it by hand, with the value of the member")
	}
	c.Value = d.ValueInMember
	isText := f.node != nil && f.node.Tag == "!!str" || f.node == nil && f.owner != nil && slices.Contains(textFields, f.owner.Value)
	if isText {
		return c, nil
	}
	value := typed(d.ValueInMember)
	if _, text := value.(string); f.node == nil && (!text || strings.HasPrefix(d.ValueInMember, "[")) {
		return c, fmt.Errorf("whether its value is a text is not known; add it by hand, with the value of the member")
	}
	c.Value = value
	return c, nil
}

// typed is the JSON value that a text means: a number, a boolean, or the text itself.
func typed(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err == nil && !collection(v) && v != nil {
		return v
	}
	return text
}
