package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// ErrInManifest is returned if a manifest already has the value of the member.
var ErrInManifest = errors.New("the manifest has it already")

// fieldEdits returns the edits that give a manifest the values of a member, in the order in
// which they must be made. The manifest itself is not changed. The error is a *FieldError
// without a line if the manifest does not have the value that the drift gives as that of Git,
// or if a value of the member is not known.
func fieldEdits(manifest map[string]any, drift []api.Difference) ([]yamledit.FieldEdit, error) {
	current := yamledit.Canonical(manifest)
	var out, removed []yamledit.FieldEdit
	in := 0
	for _, d := range drift {
		e, err := fieldEditOf(current, d)
		switch {
		case errors.Is(err, ErrInManifest):
			in++
		case err != nil:
			return nil, &yamledit.FieldError{Path: d.Path, Reason: err.Error()}
		case e.Remove:
			removed = append(removed, e)
		default:
			out = append(out, e)
		}
	}
	if in > 0 {
		if in < len(drift) {
			return nil, &yamledit.FieldError{Path: drift[0].Path, Reason: "the manifest has some of the change"}
		}
		return nil, ErrInManifest
	}
	slices.Reverse(removed) // the last item of a list is removed first
	out = append(out, removed...)
	for i, e := range out {
		e = withParents(current, e)
		next, err := yamledit.Apply(current, api.SplitPointer(e.Path), e)
		if err != nil {
			return nil, &yamledit.FieldError{Path: e.Path, Reason: err.Error()}
		}
		current, out[i] = next, e
	}
	return out, nil
}

// fieldEditOf returns the edit of a manifest for one difference.
func fieldEditOf(manifest any, d api.Difference) (yamledit.FieldEdit, error) {
	e := yamledit.FieldEdit{Path: d.Path, Remove: d.ValueInMember == "" && d.MemberJSON == nil}
	if strings.Contains(d.ValueInHub, diff.Mask) || strings.Contains(d.ValueInMember, diff.Mask) {
		return e, errors.New("values of Secrets do not leave the cluster")
	}
	keys := api.SplitPointer(d.Path)
	now, there := yamledit.LookUp(manifest, keys)
	wasThere := d.ValueInHub != "" || d.HubJSON != nil
	if !e.Remove {
		var err error
		if e.Value, err = memberValue(d, now); err != nil {
			return e, err
		}
	}
	switch {
	case there && !e.Remove && reflect.DeepEqual(now, e.Value) || !there && e.Remove:
		return e, ErrInManifest
	case !there && wasThere:
		return e, fmt.Errorf("the manifest has no such field; Git wants %q", d.ValueInHub)
	case there && !wasThere:
		return e, fmt.Errorf("the manifest has %q; Git wants nothing", diff.Text(now))
	case there && !isHubValue(now, d):
		return e, fmt.Errorf("the manifest has %q; Git wants %q", diff.Text(now), d.ValueInHub)
	}
	return e, nil
}

// isHubValue reports whether a value of a manifest is the one that a drift gives as that of Git. An
// API server may write a quantity differently, and adds defaults.
func isHubValue(v any, d api.Difference) bool {
	if d.HubJSON != nil {
		var hub any
		if json.Unmarshal(d.HubJSON, &hub) == nil && covers(v, yamledit.Canonical(hub)) {
			return true
		}
	}
	text := diff.Text(v)
	if short, isShort := strings.CutSuffix(d.ValueInHub, "…"); isShort && strings.HasPrefix(text, short) {
		return true
	}
	return text == d.ValueInHub || sameQuantity(text, d.ValueInHub)
}

func sameQuantity(a, b string) bool {
	x, errX := api.ParseQuantity(a)
	y, errY := api.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// covers reports whether the stored value has everything that the manifest sets.
func covers(manifest, stored any) bool {
	switch m := manifest.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		for key, item := range m {
			if ok = ok && covers(item, s[key]); !ok {
				return false
			}
		}
		return ok
	case []any:
		s, ok := stored.([]any)
		return ok && slices.EqualFunc(m, s, covers)
	}
	return reflect.DeepEqual(manifest, stored) || sameQuantity(diff.Text(manifest), diff.Text(stored))
}

// memberValue returns the value of the member. A drift has it as JSON, unless its text shows a
// text exactly.
func memberValue(d api.Difference, now any) (any, error) {
	_, isText := now.(string)
	switch {
	case d.MemberJSON != nil:
		var v any
		err := json.Unmarshal(d.MemberJSON, &v)
		return yamledit.Canonical(v), err
	case strings.HasSuffix(d.ValueInMember, "…"):
		return nil, errors.New("its value is longer than gitfleet remembers; edit it by hand, with the value of the member")
	case !isText:
		return nil, errors.New("its value is not known exactly; edit it by hand, with the value of the member")
	}
	return d.ValueInMember, nil
}

// withParents extends an edit so that it also creates the maps and lists around its field that the
// manifest does not have.
func withParents(manifest any, e yamledit.FieldEdit) yamledit.FieldEdit {
	keys := api.SplitPointer(e.Path)
	for n := 1; n < len(keys) && !e.Remove; n++ {
		if _, there := yamledit.LookUp(manifest, keys[:n]); there {
			continue
		}
		for _, key := range slices.Backward(keys[n:]) {
			if key == "-" {
				e.Value = []any{e.Value}
			} else {
				e.Value = map[string]any{key: e.Value}
			}
		}
		e.Path = yamledit.Pointer(keys[:n])
		break
	}
	return e
}

// inEnvelope converts edits of an object in an envelope into edits of the envelope. It returns edits of other objects, and of
// those that an overlay builds, unchanged.
func inEnvelope(source *api.Object, m *work.Manifest, edits []yamledit.FieldEdit) ([]yamledit.FieldEdit, error) {
	if m.Envelope == nil || m.Envelope.Type.IsBuilt() {
		return edits, nil
	}
	at, entry, err := envelopeEntry(source, m.ID)
	if err != nil {
		return nil, err
	}
	if text, isText := entry.(string); isText {
		edited, err := yamledit.EditAll([]byte(text), documentOf(m.ID), edits)
		if err != nil {
			return nil, fmt.Errorf("%s: in the text of %s: %w", source.Origin, at, err)
		}
		return []yamledit.FieldEdit{{Path: at, Value: string(edited)}}, nil
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
func documentOf(id api.ID) yamledit.Finder {
	return func(text []byte) (*yaml.Node, error) {
		var found *yaml.Node
		err := yamledit.EachDocument(text, func(doc *yaml.Node) {
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
