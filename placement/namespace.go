package placement

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// findNamespace finds the namespace that namespaced objects are selected from: that of a
// ResourcePlacement, or that of a term with NamespaceWithResourceSelectors.
func (s *selectionState) findNamespace() error {
	if s.namespace = s.Key.Namespace; s.namespace != "" {
		if s.namespace == api.Namespace {
			return fmt.Errorf("invalid placement %s: namespace %s is not allowed to propagate", s.key(), s.namespace)
		}
		return nil
	}
	for i, t := range s.Spec.ResourceSelectors {
		if gvkOf(t) == namespaceKind && t.SelectionScope == api.NamespaceWithResourceSelectors {
			s.term = i
			return s.resolveNamespace(t)
		}
	}
	return nil
}

// resolveNamespace resolves a term that must match exactly one namespace.
func (s *selectionState) resolveNamespace(t api.ResourceSelectorTerm) error {
	if api.ReservedNamespace(t.Name) {
		return s.notAllowed(t.Name)
	}
	match, err := s.match(t)
	if err != nil {
		return err
	}
	var names []string
	for _, at := range s.index.byKind[kindKey{gvk: namespaceKind}] {
		if e := &s.index.entries[at]; match(e) && !api.ReservedNamespace(e.object.ID.Name) {
			names = append(names, e.object.ID.Name)
		}
	}
	if len(names) != 1 {
		were, meant := "no namespaces were", s.index.suggestName(kindKey{gvk: namespaceKind}, t.Name)
		if len(names) > 1 {
			were, meant = strings.Join(names, ", ")+" were", ""
		}
		return fmt.Errorf("invalid clusterResourcePlacement %s: NamespaceWithResourceSelectors mode requires exactly one namespace, but %s selected%s", s.Key.Name, were, meant)
	}
	s.namespace = names[0]
	return nil
}

// namespaces selects Namespace objects and, by default, their contents.
func (s *selectionState) namespaces(t api.ResourceSelectorTerm) error {
	if s.Key.Namespace != "" {
		return fmt.Errorf("invalid placement %s: cannot select cluster-scoped resource Namespace in a resourcePlacement", s.key())
	}
	if t.Name != "" && api.ReservedNamespace(t.Name) {
		return s.notAllowed(t.Name)
	}
	match, err := s.match(t)
	if err != nil {
		return err
	}
	found := false
	for _, at := range s.index.byKind[kindKey{gvk: namespaceKind}] {
		e := &s.index.entries[at]
		if !match(e) {
			continue
		}
		found = true
		name := e.object.ID.Name
		if api.ReservedNamespace(name) {
			s.warn("namespace %s is reserved and left out", name)
			continue
		}
		s.add(at)
		if t.SelectionScope == api.NamespaceWithResources || t.SelectionScope == "" {
			s.contents(name)
		}
	}
	if !found {
		s.unmatched = append(s.unmatched, s.term)
		s.warnNoNamespace(t)
	}
	return nil
}

// contents selects everything in a namespace that may be propagated, whatever its labels.
func (s *selectionState) contents(namespace string) {
	for _, at := range s.index.byNamespace[namespace] {
		if e := &s.index.entries[at]; e.refused == "" && !neverSelected(e.gvk) {
			s.add(at)
		}
	}
}

// notAllowed returns the error for a reserved namespace. The text is KubeFleet's, except for the
// hint.
func (s *selectionState) notAllowed(namespace string) error {
	return fmt.Errorf("invalid clusterRresourcePlacement %s: namespace %s is not allowed to propagate%s", s.Key.Name, namespace, api.ReservedHint(namespace))
}

// warnNoNamespace warns that a Namespace has no manifest. It is not inferred from the objects
// in it, because that would hide typos.
func (s *selectionState) warnNoNamespace(t api.ResourceSelectorTerm) {
	if n := len(s.index.byNamespace[t.Name]); n > 0 {
		s.warn("there is no Namespace %q in the repository, so this selects nothing; %d object(s) say that they are in it: add its manifest", t.Name, n)
		return
	}
	s.warnNoMatch(t, "")
}
