package work

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A candidate is an override that applies to the placement: it is not bound to another one, and
// selects some of its manifests.
type candidate struct {
	// source is the declared override. Its namespace is empty for a ClusterResourceOverride.
	source
	// selects are indexes into the renderer's manifests, ascending.
	selects []int
	rules   []rule
}

// A rule says what to change on which clusters.
type rule struct {
	// index is the rule's index in its override.
	index int
	// matchesAll says that the rule matches every cluster; otherwise one of terms must match.
	matchesAll bool
	terms      []labels.Selector
	// delete leaves the object out; patches are then empty.
	delete  bool
	patches []api.JSONPatchOverride
	// err is the reason why the rule is invalid. It affects every cluster.
	err error
}

// matches reports whether the rule matches the cluster. An invalid rule matches all, so that
// all report it.
func (r *rule) matches(c placement.Cluster) bool {
	if r.matchesAll || r.err != nil {
		return true
	}
	return slices.ContainsFunc(r.terms, func(s labels.Selector) bool { return s.Matches(labels.Set(c.Labels)) })
}

// String names the override in a warning.
func (s source) String() string {
	return fmt.Sprintf("%s %q", s.kind, objectName(s.namespace, s.name))
}

// id identifies the override; a ClusterResourceOverride has no namespace.
func (s source) id() api.NamespacedName {
	return api.NamespacedName{Namespace: s.namespace, Name: s.name}
}

// appendName adds the override to the list of its kind.
func (s source) appendName(cros []string, ros []api.NamespacedName) ([]string, []api.NamespacedName) {
	if s.namespace == "" {
		return append(cros, s.name), ros
	}
	return cros, append(ros, s.id())
}

// target is the placement that the override is bound to; zero if it is bound to none.
func (s source) target() api.PlacementKey {
	switch {
	case s.ref == nil:
		return api.PlacementKey{}
	case s.ref.Scope == api.NamespaceScoped:
		return api.PlacementKey{Namespace: s.namespace, Name: s.ref.Name}
	default:
		return api.PlacementKey{Name: s.ref.Name}
	}
}

