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

// Terms are what a placement asks for.
type Terms struct {
	Key  api.PlacementKey
	Spec *api.PlacementSpec
	// Scope says of a kind whether it is namespaced, as far as somebody knows.
	// Of the others it is guessed from their objects; Scope may be nil.
	Scope func(api.GroupKind) (namespaced, known bool)
	// Propagation is the operator's part of what is never propagated.
	Propagation *Propagation
}

// A Selection is what a placement names.
type Selection struct {
	// Objects are in canonical order, each once; shared, not copied. An
	// envelope stands for its contents.
	Objects []*api.Object
	// Invalid is the whole message for the condition Scheduled=False,
	// InvalidResourceSelectors; empty if the selectors are valid. Then there
	// are no Objects, and the placement keeps what it holds.
	Invalid string
	// InvalidField is where the error is, such as spec.resourceSelectors[1].
	InvalidField string
	// Unmatched are the selectors that match no object of the repository, by their
	// index, in order.
	Unmatched []int
	// Warnings are in order of the selectors.
	Warnings []Warning
}

// A Warning tells of a selector that does not do what it seems to say.
type Warning struct {
	// Field is a path such as spec.resourceSelectors[1].
	Field   string
	Message string
}

// String returns field: message.
func (w Warning) String() string { return w.Field + ": " + w.Message }

// Select returns the objects that a placement names. One invalid selector makes
// the whole selection invalid, as an answer; selecting nothing is valid.
func Select(t Terms, x *Index) Selection {
	s := &selecting{Terms: t, index: x, term: -1, by: map[int]int{}}
	if err := s.resolve(); err != nil {
		return Selection{
			Invalid:      "The resource selectors are invalid: failed to process the request due to a client error: " + err.Error(),
			InvalidField: s.field(),
			Warnings:     s.warnings,
		}
	}
	slices.Sort(s.taken)
	objects := make([]*api.Object, len(s.taken))
	for i, at := range s.taken {
		objects[i] = x.entries[at].object
	}
	return Selection{Objects: objects, Unmatched: s.unmatched, Warnings: s.warnings}
}

// selecting is one selection in the making.
type selecting struct {
	Terms
	index *Index
	home  string      // the namespace of namespaced objects
	term  int         // the one at work
	taken []int       // positions in the index, each once
	by    map[int]int // which term took a position
	twice []int       // positions the current term reached again

	unmatched []int
	warnings  []Warning
}

// field names what is at work: a selector, or before the first the namespace.
func (s *selecting) field() string {
	if s.term < 0 {
		return "metadata.namespace"
	}
	return fmt.Sprintf("spec.resourceSelectors[%d]", s.term)
}

func (s *selecting) warn(format string, args ...any) {
	s.warnings = append(s.warnings, Warning{s.field(), fmt.Sprintf(format, args...)})
}

// resolve first finds the namespace that the other terms select from, because
// its term may stand anywhere in the list.
func (s *selecting) resolve() error {
	if err := s.findHome(); err != nil {
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
		s.tellTwice()
	}
	return nil
}

func gvkOf(t api.ResourceSelectorTerm) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
}

// key is how most messages spell the placement.
func (s *selecting) key() string { return s.Key.Namespace + "/" + s.Key.Name }

func (s *selecting) resolveTerm(t api.ResourceSelectorTerm) error {
	gvk := gvkOf(t)
	if s.Propagation.stays(gvk, stayAtHome(gvk)) {
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
		s.warn("no object, no CustomResourceDefinition and no built-in kind is a %s, so this selects nothing%s", gvk.GroupKind(), s.index.meantKind(gvk.GroupKind()))
		return nil
	case !namespaced && s.Key.Namespace != "":
		return fmt.Errorf("invalid placement %s: cannot select cluster-scoped resource %v in a resourcePlacement", s.key(), resourceOf(gvk))
	case namespaced && s.home == "":
		return fmt.Errorf("invalid placement %s: cannot select namespace-scoped resource %v in a clusterResourcePlacement", s.key(), resourceOf(gvk))
	}
	return s.objects(t, namespaced)
}

