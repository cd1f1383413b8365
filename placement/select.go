package placement

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Selection is the set of objects that a placement selects.
type Selection struct {
	// Objects are in canonical order, each once; they are shared, not copied. An envelope
	// counts as one object.
	Objects []*api.Object
	// Invalid is the message of the condition Scheduled=False, InvalidResourceSelectors; empty
	// if the selectors are valid. If it is set, there are no Objects, and the placement keeps
	// what it holds.
	Invalid string
	// InvalidField is the field path of the error, such as spec.resourceSelectors[1].
	InvalidField string
	// Unmatched are the indexes of the selectors that match no object, in order.
	Unmatched []int
	// Warnings are in the order of the selectors.
	Warnings []Warning
}

// Select returns the objects that a placement selects. One invalid selector makes the whole
// selection invalid; that is a result, not an error. Selecting nothing is valid.
func Select(t Terms, x *Index) Selection {
	s := &selectionState{Terms: t, index: x, term: -1, selectedBy: map[int]int{}}
	if err := s.resolve(); err != nil {
		return Selection{
			Invalid:      "The resource selectors are invalid: failed to process the request due to a client error: " + err.Error(),
			InvalidField: s.field(),
			Warnings:     s.warnings,
		}
	}
	slices.Sort(s.selected)
	objects := make([]*api.Object, len(s.selected))
	for i, at := range s.selected {
		objects[i] = x.entries[at].object
	}
	return Selection{Objects: objects, Unmatched: s.unmatched, Warnings: s.warnings}
}

// resolve first finds the namespace that the other terms select from, because its term may be
// anywhere in the list.
func (s *selectionState) resolve() error {
	if err := s.findNamespace(); err != nil {
		return err
	}
	for i, t := range s.Spec.ResourceSelectors {
		s.term = i
		if gvkOf(t) == namespaceKind && t.Name == "" && s.Key.Namespace == "" && s.Spec.StatusReportingScope == api.NamespaceAccessible {
			return errors.New("NamespaceAccessible ClusterResourcePlacement doesn't specify a resource selector which selects a namespace: name it instead of selecting it by labels")
		}
		if err := s.resolveTerm(t); err != nil {
			return err
		}
		s.warnDuplicates()
	}
	return nil
}

func (s *selectionState) resolveTerm(t api.ResourceSelectorTerm) error {
	gvk := gvkOf(t)
	if neverSelected(gvk) {
		s.warn("%s is never propagated, so this selects nothing", t.Kind)
		return nil
	}
	if gvk == namespaceKind {
		return s.namespaces(t)
	}
	namespaced, known := s.scope(gvk.GroupKind())
	switch {
	case !known:
		s.unmatched = append(s.unmatched, s.term)
		s.warn("no object, no CustomResourceDefinition and no built-in kind is %s, so this selects nothing%s", api.WithArticle(gvk.GroupKind().String()), s.index.suggestKind(gvk.GroupKind()))
		return nil
	case !namespaced && s.Key.Namespace != "":
		return fmt.Errorf("invalid placement %s: cannot select cluster-scoped resource %v in a resourcePlacement", s.key(), resourceOf(gvk))
	case namespaced && s.namespace == "":
		return fmt.Errorf("invalid placement %s: cannot select namespace-scoped resource %v in a clusterResourcePlacement", s.key(), resourceOf(gvk))
	}
	return s.objects(t, namespaced)
}

func (s *selectionState) scope(gk api.GroupKind) (namespaced, known bool) {
	if s.Scope != nil {
		if namespaced, known = s.Scope(gk); known {
			return namespaced, known
		}
	}
	return s.index.scope(gk)
}

// objects selects by kind, within the namespace if the kind is namespaced.
func (s *selectionState) objects(t api.ResourceSelectorTerm, namespaced bool) error {
	match, err := s.match(t)
	if err != nil {
		return err
	}
	if s.Key.Namespace != "" && t.Name == "" && api.ReservedNamespace(s.Key.Namespace) {
		s.warn("namespace %s is reserved, so this selects nothing: name each object to place", s.Key.Namespace)
		return nil
	}
	in := kindKey{gvk: gvkOf(t)}
	if namespaced {
		in.namespace = s.namespace
	}
	found := 0
	for _, at := range s.index.byKind[in] {
		e := &s.index.entries[at]
		if !match(e) {
			continue
		}
		found++
		if e.refused == "" {
			s.add(at)
		} else if t.Name != "" {
			s.warn("%s is never propagated: %s", e.object.ID, e.refused)
		}
	}
	if found == 0 {
		s.unmatched = append(s.unmatched, s.term)
		s.warnNoMatch(t, in.namespace)
	}
	return nil
}

// resourceOf names a kind the way KubeFleet's messages do, by its plural.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(api.Plural(gvk.Kind))
}
