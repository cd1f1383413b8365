package placement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Terms are the selectors of a placement.
type Terms struct {
	Key  api.PlacementKey
	Spec *api.PlacementSpec
	// Scope returns whether a kind is namespaced, if it is known. For other kinds it is
	// inferred from their objects. Scope may be nil.
	Scope func(api.GroupKind) (namespaced, known bool)
}

// A Warning is about a selector that probably does not do what the user meant.
type Warning struct {
	// Field is a field path such as spec.resourceSelectors[1].
	Field   string
	Message string
}

// String returns field: message.
func (w Warning) String() string { return w.Field + ": " + w.Message }

// selectionState is the state of one call of Select.
type selectionState struct {
	Terms
	index      *Index
	namespace  string      // the namespace of namespaced objects
	term       int         // the current term
	selected   []int       // positions in the index, each once
	selectedBy map[int]int // the term that selected a position
	duplicates []int       // positions that the current term selects again

	unmatched []int
	warnings  []Warning
}

// field returns the field path of the current selector, or that of the namespace before the
// first one.
func (s *selectionState) field() string {
	if s.term < 0 {
		return "metadata.namespace"
	}
	return fmt.Sprintf("spec.resourceSelectors[%d]", s.term)
}

func (s *selectionState) warn(format string, args ...any) {
	s.warnings = append(s.warnings, Warning{s.field(), fmt.Sprintf(format, args...)})
}

// key returns the placement in the form that most messages use.
func (s *selectionState) key() string { return s.Key.Namespace + "/" + s.Key.Name }

// match returns which entries a term selects by name or labels.
func (s *selectionState) match(t api.ResourceSelectorTerm) (func(*entry) bool, error) {
	switch {
	case t.Name != "":
		return func(e *entry) bool { return e.object.ID.Name == t.Name }, nil
	case t.LabelSelector == nil:
		return func(*entry) bool { return true }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("invalid placement %s: the labelSelector of %s is invalid: %w", s.key(), s.field(), err)
	}
	return func(e *entry) bool { return selector.Matches(labels.Set(e.labels)) }, nil
}

func (s *selectionState) add(at int) {
	if _, taken := s.selectedBy[at]; taken {
		s.duplicates = append(s.duplicates, at)
		return
	}
	s.selectedBy[at] = s.term
	s.selected = append(s.selected, at)
}

// warnDuplicates warns of objects that an earlier term selects as well.
func (s *selectionState) warnDuplicates() {
	if len(s.duplicates) == 0 {
		return
	}
	first := s.duplicates[0]
	more := ""
	if n := len(s.duplicates) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	s.warn("%s%s: spec.resourceSelectors[%d] selects it already, and it is taken once", s.index.entries[first].object.ID, more, s.selectedBy[first])
	s.duplicates = nil
}

// warnNoMatch says why a term matched nothing, as far as that is known.
func (s *selectionState) warnNoMatch(t api.ResourceSelectorTerm, namespace string) {
	what, where := t.Kind, "the repository"
	if t.Name != "" {
		what += " " + quote(t.Name)
	}
	if namespace != "" {
		where = "namespace " + quote(namespace)
	}
	versions := s.index.versions[gvkOf(t).GroupKind()]
	switch {
	case len(versions) > 0 && !slices.Contains(versions, t.Version):
		s.warn("no %s is written in version %s, so this selects nothing; the repository has %s", t.Kind, t.Version, strings.Join(versions, ", "))
	case t.LabelSelector != nil:
		s.warn("no %s in %s has such labels, so this selects nothing", what, where)
	default:
		s.warn("there is no %s in %s, so this selects nothing%s", what, where, s.index.suggestName(kindKey{gvkOf(t), namespace}, t.Name))
	}
}

func gvkOf(t api.ResourceSelectorTerm) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
}
