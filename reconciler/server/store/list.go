package store

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Query selects objects of a kind.
type Query struct {
	Kind schema.GroupVersionResource
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels and Fields are nil for any.
	Labels labels.Selector
	Fields fields.Selector
}

func (q Query) matches(o *Object) bool {
	return (q.Namespace == "" || o.Namespace == q.Namespace) &&
		(q.Labels == nil || q.Labels.Matches(labels.Set(o.Labels))) &&
		(q.Fields == nil || q.Fields.Matches(o.Selectable()))
}

// selects reports whether the query has a selector, so that an object has to be made to know whether it matches.
func (q Query) selects() bool {
	return q.Labels != nil && !q.Labels.Empty() || q.Fields != nil && !q.Fields.Empty()
}

// Version returns the version of the newest change.
func (s *Store) Version() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Get returns one object; nil if there is none.
func (s *Store) Get(kind schema.GroupVersionResource, namespace, name string) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[kind]
	if k == nil {
		return nil
	}
	if i, found := k.find(namespace, name); found {
		return k.slots[i].read()
	}
	return nil
}

func (k *kindStore) find(namespace, name string) (int, bool) {
	return sort.Find(len(k.slots), func(i int) int {
		ns, n := k.slots[i].source.Key()
		return cmp.Or(strings.Compare(namespace, ns), strings.Compare(name, n))
	})
}

// A Page is a part of a list, sorted by namespace and name.
type Page struct {
	Objects []*Object
	// Version is the version of the store when the page was made.
	Version uint64
	// More says that there are further pages, and Left counts their objects; zero if the query has a selector.
	More bool
	Left int
}

// List returns the objects after a given one, which need not exist any more, up to limit if it
// is above zero.
func (s *Store) List(q Query, afterNamespace, afterName string, limit int) Page {
	s.mu.RLock()
	defer s.mu.RUnlock()
	page := Page{Version: s.version}
	k := s.kinds[q.Kind]
	if k == nil {
		return page
	}
	from := 0
	if afterName != "" {
		i, found := k.find(afterNamespace, afterName)
		if from = i; found {
			from++
		}
	}
	selects := q.selects()
	for _, o := range k.slots[from:] {
		if namespace, _ := o.source.Key(); q.Namespace != "" && namespace != q.Namespace {
			continue
		}
		full := limit > 0 && len(page.Objects) == limit
		if full && !selects {
			page.More = true
			page.Left++
			continue
		}
		object := o.read()
		if selects && !q.matches(object) {
			continue
		}
		if full { // counting the others would make them, for each page
			page.More = true
			break
		}
		page.Objects = append(page.Objects, object)
	}
	return page
}

// after returns the index in the log of the first version after the given one.
func (k *kindStore) after(version uint64) int {
	i, _ := slices.BinarySearchFunc(k.log, version+1, func(r record, v uint64) int { return cmp.Compare(r.version, v) })
	return i
}