// sources lists the overrides for which keep is true in the order in which they apply: cluster
// overrides by name, then the others by namespace and name.
func sources(cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, keep func(source) bool) []source {
	var all []source
	for _, o := range cros {
		s := source{kind: "ClusterResourceOverride", name: o.Name, ref: o.Spec.Placement, policy: o.Spec.Policy}
		if !keep(s) {
			continue
		}
		for _, t := range o.Spec.ClusterResourceSelectors {
			s.selectors = append(s.selectors, api.ResourceSelector{Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name})
		}
		all = append(all, s)
	}
	for _, o := range ros {
		s := source{
			kind: "ResourceOverride", namespace: o.Namespace, name: o.Name,
			ref: o.Spec.Placement, selectors: o.Spec.ResourceSelectors, policy: o.Spec.Policy,
		}
		if keep(s) {
			all = append(all, s)
		}
	}
	// Cluster overrides have an empty namespace and come first.
	slices.SortStableFunc(all, func(a, b source) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	return all
}

// candidatesFor finds the overrides that apply to the placement, and warns of those bound to it
// that select nothing.
func candidatesFor(key api.PlacementKey, index *index, cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride) ([]candidate, []string) {
	var candidates []candidate
	var warnings []string
	concerns := func(s source) bool {
		if s.ref != nil {
			return s.target() == key
		}
		return s.namespace == "" || index.namespaces[s.namespace]
	}
	for _, s := range sources(cros, ros, concerns) {
		selects, misses := index.find(s)
		for _, miss := range misses {
			warnings = append(warnings, fmt.Sprintf("%s selects %s", s, miss))
		}
		if len(selects) == 0 || s.policy == nil {
			continue
		}
		candidates = append(candidates, candidate{source: s, selects: selects, rules: rulesOf(s.policy.OverrideRules)})
	}
	return candidates, warnings
}

func rulesOf(declared []api.OverrideRule) []rule {
	rules := make([]rule, len(declared))
	for i, d := range declared {
		r := rule{index: i, delete: d.OverrideType == api.DeleteOverrideType}
		r.matchesAll, r.terms, r.err = clustersOf(d.ClusterSelector)
		if !r.delete {
			r.patches = d.JSONPatchOverrides
		}
		rules[i] = r
	}
	return rules
}

// clustersOf parses a cluster selector. Nil matches nothing, and a selector without terms
// everything; a term without a label selector matches nothing.
func clustersOf(s *api.ClusterSelector) (anywhere bool, terms []labels.Selector, err error) {
	if s == nil {
		return false, nil, nil
	}
	if len(s.ClusterSelectorTerms) == 0 {
		return true, nil, nil
	}
	for _, t := range s.ClusterSelectorTerms {
		if t.LabelSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err != nil {
			return false, nil, fmt.Errorf("read the cluster selector: %w", err)
		}
		terms = append(terms, selector)
	}
	return false, terms, nil
}

// An OverrideError reports that an override cannot be applied to an object. The cluster's
// Overridden condition is then False, and the cluster keeps its present content.
type OverrideError struct {
	// ClusterOverride is set for a ClusterResourceOverride, otherwise Override.
	ClusterOverride string
	Override        api.NamespacedName
	// Rule is the index of the rule that cannot be applied.
	Rule   int
	Object api.ID
	// Envelope is the envelope of the object; nil if there is none.
	Envelope *api.EnvelopeIdentifier
	Err      error
}

// newOverrideError returns the error of a rule of candidate c for m. The cause is masked if the
// override selects a Secret, whatever object it failed on.
func (v *variant) newOverrideError(c *candidate, r *rule, m *Manifest, err error) *OverrideError {
	e := &OverrideError{Rule: r.index, Object: m.ID, Envelope: m.Envelope, Err: err}
	if c.namespace == "" {
		e.ClusterOverride = c.name
	} else {
		e.Override = c.id()
	}
	secret := func(i int) bool { return v.base.Manifests[i].ID.GroupKind() == api.GroupKind{Kind: "Secret"} }
	if _, ok := errors.AsType[unclosedError](err); ok && slices.ContainsFunc(c.selects, secret) {
		e.Err = unclosedError{"(hidden)"}
	}
	return e
}

// ID identifies the override; a ClusterResourceOverride has no namespace.
func (e *OverrideError) ID() api.NamespacedName {
	if e.ClusterOverride != "" {
		return api.NamespacedName{Name: e.ClusterOverride}
	}
	return e.Override
}

// Field returns the field of the override with the patches that cannot be applied.
func (e *OverrideError) Field() string {
	return fmt.Sprintf("spec.policy.overrideRules[%d].jsonPatchOverrides", e.Rule)
}

// Error returns KubeFleet's text, as in the Overridden condition after "Failed to apply the
// override rules on the resources: ".
func (e *OverrideError) Error() string {
	object := fmt.Sprintf("%s %q", cmp.Or(e.Object.Kind, "Unknown"), e.Object.Name)
	if e.Object.Namespace != "" {
		object += fmt.Sprintf(" in namespace %q", e.Object.Namespace)
	}
	kind, name := "ClusterResourceOverrideSnapshot", e.ClusterOverride
	if name == "" {
		kind, name = "ResourceOverrideSnapshot", e.Override.Name
	}
	text := fmt.Sprintf("%s %q failed to apply on %s: %s", kind, name, object, e.Err)
	if e.Envelope != nil {
		text = fmt.Sprintf("failed to apply overrides to %s from envelope %s: %s", object, objectName(e.Envelope.Namespace, e.Envelope.Name), text)
	}
	return text
}

// Unwrap returns the cause.
func (e *OverrideError) Unwrap() error { return e.Err }
