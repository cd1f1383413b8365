package placement

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// findHome finds the namespace that namespaced objects are selected from: that
// of a ResourcePlacement, or the one a term chooses objects from.
func (s *selecting) findHome() error {
	if s.home = s.Key.Namespace; s.home != "" {
		if s.home == api.Namespace {
			return fmt.Errorf("invalid placement %s: namespace %s is not allowed to propagate", s.key(), s.home)
		}
		return nil
	}
	for i, t := range s.Spec.ResourceSelectors {
		if gvkOf(t) == namespaceKind && t.SelectionScope == api.NamespaceWithResourceSelectors {
			s.term = i
			return s.chooseHome(t)
		}
	}
	return nil
}

// chooseHome resolves a term that must mean exactly one namespace.
func (s *selecting) chooseHome(t api.ResourceSelectorTerm) error {
	if s.Propagation.reserved(t.Name) {
		return s.notAllowed(t.Name)
	}
	match, err := s.matcher(t)
	if err != nil {
		return err
	}
	var names []string
	for _, at := range s.index.places[placeKey{gvk: namespaceKind}] {
		if e := &s.index.entries[at]; match(e) && !s.Propagation.reserved(e.object.ID.Name) {
			names = append(names, e.object.ID.Name)
		}
	}
	if len(names) != 1 {
		were, meant := "no namespaces were", s.index.meantName(placeKey{gvk: namespaceKind}, t.Name)
		if len(names) > 1 {
			were, meant = strings.Join(names, ", ")+" were", ""
		}
		return fmt.Errorf("invalid clusterResourcePlacement %s: NamespaceWithResourceSelectors mode requires exactly one namespace, but %s selected%s", s.Key.Name, were, meant)
	}
	s.home = names[0]
	return nil
}

// namespaces selects Namespace objects and, by default, what is in them.
func (s *selecting) namespaces(t api.ResourceSelectorTerm) error {
	if s.Key.Namespace != "" {
		return fmt.Errorf("invalid placement %s: cannot select cluster-scoped resource Namespace in a resourcePlacement", s.key())
	}
	if t.Name != "" && s.Propagation.reserved(t.Name) {
		return s.notAllowed(t.Name)
	}
	match, err := s.matcher(t)
	if err != nil {
		return err
	}
	found := false
	for _, at := range s.index.places[placeKey{gvk: namespaceKind}] {
		e := &s.index.entries[at]
		if !match(e) {
			continue
		}
		found = true
		name := e.object.ID.Name
		if s.Propagation.reserved(name) {
			s.warn("namespace %s is reserved and left out", name)
			continue
		}
		s.take(at)
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

// contents takes all of a namespace that may leave; labels do not matter.
func (s *selecting) contents(namespace string) {
	for _, at := range s.index.spaces[namespace] {
		e := &s.index.entries[at]
		if e.refused == "" && !s.Propagation.stays(e.gvk, e.denied) {
			s.take(at)
		}
	}
}

// notAllowed is the error for a reserved namespace that is named; the spelling
// is KubeFleet's, up to the hint.
func (s *selecting) notAllowed(namespace string) error {
	return fmt.Errorf("invalid clusterRresourcePlacement %s: namespace %s is not allowed to propagate%s", s.Key.Name, namespace, api.ReservedHint(namespace))
}

// warnNoNamespace says that a Namespace has no manifest. One is not inferred
// from its contents, because that would hide typos.
func (s *selecting) warnNoNamespace(t api.ResourceSelectorTerm) {
	if n := len(s.index.spaces[t.Name]); n > 0 {
		s.warn("there is no Namespace %q in the repository, so this selects nothing; %d object(s) say that they are in it: add its manifest", t.Name, n)
		return
	}
	s.warnNothing(t, "")
}
