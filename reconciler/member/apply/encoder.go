package apply

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
)

// An Encoder encodes manifests for applying, and compiles expressions once for all clusters that
// share them. It is safe for concurrent use.
type Encoder struct {
	fleet, source string
	Expressions   availability.Cache
	recent        encodings
}

// NewEncoder returns an encoder for the name of a fleet and the repository of its manifests,
// whose address must not contain credentials.
func NewEncoder(fleet, source string) *Encoder { return &Encoder{fleet: fleet, source: source} }

// object returns the object to apply for other content of a manifest.
func (e *Encoder) object(content *unstructured.Unstructured, m *work.Manifest, p api.PlacementKey, commit string) *unstructured.Unstructured {
	o := content.DeepCopy()
	e.mark(o, p, m.Origin.Path, commit)
	return o
}

// An encodingKey identifies the encoding of a manifest: it has everything that the encoding depends on.
type encodingKey struct {
	id                 api.ID
	hash, path, commit string
	placement          api.PlacementKey
}

// encodings are what was encoded last. Clusters apply the same objects in the same order and at about the same time. The zero
// value is empty.
type encodings struct {
	mu           sync.Mutex
	now, earlier map[encodingKey][]byte
	bytes        int // of now
}

// maxEncodings is the size from which encodings begin to be dropped, in bytes; up to twice as much is kept.
const maxEncodings = 1 << 20

// of returns an encoding; nil if it is not known. The caller does not change it.
func (e *encodings) of(key encodingKey) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	raw := e.now[key]
	if raw == nil {
		if raw = e.earlier[key]; raw != nil {
			e.put(key, raw)
		}
	}
	return raw
}

func (e *encodings) add(key encodingKey, raw []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now[key] == nil && len(raw) <= maxEncodings/16 {
		e.put(key, raw)
	}
}

func (e *encodings) put(key encodingKey, raw []byte) {
	if e.now == nil || e.bytes+len(raw) > maxEncodings {
		e.now, e.earlier, e.bytes = map[encodingKey][]byte{}, e.now, 0
	}
	e.now[key] = raw
	e.bytes += len(raw)
}

// encodeAs returns the bytes to apply a manifest with other content.
func (e *Encoder) encodeAs(content *unstructured.Unstructured, m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	raw, err := json.Marshal(e.object(content, m, p, commit).Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ID, err)
	}
	return raw, nil
}

// mark adds the label with the fleet, and the annotations with the origin of the object.
func (e *Encoder) mark(o *unstructured.Unstructured, p api.PlacementKey, path, commit string) {
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
