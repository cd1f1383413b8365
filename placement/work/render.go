package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// NewRenderer returns a renderer for a placement that selects the given objects. Overrides may
// be all of the commit; those bound to other placements are ignored. The arguments are not
// changed and must not be changed later. A nil scope knows no kind.
func NewRenderer(key api.PlacementKey, selected []*api.Object, cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, scope Scope) *Renderer {
	r := &Renderer{key: key, selected: selected, cros: cros, ros: ros, scope: scope, overlays: overlaysOf(selected), variants: map[string]*variant{}}
	var warnings []string
	r.whole, warnings = r.newVariant(everyBuild)
	r.warnings = warnings
	r.labelKeys = labelKeys(r.whole.candidates, overlayLabels(r.overlays))
	return r
}

// Warnings returns the warnings that do not depend on a cluster: overrides of this placement
// that match nothing, and doubtful envelopes.
func (r *Renderer) Warnings() []string { return r.warnings }

// Overrides returns the overrides that apply to the placement, on any cluster or none.
func (r *Renderer) Overrides() (cros []string, ros []api.NamespacedName) {
	for i := range r.whole.candidates {
		cros, ros = r.whole.candidates[i].appendName(cros, ros)
	}
	return cros, ros
}

// Hash returns the hash of the content before overrides. While it is the same, commits have not
// changed the content.
func (r *Renderer) Hash() string {
	switch {
	case r.whole.err != nil:
		return hashOfError(r.whole.err)
	case len(r.overlays) > 0:
		return r.substitution.hash(r.hashOfOverlays(false))
	}
	return r.substitution.hash(r.whole.base.Hash)
}

// For returns the content for a cluster, which must not be changed. Clusters with the same content share it.
//
// The error is an [*OverrideError] (the cluster's Overridden is False) or an [*EnvelopeError]
// (its WorkSynchronized is False). The result then still names the overrides, and its Hash
// stands for the content that cannot be rendered: assigned to a cluster, it makes that cluster
// fail and keep what it holds, and it differs from the hash of any valid content.
func (r *Renderer) For(c placement.Cluster) (*Rendered, error) { return r.variantFor(c).forCluster(c) }

func (v *variant) forCluster(c placement.Cluster) (*Rendered, error) {
	applied := v.match(c)
	if len(applied) == 0 && v.err == nil {
		return &v.base, nil
	}
	key := keyOfContent(applied)
	if known, ok := v.rendered[key]; ok {
		return known, nil
	}
	out, err := v.withOverrideNames(applied), v.err
	if err == nil {
		err = v.override(out, applied)
	}
	if err != nil {
		out.Manifests, out.Refused, out.Hash = nil, nil, hashOfError(err)
		return out, err
	}
	v.rendered[key] = out
	return out, nil
}

// match returns the rules that apply to the cluster, in order.
func (v *variant) match(c placement.Cluster) []application {
	var applied []application
	for i := range v.candidates {
		for j := range v.candidates[i].rules {
			if rule := &v.candidates[i].rules[j]; rule.matches(c) {
				applied = append(applied, rule.expand(i, c))
			}
		}
	}
	return applied
}

// keyOfContent returns the cache key of a content: the rules and the values of their variables.
func keyOfContent(applied []application) string {
	var key []byte
	for _, a := range applied {
		// The error belongs to the key, since a rule with an error has other values.
		key = fmt.Appendf(key, "%d %d %q %v;", a.candidate, a.rule.index, a.values, a.err)
	}
	return string(key)
}

// withOverrideNames returns the base content with the names of the overrides that apply.
func (v *variant) withOverrideNames(applied []application) *Rendered {
	out := v.base
	for i, a := range applied {
		if i == 0 || applied[i-1].candidate != a.candidate {
			out.ClusterOverrides, out.Overrides = v.candidates[a.candidate].appendName(out.ClusterOverrides, out.Overrides)
		}
	}
	return &out
}

// override applies rules to the base content. Manifests that do not change are shared.
func (v *variant) override(out *Rendered, applied []application) error {
	rules := map[int][]application{} // by manifest
	for _, a := range applied {
		for _, i := range v.candidates[a.candidate].selects {
			rules[i] = append(rules[i], a)
		}
	}
	manifests := slices.Clone(v.base.Manifests)
	for _, i := range slices.Sorted(maps.Keys(rules)) { // the first error is that of the first manifest
		var err error
		if manifests[i], err = v.apply(manifests[i], rules[i]); err != nil {
			return err
		}
	}
	if !slices.Equal(manifests, v.base.Manifests) {
		out.Manifests = slices.DeleteFunc(manifests, func(m *Manifest) bool { return m == nil })
		out.Hash = hashOf(out.Manifests, out.Refused)
	}
	return nil
}

// Manifests returns the manifests before any override, in canonical order. No cluster gets an object that is not
// among them. Overrides may change or leave out objects on a cluster, and it gets only the build of an overlay that is for
// it.
func (r *Renderer) Manifests() []*Manifest { return r.whole.base.Manifests }

// Fingerprint identifies the content of the placement at a commit, including overrides. If it
// is equal at two commits, every cluster gets the same content.
func (r *Renderer) Fingerprint() string {
	h := sha256.New()
	writeField(h, r.Hash())
	if len(r.overlays) > 0 {
		writeField(h, r.hashOfOverlays(true))
	}
	for i := range r.whole.candidates {
		c := &r.whole.candidates[i]
		policy, err := json.Marshal(c.policy)
		if err != nil {
			policy = []byte(err.Error())
		}
		for _, s := range []string{c.kind, c.namespace, c.name, fmt.Sprint(c.selects), string(policy)} {
			writeField(h, s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
