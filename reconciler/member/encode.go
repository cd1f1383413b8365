package member

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
)

// An Encoder encodes manifests for applying, and compiles expressions, once for all clusters
// that share them. It is safe for concurrent use.
type Encoder struct {
	fleet, source string

	mu sync.Mutex
	// recent are the bodies that were used since the last Rotate, and previous those used in
	// the turn before. Bodies that are not used for two turns are dropped.
	recent, previous map[encoderKey]*body

	expressions availability.Cache
}

type encoderKey struct {
	manifest  *work.Manifest
	placement api.PlacementKey
}

// A body is an encoded manifest without the commit, which goes between head and tail.
type body struct{ head, tail []byte }

// NewEncoder returns an encoder for the name of a fleet and the repository of its manifests,
// whose address must not contain credentials.
func NewEncoder(fleet, source string) *Encoder {
	return &Encoder{fleet: fleet, source: source, recent: map[encoderKey]*body{}}
}

// Rotate drops the bodies that were not used since the last but one call of Rotate.
func (e *Encoder) Rotate() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.previous, e.recent = e.recent, map[encoderKey]*body{}
}

// encode returns the bytes to apply a manifest of a placement at a commit.
func (e *Encoder) encode(m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	b, err := e.body(m, p)
	if err != nil {
		return nil, err
	}
	return b.with(commit), nil
}

// encodeUnshared encodes a manifest that no other cluster uses.
func (e *Encoder) encodeUnshared(m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	b, err := e.make(m, p)
	if err != nil {
		return nil, err
	}
	return b.with(commit), nil
}

func (b *body) with(commit string) []byte {
	out := make([]byte, 0, len(b.head)+len(commit)+len(b.tail))
	return append(append(append(out, b.head...), commit...), b.tail...)
}

func (e *Encoder) body(m *work.Manifest, p api.PlacementKey) (*body, error) {
	key := encoderKey{m, p}
	e.mu.Lock()
	b := e.recent[key]
	if b == nil {
		b = e.previous[key]
	}
	if b != nil {
		e.recent[key] = b
	}
	e.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, err := e.make(m, p)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recent[key] = b
	return b, nil
}

func (e *Encoder) make(m *work.Manifest, p api.PlacementKey) (*body, error) {
	o := diff.Normalize(m.Object.Object).DeepCopy()
	// The placeholder for the commit is extended until it does not occur in the content.
	for commit := "@"; ; commit += "@" {
		e.annotate(o, p, m.Origin.Path, commit)
		raw, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", m.ID, err)
		}
		before := []byte(`"` + api.CommitAnnotation + `":"`)
		mark := append(before[:len(before):len(before)], commit+`"`...)
		if bytes.Count(raw, mark) == 1 {
			at := bytes.Index(raw, mark) + len(before)
			return &body{head: raw[:at:at], tail: raw[at+len(commit):]}, nil
		}
	}
}

// annotate adds annotations with the origin of the object.
func (e *Encoder) annotate(o *unstructured.Unstructured, p api.PlacementKey, path, commit string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[api.ManagedByLabel] = e.fleet
	o.SetLabels(labels)
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[api.PlacementAnnotation] = p.String()
	notes[api.SourceAnnotation] = e.source
	notes[api.CommitAnnotation] = commit
	notes[api.PathAnnotation] = path
	o.SetAnnotations(notes)
}
