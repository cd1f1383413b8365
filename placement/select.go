package placement

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// A Warning is about a selector that probably does not do what the user meant.
type Warning struct {
	// Field is a field path such as spec.resourceSelectors[1].
	Field   string
	Message string
}

// String returns field: message.
func (w Warning) String() string { return w.Field + ": " + w.Message }

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

func gvkOf(t api.ResourceSelectorTerm) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
}

// key returns the placement in the form that most messages use.
func (s *selectionState) key() string { return s.Key.Namespace + "/" + s.Key.Name }

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
		s.warn("no object, no CustomResourceDefinition and no built-in kind is a %s, so this selects nothing%s", gvk.GroupKind(), s.index.suggestKind(gvk.GroupKind()))
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

// suggestName suggests the name of an object of the same kind and namespace.
func (x *Index) suggestName(in kindKey, name string) string {
	if name == "" {
		return ""
	}
	names := make([]string, 0, len(x.byKind[in]))
	for _, at := range x.byKind[in] {
		names = append(names, x.entries[at].object.ID.Name)
	}
	if near := api.Closest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// suggestKind suggests a kind for an unknown one: the same name in another group, or a similar
// name in the same or another group.
func (x *Index) suggestKind(gk api.GroupKind) string {
	known := slices.AppendSeq(api.KnownKinds(), maps.Keys(x.versions))
	slices.SortFunc(known, func(a, b api.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	kinds := map[string]api.GroupKind{} // by name; one of the same group if there is one
	var all, siblings []string
	for _, k := range known {
		switch {
		case k.Group == "extensions": // no longer served
			continue
		case k.Group == gk.Group:
			siblings = append(siblings, k.Kind)
			kinds[k.Kind] = k
		case kinds[k.Kind].Empty():
			kinds[k.Kind] = k
		}
		all = append(all, k.Kind)
	}
	kind := gk.Kind
	if kinds[kind].Empty() {
		kind = cmp.Or(api.Closest(kind, siblings), api.Closest(kind, all))
	}
	if kinds[kind].Empty() {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", kinds[kind])
}

// resourceOf names a kind the way KubeFleet's messages do, by its plural.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	name := strings.ToLower(gvk.Kind)
	switch {
	case name == "endpoints":
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		name += "es"
	case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay") && !strings.HasSuffix(name, "ey"):
		name = strings.TrimSuffix(name, "y") + "ies"
	default:
		name += "s"
	}
	return gvk.GroupVersion().WithResource(name)
}
