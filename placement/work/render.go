package work

import (
	"encoding/binary"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Scope tells whether a kind is namespaced, and whether that is known.
type Scope = func(api.GroupKind) (namespaced, known bool)

// Rendered is what one cluster gets. Its slices are shared between clusters
// and must not be changed.
type Rendered struct {
	// Manifests are in canonical order, and every ID occurs once.
	Manifests []*Manifest
	// Refused are objects that cannot be applied anywhere, in canonical order.
	Refused []Refused
	// Hash is of the content: kinds, versions, names, envelopes and the hashes
	// of the objects. It does not depend on the commit.
	Hash string
	// ClusterOverrides and Overrides name those that apply to the cluster, in
	// the order in which they do.
	ClusterOverrides []string
	Overrides        []api.NamespacedName
	// Warnings are those of the renderer.
	Warnings []string
}

// A Refused is an object that is not sent to any cluster.
type Refused struct {
	*Manifest
	// Reason is api.Duplicated or api.FoundGenerateName.
	Reason string
	// Message is that of the object's Applied condition.
	Message string
}

// A Renderer knows what a placement holds at one commit and what overrides
// make of it. It remembers what it has rendered: one goroutine may use it at
// a time.
type Renderer struct {
	key        api.PlacementKey
	base       Rendered
	err        error // what keeps every cluster from getting anything
	candidates []candidate
	// touched are the manifests that candidates select, in order.
	touched []touch

	// rendered are the contents already made, by what made them.
	rendered map[string]Rendered
	scratch  []byte
	// asked are the keys of labels that decide about the content; nil until
	// somebody wants to know. labels are the texts already made of them.
	asked  []string
	labels map[string]string
}

// A touch lists the candidates, by index and in order, that select a manifest.
type touch struct {
	manifest   int
	candidates []int
}

// NewRenderer prepares a placement that selects the given objects. Overrides
// may be all of the commit; those of other placements are left aside. Nothing
// that is passed in is changed, or may be changed later. scope nil knows no
// kind.
func NewRenderer(key api.PlacementKey, selected []*api.Object, cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, scope Scope) *Renderer {
	content := open(key, selected, scope)
	r := &Renderer{
		key: key,
		base: Rendered{
			Manifests: content.manifests,
			Refused:   content.refused,
			Hash:      hashOf(content.manifests, content.refused),
			Warnings:  content.warnings,
		},
		rendered: map[string]Rendered{},
	}
	if len(content.problems) > 0 {
		r.err = &EnvelopeError{Problems: content.problems}
	}
	index := newIndex(content)
	var warnings []string
	r.candidates, warnings = candidatesFor(key, index, cros, ros)
	r.base.Warnings = append(r.base.Warnings, warnings...)
	r.touched = touchedBy(r.candidates, len(content.manifests))
	return r
}

// touchedBy turns what each candidate selects into who selects each manifest.
func touchedBy(candidates []candidate, manifests int) []touch {
	by := make([][]int, manifests)
	for i := range candidates {
		for _, m := range candidates[i].selects {
			by[m] = append(by[m], i)
		}
	}
	var touched []touch
	for m, cs := range by {
		if len(cs) > 0 {
			touched = append(touched, touch{m, cs})
		}
	}
	return touched
}

// Warnings are what a person should look at: overrides of this placement that
// match nothing, doubtful envelopes. They do not depend on a cluster.
func (r *Renderer) Warnings() []string { return r.base.Warnings }

// Overrides names the overrides that concern the placement, on any cluster or
// none.
func (r *Renderer) Overrides() (cros []string, ros []api.NamespacedName) {
	for i := range r.candidates {
		if c := &r.candidates[i]; c.namespace == "" {
			cros = append(cros, c.name)
		} else {
			ros = append(ros, api.NamespacedName{Namespace: c.namespace, Name: c.name})
		}
	}
	return cros, ros
}

// Hash is of what the placement holds before any override: as long as it does
// not change, a new commit brought nothing new, whatever the overrides do.
func (r *Renderer) Hash() string {
	if r.err != nil {
		return hashOfError(r.err)
	}
	return r.base.Hash
}

// For returns what the cluster gets.
//
// The error is an [*OverrideError] (the cluster's Overridden is False) or an
// [*EnvelopeError] (its WorkSynchronized is False). The answer then still
// names the overrides, and its Hash stands for the content that cannot be
// made: assigned to a cluster, it makes that cluster fail and keep what it
// holds, and it differs from the hash of any mended content.
func (r *Renderer) For(c placement.Cluster) (Rendered, error) {
	if len(r.candidates) == 0 {
		return r.answer(r.base, r.err)
	}
	applied := r.match(c)
	if len(applied) == 0 {
		return r.answer(r.base, r.err)
	}
	if r.err != nil {
		return r.answer(r.named(applied), r.err)
	}
	key, cacheable := r.keyOf(applied)
	if cacheable {
		if known, ok := r.rendered[string(key)]; ok {
			return known, nil
		}
	}
	out, err := r.override(applied)
	if err != nil {
		return r.answer(out, err)
	}
	if cacheable {
		r.rendered[string(key)] = out
	}
	return out, nil
}

// answer takes the content out of what comes with an error.
func (r *Renderer) answer(out Rendered, err error) (Rendered, error) {
	if err != nil {
		out.Manifests, out.Refused = nil, nil
		out.Hash = hashOfError(err)
	}
	return out, err
}

// An application is a candidate with the rules of it that match a cluster,
// variables replaced.
type application struct {
	index int
	rules []expanded
}

// match finds the rules that apply to the cluster, in order.
func (r *Renderer) match(c placement.Cluster) []application {
	var applied []application
	for i := range r.candidates {
		var rules []expanded
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

// keyOf writes down all that decides the content: the rules, and what their
// variables became. Content with an error in it is not worth remembering.
func (r *Renderer) keyOf(applied []application) (key []byte, cacheable bool) {
	key = r.scratch[:0]
	for _, a := range applied {
		key = binary.AppendUvarint(key, uint64(a.index))
		key = binary.AppendUvarint(key, uint64(len(a.rules)))
		for _, x := range a.rules {
			if x.err != nil {
				return nil, false
			}
			key = binary.AppendUvarint(key, uint64(x.rule.index))
			for _, v := range x.values {
				key = binary.AppendUvarint(key, uint64(len(v)))
				key = append(key, v...)
			}
		}
	}
	r.scratch = key
	return key, true
}

// named is the base with the names of what applies.
func (r *Renderer) named(applied []application) Rendered {
	out := r.base
	for _, a := range applied {
		c := &r.candidates[a.index]
		if c.namespace == "" {
			out.ClusterOverrides = append(out.ClusterOverrides, c.name)
		} else {
			out.Overrides = append(out.Overrides, api.NamespacedName{Namespace: c.namespace, Name: c.name})
		}
	}
	return out
}

// override makes the content for the rules that apply. Manifests they do not
// change stay the shared ones.
func (r *Renderer) override(applied []application) (Rendered, error) {
	out := r.named(applied)
	byCandidate := make([][]expanded, len(r.candidates))
	for _, a := range applied {
		byCandidate[a.index] = a.rules
	}
	var changed []*Manifest // nil until one is
	for _, t := range r.touched {
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

// Manifests are what the placement holds before any override, in canonical
// order: all that a cluster may get, and their contents are not final.
func (r *Renderer) Manifests() []*Manifest { return r.base.Manifests }
