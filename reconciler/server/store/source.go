package store

import (
	"cmp"
	"strings"
)

// A Source creates an object.
type Source interface {
	// Key identifies it within its kind.
	Key() (namespace, name string)
	// Same reports whether the object equals the one created from old, which has the same key.
	// It is called often and must be fast.
	Same(old Source) bool
	// Object makes the object.
	Object() *Object
}

// A Transient source makes its object each time it is read, since there are many of them of which few are read.
type Transient interface {
	Source
	Transient()
}

// Compare orders sources as Replace requires.
func Compare(a, b Source) int {
	aNamespace, aName := a.Key()
	bNamespace, bName := b.Key()
	return cmp.Or(strings.Compare(aNamespace, bNamespace), strings.Compare(aName, bName))
}
