package work

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Scope returns whether a kind is namespaced, and whether that is known.
type Scope = func(api.GroupKind) (namespaced, known bool)

// Rendered is the content for one cluster. Its slices are shared between clusters and must not
// be changed.
type Rendered struct {
	// Manifests are in canonical order, and every ID occurs once.
	Manifests []*Manifest
	// Refused are objects that cannot be applied anywhere, in canonical order.
	Refused []Refused
	// Hash is the hash of the content: kinds, versions, names, envelopes and the hashes of the
	// objects. It does not depend on the commit.
	Hash string
	// ClusterOverrides and Overrides are the overrides that apply to the cluster, in the order
	// of application.
	ClusterOverrides []string
	Overrides        []api.NamespacedName
}

// A Refused is an object that is sent to no cluster.
type Refused struct {
	*Manifest
	// Reason is api.Duplicated or api.FoundGenerateName.
	Reason string
	// Message is the message of the object's Applied condition.
	Message string
}

// A Renderer renders the content of a placement at one commit. It caches what it has rendered,
// and must not be used concurrently.
type Renderer struct {
	key        api.PlacementKey
	base       Rendered
	warnings   []string
	err        error // why no cluster gets any content
	candidates []candidate
	// overridden are the manifests that candidates select, in order.
	overridden []overriddenManifest

	// rendered caches contents by the rules applied.
	rendered map[string]Rendered
	// labelKeys are the keys of the labels that affect the content.
	labelKeys []string
}

// An overriddenManifest lists the candidates, by index and in order, that select a manifest.
type overriddenManifest struct {
	manifest   int
	candidates []int
}

// NewRenderer returns a renderer for a placement that selects the given objects. Overrides may
// be all of the commit; those bound to other placements are ignored. The arguments are not
// changed and must not be changed later. A nil scope knows no kind.
func NewRenderer(key api.PlacementKey, selected []*api.Object, cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, scope Scope) *Renderer {
	content := open(key, selected, scope)
	r := &Renderer{
		key: key,
		base: Rendered{
			Manifests: content.manifests,
			Refused:   content.refused,
			Hash:      hashOf(content.manifests, content.refused),
		},
		rendered: map[string]Rendered{},
	}
	if len(content.problems) > 0 {
		r.err = &EnvelopeError{Problems: content.problems}
	}
	index := newIndex(content)
	var warnings []string
	r.candidates, warnings = candidatesFor(key, index, cros, ros)
	r.warnings = append(content.warnings, warnings...)
	r.labelKeys = labelKeys(r.candidates)
	r.overridden = overriddenManifests(r.candidates, len(content.manifests))
	return r
}

// overriddenManifests inverts the candidates' selections.
func overriddenManifests(candidates []candidate, manifests int) []overriddenManifest {
	by := make([][]int, manifests)
	for i := range candidates {
		for _, m := range candidates[i].selects {
			by[m] = append(by[m], i)
		}
	}
	var touched []overriddenManifest
	for m, cs := range by {
		if len(cs) > 0 {
			touched = append(touched, overriddenManifest{m, cs})
		}
	}
	return touched
}

// Warnings returns the warnings that do not depend on a cluster: overrides of this placement
// that match nothing, and doubtful envelopes.
func (r *Renderer) Warnings() []string { return r.warnings }

// Overrides returns the overrides that apply to the placement, on any cluster or none.
func (r *Renderer) Overrides() (cros []string, ros []api.NamespacedName) {
	for i := range r.candidates {
		cros, ros = r.candidates[i].appendName(cros, ros)
	}
	return cros, ros
}

// Hash returns the hash of the content before overrides. While it is the same, commits have not
// changed the content.
func (r *Renderer) Hash() string {
	if r.err != nil {
		return hashOfError(r.err)
	}
	return r.base.Hash
}

// For returns the content for a cluster.
//
// The error is an [*OverrideError] (the cluster's Overridden is False) or an [*EnvelopeError]
// (its WorkSynchronized is False). The result then still names the overrides, and its Hash
// stands for the content that cannot be rendered: assigned to a cluster, it makes that cluster
// fail and keep what it holds, and it differs from the hash of any valid content.
func (r *Renderer) For(c placement.Cluster) (Rendered, error) {
	applied := r.match(c)
	if len(applied) == 0 {
		return r.withError(r.base, r.err)
	}
	if r.err != nil {
		return r.withError(r.withOverrideNames(applied), r.err)
	}
	key := keyOfContent(applied)
	if known, ok := r.rendered[key]; ok {
		return known, nil
	}
	out, err := r.override(applied)
	if err != nil {
		return r.withError(out, err)
	}
	r.rendered[key] = out
	return out, nil
}

// withError removes the content from a result with an error.
func (r *Renderer) withError(out Rendered, err error) (Rendered, error) {
	if err != nil {
		out.Manifests, out.Refused = nil, nil
		out.Hash = hashOfError(err)
	}
	return out, err
}

// An application is a candidate with its rules that match a cluster, variables replaced.
type application struct {
	index int
	rules []expandedRule
}

// match finds the rules that apply to the cluster, in order.
func (r *Renderer) match(c placement.Cluster) []application {
	var applied []application
	for i := range r.candidates {
		var rules []expandedRule
		for j := range r.candidates[i].rules {
			if rule := &r.candidates[i].rules[j]; rule.matches(c) {
				rules = append(rules, rule.expand(c))
			}
		}
		if rules != nil {
			applied = append(applied, application{i, rules})
		}
	}
	return applied
}

// keyOfContent returns the cache key of a content: the rules and the values of their variables.
func keyOfContent(applied []application) string {
	var key []byte
	for _, a := range applied {
		for _, x := range a.rules {
			// The error belongs to the key, since a rule with an error has other values.
			key = fmt.Appendf(key, "%d %d %q %v;", a.index, x.rule.index, x.values, x.err)
		}
	}
	return string(key)
}

// withOverrideNames returns the base content with the names of the overrides that apply.
func (r *Renderer) withOverrideNames(applied []application) Rendered {
	out := r.base
	for _, a := range applied {
		out.ClusterOverrides, out.Overrides = r.candidates[a.index].appendName(out.ClusterOverrides, out.Overrides)
	}
	return out
}

// override renders the content with the rules applied. Manifests that do not change are shared.
func (r *Renderer) override(applied []application) (Rendered, error) {
	out := r.withOverrideNames(applied)
	byCandidate := make([][]expandedRule, len(r.candidates))
	for _, a := range applied {
		byCandidate[a.index] = a.rules
	}
	var changed []*Manifest // created when a manifest changes
	for _, t := range r.overridden {
		before := r.base.Manifests[t.manifest]
		after, err := r.overrideOne(before, t.candidates, byCandidate)
		if err != nil {
			return out, err
		}
		if after == before {
			continue
		}
		if changed == nil {
			changed = slices.Clone(r.base.Manifests)
		}
		changed[t.manifest] = after
	}
	if changed != nil {
		out.Manifests = slices.DeleteFunc(changed, func(m *Manifest) bool { return m == nil })
		out.Hash = hashOf(out.Manifests, out.Refused)
	}
	return out, nil
}

// Manifests returns the manifests before any override, in canonical order. Clusters get no
// others, but possibly with other content.
func (r *Renderer) Manifests() []*Manifest { return r.base.Manifests }