func (s *selecting) scope(gk api.GroupKind) (namespaced, known bool) {
	if s.Scope != nil {
		if namespaced, known = s.Scope(gk); known {
			return namespaced, known
		}
	}
	return s.index.scope(gk)
}

// objects selects by kind, from the home namespace if the kind is namespaced.
func (s *selecting) objects(t api.ResourceSelectorTerm, namespaced bool) error {
	match, err := s.matcher(t)
	if err != nil {
		return err
	}
	if s.Key.Namespace != "" && t.Name == "" && s.Propagation.reserved(s.Key.Namespace) {
		s.warn("namespace %s is reserved, so this selects nothing: name each object to place", s.Key.Namespace)
		return nil
	}
	place := placeKey{gvk: gvkOf(t)}
	if namespaced {
		place.namespace = s.home
	}
	found := 0
	for _, at := range s.index.places[place] {
		e := &s.index.entries[at]
		if !match(e) {
			continue
		}
		found++
		if e.refused == "" {
			s.take(at)
		} else if t.Name != "" {
			s.warn("%s is never propagated: %s", e.object.ID, e.refused)
		}
	}
	if found == 0 {
		s.unmatched = append(s.unmatched, s.term)
		s.warnNothing(t, place.namespace)
	}
	return nil
}

// matcher tells which entries a term means by name or labels.
func (s *selecting) matcher(t api.ResourceSelectorTerm) (func(*entry) bool, error) {
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

func (s *selecting) take(at int) {
	if _, taken := s.by[at]; taken {
		s.twice = append(s.twice, at)
		return
	}
	s.by[at] = s.term
	s.taken = append(s.taken, at)
}

// tellTwice warns of objects that an earlier term selects as well.
func (s *selecting) tellTwice() {
	if len(s.twice) == 0 {
		return
	}
	first := s.twice[0]
	more := ""
	if n := len(s.twice) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	s.warn("%s%s: spec.resourceSelectors[%d] selects it already, and it is taken once", s.index.entries[first].object.ID, more, s.by[first])
	s.twice = nil
}

// warnNothing says why a term found nothing, as far as that can be seen.
func (s *selecting) warnNothing(t api.ResourceSelectorTerm, namespace string) {
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
		s.warn("there is no %s in %s, so this selects nothing%s", what, where, s.index.meantName(placeKey{gvkOf(t), namespace}, t.Name))
	}
}

// meantName suggests an object of a kind in a namespace for a name that none has.
func (x *Index) meantName(place placeKey, name string) string {
	if name == "" {
		return ""
	}
	names := make([]string, 0, len(x.places[place]))
	for _, at := range x.places[place] {
		names = append(names, x.entries[at].object.ID.Name)
	}
	if near := api.Closest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// meantKind suggests a kind for one that nobody knows: one of that name in another group,
// one of that group that is spelt almost like it, or one of another group that is.
func (x *Index) meantKind(gk api.GroupKind) string {
	known := slices.AppendSeq(api.KnownKinds(), maps.Keys(x.versions))
	slices.SortFunc(known, func(a, b api.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	var kinds, siblings []string // of all groups, and of this
	for _, k := range known {
		if k.Group == "extensions" {
			continue // no longer served
		}
		kinds = append(kinds, k.Kind)
		if k.Group == gk.Group {
			siblings = append(siblings, k.Kind)
		}
	}
	kind := gk.Kind
	if !slices.Contains(kinds, kind) {
		kind = cmp.Or(api.Closest(kind, siblings), api.Closest(kind, kinds))
	}
	meant := api.GroupKind{Group: gk.Group, Kind: kind}
	if !slices.Contains(siblings, kind) {
		i := slices.IndexFunc(known, func(k api.GroupKind) bool { return k.Kind == kind && k.Group != "extensions" })
		if i < 0 {
			return ""
		}
		meant = known[i]
	}
	return fmt.Sprintf("; did you mean %s?", meant)
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
