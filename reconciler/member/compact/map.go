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
// space. Most objects are added in order and stay for long, but a cluster may report hundreds of
// thousands in any order: they are in blocks, so that none of them moves all others. The zero value
// is empty. A copy shares the values.
type Map[T any] struct {
	blocks []block[T] // none is empty
	len    int
}

// A block has the entries of some consecutive objects.
type block[T any] []entry[T]

// An entry refers to the one copy of an ID that all clusters share.
type entry[T any] struct {
	id    unique.Handle[api.ID]
	value T
}

// blockSize is the maximum number of entries in a block.
const blockSize = 512

// Len returns the number of objects.
func (m Map[T]) Len() int { return m.len }

// find returns the block and the place in it where an object is, or where it is inserted.
func (m Map[T]) find(id api.ID) (in, at int, found bool) {
	in, _ = slices.BinarySearchFunc(m.blocks, id, func(b block[T], id api.ID) int { return b[len(b)-1].id.Value().Compare(id) })
	if in == len(m.blocks) { // behind all others
		if in == 0 {
			return 0, 0, false
		}
		return in - 1, len(m.blocks[in-1]), false
	}
	at, found = slices.BinarySearchFunc(m.blocks[in], id, func(e entry[T], id api.ID) int { return e.id.Value().Compare(id) })
	return in, at, found
}

// Of returns the value of an object; nil if there is none. It is valid until a value is put or
// dropped.
func (m Map[T]) Of(id api.ID) *T {
	if in, at, found := m.find(id); found {
		return &m.blocks[in][at].value
	}
	return nil
}

// Put sets the value of an object.
func (m *Map[T]) Put(id api.ID, value T) {
	in, at, found := m.find(id)
	if found {
		m.blocks[in][at].value = value
		return
	}
	m.len++
	switch {
	case len(m.blocks) == 0:
		m.blocks = append(m.blocks, nil)
	case len(m.blocks[in]) < blockSize:
	case at == blockSize: // objects that are added in order fill their blocks
		in, at = in+1, 0
		m.blocks = slices.Insert(m.blocks, in, nil)
	default:
		half := m.blocks[in][blockSize/2:]
		m.blocks = slices.Insert(m.blocks, in+1, slices.Clone(half))
		clear(half) // which the collector would keep
		m.blocks[in] = m.blocks[in][:blockSize/2]
		if at > blockSize/2 {
			in, at = in+1, at-blockSize/2
		}
	}
	m.blocks[in] = m.blocks[in].insert(at, entry[T]{unique.Make(id), value})
}

// insert inserts an entry. It grows the block by little, since append would take up to twice the space.
func (b block[T]) insert(at int, e entry[T]) block[T] {
	if n := len(b); n == cap(b) {
		b = append(slices.Grow(block[T](nil), min(n+n/8+2, blockSize)), b...)
	}
	return slices.Insert(b, at, e)
}

// Drop removes the value of an object, if there is one.
func (m *Map[T]) Drop(id api.ID) {
	in, at, found := m.find(id)
	if !found {
		return
	}
	m.len--
	if m.blocks[in] = slices.Delete(m.blocks[in], at, at+1); len(m.blocks[in]) == 0 {
		m.blocks = slices.Delete(m.blocks, in, in+1)
	}
}

// DropFunc removes the values for which del returns true.
func (m *Map[T]) DropFunc(del func(api.ID, *T) bool) {
	m.len = 0
	for i := range m.blocks {
		m.blocks[i] = slices.DeleteFunc(m.blocks[i], func(e entry[T]) bool { return del(e.id.Value(), &e.value) })
		m.len += len(m.blocks[i])
	}
	m.blocks = slices.DeleteFunc(m.blocks, func(b block[T]) bool { return len(b) == 0 })
}

// IDs yields the objects, sorted.
func (m Map[T]) IDs() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for id := range m.All() {
			if !yield(id) {
				return
			}
		}
	}
}

// All yields the objects and their values, sorted by ID. The map must not change meanwhile.
func (m Map[T]) All() iter.Seq2[api.ID, *T] {
	return func(yield func(api.ID, *T) bool) {
		for _, b := range m.blocks {
			for i := range b {
				if !yield(b[i].id.Value(), &b[i].value) {
					return
				}
			}
		}
	}
}
