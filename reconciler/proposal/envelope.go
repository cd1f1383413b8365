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

// inEnvelope converts edits of an object in an envelope into edits of the envelope. Edits
// of an object that is not in an envelope, or that an overlay builds, are returned unchanged.
func inEnvelope(source *api.Object, m *work.Manifest, edits []FieldEdit) ([]FieldEdit, error) {
	if m.Envelope == nil || m.Envelope.Type.IsBuilt() {
		return edits, nil
	}
	at, entry, err := envelopeEntry(source, m.ID)
	if err != nil {
		return nil, err
	}
	if text, isText := entry.(string); isText {
		edited, err := editAll([]byte(text), documentOf(m.ID), edits)
		if err != nil {
			return nil, fmt.Errorf("%s: in the text of %s: %w", source.Origin, at, err)
		}
		return []FieldEdit{{Path: at, Value: string(edited)}}, nil
	}
	out := slices.Clone(edits)
	for i := range out {
		out[i].Path = at + out[i].Path
	}
	return out, nil
}

// envelopeEntry returns the entry of an envelope with an object, and its JSON pointer.
func envelopeEntry(source *api.Object, id api.ID) (at string, entry any, err error) {
	data, _ := source.Content.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		found := false
		switch entry := data[key].(type) {
		case map[string]any:
			found = idOf(entry) == id
		case string:
			_, err := documentOf(id)([]byte(entry))
			found = err == nil
		}
		if found {
			return "/data/" + api.EscapeKey(key), data[key], nil
		}
	}
	return "", nil, fmt.Errorf("%s: the envelope has no entry with the object", source.Origin)
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
