package work

import (
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// newVariant opens the envelopes of the selection. builds returns the objects of an overlay.
func (r *Renderer) newVariant(builds func(*api.Object) ([]*api.Object, error)) (v *variant, warnings []string) {
	content := open(r.key, r.selected, r.scope, builds)
	v = &variant{
		base:     Rendered{Manifests: content.manifests, Refused: content.refused, Hash: hashOf(content.manifests, content.refused)},
		rendered: map[string]*Rendered{},
	}
	if len(content.problems) > 0 {
		v.err = &EnvelopeError{Problems: content.problems, Overlays: r.whole != nil && r.whole.err == nil}
	}
	v.candidates, warnings = candidatesFor(r.key, newIndex(content), r.cros, r.ros)
	return v, append(content.warnings, warnings...)
}

// variantFor returns the content of a cluster before overrides.
func (r *Renderer) variantFor(c placement.Cluster) *variant {
	if len(r.overlays) == 0 && r.substitution == nil {
		return r.whole
	}
	key := r.substitution.key(c)
	for _, o := range r.overlays {
		dirs, err := directories(o.Overlay, c)
		for _, dir := range dirs {
			key += dir + "\x01"
		}
		if err != nil {
			key += "\x02" + err.Error()
		}
		key += "\x00"
	}
	if r.variants[key] == nil {
		v, _ := r.newVariant(func(o *api.Object) ([]*api.Object, error) { return builtFor(o.Overlay, c) })
		r.substitution.apply(v, c)
		r.variants[key] = v
	}
	return r.variants[key]
}
