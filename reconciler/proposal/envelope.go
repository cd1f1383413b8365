package proposal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// inEnvelope converts changes of an object in an envelope into changes of the envelope. Changes
// of an object that is not in an envelope are returned unchanged.
func inEnvelope(source *api.Object, m *work.Manifest, changes []Change) ([]Change, error) {
	if m.Envelope == nil {
		return changes, nil
	}
	data, _ := source.Object.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		at := "/data/" + api.EscapeKey(key)
		switch entry := data[key].(type) {
		case map[string]any:
			if idOf(entry) != m.ID {
				continue
			}
			out := slices.Clone(changes)
			for i := range out {
				out[i].Path = at + out[i].Path
			}
			return out, nil
		case string:
			in := documentOf(m.ID)
			if _, err := in([]byte(entry)); err != nil {
				continue
			}
			text, err := editAll([]byte(entry), in, changes)
			if err != nil {
				return nil, fmt.Errorf("%s: in the text of %s: %w", source.Origin, at, err)
			}
			return []Change{{Path: at, Value: string(text)}}, nil
		}
	}
	return nil, fmt.Errorf("%s: the envelope has no entry with the object", source.Origin)
}

// documentOf returns a finder of the document with an object.
func documentOf(id api.ID) finder {
	return func(text []byte) (*yaml.Node, error) {
		var found *yaml.Node
		err := eachDocument(text, func(doc *yaml.Node) {
			var object map[string]any
			if doc.Decode(&object) == nil && idOf(object) == id {
				found = doc
			}
		})
		if found == nil && err == nil {
			err = errors.New("the object is not in the text")
		}
		return found, err
	}
}

// idOf returns the ID of a decoded object.
func idOf(object map[string]any) api.ID {
	return api.IDOf(&unstructured.Unstructured{Object: object})
}
