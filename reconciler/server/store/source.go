package store

import (
	"cmp"
	"strings"
)

// A Source is what an object is made of.
type Source interface {
	// Key names it among its kind.
	Key() (namespace, name string)
	// Same reports whether the object is the one that was made of old, which has
	// the same key. It is asked often, and has to be quick.
	Same(old Source) bool
	// Object makes the object.
	Object() *Object
}

// Compare orders sources as Replace wants them.
func Compare(a, b Source) int {
	aNamespace, aName := a.Key()
	bNamespace, bName := b.Key()
	return cmp.Or(strings.Compare(aNamespace, bNamespace), strings.Compare(aName, bName))
}
