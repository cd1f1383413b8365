// Package sharedlist has immutable lists in pages. A list that is made from another one shares all pages with it in which
// nothing is different, so that a change of one item of a long list takes the memory of one page.
package sharedlist

import (
	"iter"
	"slices"
	"sort"
)

// pageSize is the number of items in each page but the last.
const pageSize = 32

// A List is an immutable list. The zero value is empty.
type List[T any] struct {
	pages [][]T
	len   int
}

// Of returns a list of some items.
func Of[T any](items ...T) List[T] {
	e := List[T]{}.Edit(len(items))
	for i, item := range items {
		e.Set(i, item)
	}
	return e.List()
}

// Len returns the number of items.
func (l List[T]) Len() int { return l.len }

// At returns an item.
func (l List[T]) At(i int) T { return l.pages[i/pageSize][i%pageSize] }

// Search returns the item for which compare, by which the list is in order, returns zero; false if there is none.
func (l List[T]) Search(compare func(item T) int) (item T, found bool) {
	i := sort.Search(l.len, func(i int) bool { return compare(l.At(i)) >= 0 })
	if i == l.len || compare(l.At(i)) != 0 {
		return item, false
	}
	return l.At(i), true
}

// All iterates over the items.
func (l List[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for p, page := range l.pages {
			for i, item := range page {
				if !yield(p*pageSize+i, item) {
					return
				}
			}
		}
	}
}

// Values iterates over the items without their positions.
func (l List[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, item := range l.All() {
			if !yield(item) {
				return
			}
		}
	}
}

// Edit returns an editor for a list with the given number of items: the items of l, cut off or followed by zero values.
func (l List[T]) Edit(items int) *Editor[T] {
	e := &Editor[T]{list: List[T]{make([][]T, (items+pageSize-1)/pageSize), items}}
	e.owned = make([]bool, len(e.list.pages))
	for p := range e.list.pages {
		size := min(pageSize, items-p*pageSize)
		if p < len(l.pages) && len(l.pages[p]) == size {
			e.list.pages[p] = l.pages[p]
			continue
		}
		e.list.pages[p], e.owned[p] = make([]T, size), true
		if p < len(l.pages) {
			copy(e.list.pages[p], l.pages[p])
		}
	}
	return e
}

// An Editor makes a list.
type Editor[T any] struct {
	list  List[T]
	owned []bool // pages that no other list has
}

// At returns an item as it is now.
func (e *Editor[T]) At(i int) T { return e.list.At(i) }

// All iterates over the items as they are now.
func (e *Editor[T]) All() iter.Seq2[int, T] { return e.list.All() }

// Set replaces an item.
func (e *Editor[T]) Set(i int, item T) {
	p := i / pageSize
	if !e.owned[p] {
		e.list.pages[p], e.owned[p] = slices.Clone(e.list.pages[p]), true
	}
	e.list.pages[p][i%pageSize] = item
}

// List returns the list. After that, the editor can still be read, but Set must not be called.
func (e *Editor[T]) List() List[T] { return e.list }

// A Collector collects the items of a slice. As long as they are those of an earlier slice, it takes no memory.
type Collector[T comparable] struct {
	earlier, items []T
	differs        bool
}

// Like returns a collector of a slice that is probably like an earlier one, which it shares if it is.
func Like[T comparable](earlier []T) Collector[T] { return Collector[T]{earlier: earlier} }

// Add adds an item.
func (c *Collector[T]) Add(item T) {
	n := len(c.items)
	if !c.differs && n < len(c.earlier) && c.earlier[n] == item {
		c.items = c.earlier[: n+1 : n+1]
		return
	}
	if !c.differs {
		c.items, c.differs = append(make([]T, 0, max(len(c.earlier), n+1)), c.items...), true
	}
	c.items = append(c.items, item)
}

// Slice returns the items; nil if there are none.
func (c *Collector[T]) Slice() []T { return slices.Clip(c.items) }
