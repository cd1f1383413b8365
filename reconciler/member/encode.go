package member

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
)

// An Encoder encodes manifests for applying, and compiles expressions once for all clusters that
// share them. It is safe for concurrent use.
type Encoder struct {
	fleet, source string
	expressions   availability.Cache
}

// NewEncoder returns an encoder for the name of a fleet and the repository of its manifests,
// whose address must not contain credentials.
func NewEncoder(fleet, source string) *Encoder { return &Encoder{fleet: fleet, source: source} }

// encode returns the bytes to apply a manifest of a placement at a commit.
func (e *Encoder) encode(m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	o := diff.Normalize(m.Object.Content).DeepCopy()
	e.mark(o, p, m.Origin.Path, commit)
	raw, err := json.Marshal(o.Object)
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
