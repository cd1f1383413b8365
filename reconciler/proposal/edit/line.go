package edit

import (
	"io/fs"
	"reflect"
	"strconv"

	"github.com/pmezard/go-difflib/difflib"
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// replacedLine returns the first line that an edit replaces or removes; zero if it only adds lines.
func replacedLine(files []FileChange) api.Origin {
	for _, f := range files {
		if f.Before == nil {
			continue
		}
		for _, op := range difflib.NewMatcher(lines(f.Before), lines(f.After)).GetOpCodes() {
			if op.Tag == 'r' || op.Tag == 'd' {
				return api.Origin{Path: f.Path, Line: op.I1 + 1}
			}
		}
	}
	return api.Origin{}
}

// LineOf returns the line in Git of the first of some fields of an object, or of its nearest parent that the manifest
// has. It is that of the object if that is not certain: if the manifest is in an envelope, or if a kustomization or an
// override has changed it.
func (e *Editor) LineOf(m *work.Manifest, fields []api.Difference) api.Origin {
	at := m.Origin
	if at.Line == 0 || m.Envelope != nil || len(fields) == 0 {
		return at
	}
	text, err := fs.ReadFile(e.Files, at.Path)
	if err != nil {
		return at
	}
	n, err := yamledit.ManifestAt(text, at.Line)
	if err != nil {
		return at
	}
	keys := api.SplitPointer(fields[0].Path)
	for i, key := range keys {
		next, line := child(n, key)
		if next == nil {
			if m.Origin.Kustomization != "" {
				return m.Origin
			}
			keys = keys[:i]
			break
		}
		n, at.Line = next, line
	}
	written, err := yamledit.Value(n)
	wanted, _ := yamledit.LookUp(m.Object.Content.Object, keys)
	if err != nil || !reflect.DeepEqual(written, yamledit.Canonical(wanted)) {
		return m.Origin
	}
	return at
}

// child returns the value of a key of a mapping, or the item of a sequence at an index, with the line on which it
// begins; nil if there is none.
func child(n *yaml.Node, key string) (value *yaml.Node, line int) {
	switch n.Kind {
	case yaml.MappingNode:
		if name, value := yamledit.Entry(n, key); value != nil {
			return value, name.Line
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}
	return nil, 0
}
