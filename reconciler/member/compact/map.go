// Package compact keeps what is known of very many objects in little memory.
//
// A daemon knows millions of objects, and most of what it knows of one is the same for that
// object on other clusters. A Map refers to the one copy of an ID that all clusters share; its
// values should do the same with what they have in common.
package compact

import (
	"iter"
	"slices"
	"unique"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Map has a value for each of many objects, sorted by ID; a Go map would take a third more
// space. Most objects are added in order and stay for long. The zero value is empty.
type Map[T any] []entry[T]

// An entry refers to the one copy of an ID that all clusters share.
type entry[T any] struct {
	id    unique.Handle[api.ID]
	value T
}

func (m Map[T]) find(id api.ID) (at int, found bool) {
	return slices.BinarySearchFunc(m, id, func(e entry[T], id api.ID) int { return e.id.Value().Compare(id) })
}

// Of returns the value of an object; nil if there is none. It is valid until a value is put or
// dropped.
func (m Map[T]) Of(id api.ID) *T {
	if at, found := m.find(id); found {
		return &m[at].value
	}
	return nil
}

// Put sets the value of an object. It grows the slice by little, since append would take up to
// twice the space.
func (m *Map[T]) Put(id api.ID, value T) {
	at, found := m.find(id)
	if found {
		(*m)[at].value = value
		return
	}
	if n := len(*m); n == cap(*m) {
		*m = append(slices.Grow(Map[T](nil), n+n/8+4), *m...)
	}
	*m = slices.Insert(*m, at, entry[T]{unique.Make(id), value})
}

// Drop removes the value of an object, if there is one.
func (m *Map[T]) Drop(id api.ID) {
	if at, found := m.find(id); found {
		*m = slices.Delete(*m, at, at+1)
	}
}

// DropFunc removes the values for which del returns true.
func (m *Map[T]) DropFunc(del func(api.ID, *T) bool) {
	*m = slices.DeleteFunc(*m, func(e entry[T]) bool { return del(e.id.Value(), &e.value) })
}

// IDs yields the objects, sorted.
func (m Map[T]) IDs() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for _, e := range m {
			if !yield(e.id.Value()) {
				return
			}
		}
	}
}

// All yields the objects and their values, sorted by ID. The map must not change meanwhile.
func (m Map[T]) All() iter.Seq2[api.ID, *T] {
	return func(yield func(api.ID, *T) bool) {
		for i := range m {
			if !yield(m[i].id.Value(), &m[i].value) {
				return
			}
		}
	}
}
