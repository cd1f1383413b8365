package gitsource

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// layeredObjects reads objects from stores and keeps new objects in memory. The stores are not
// changed.
type layeredObjects struct {
	*memory.Storage
	stores []*objects.Store
	// limit is the largest object that is read from a store, in bytes.
	limit int64
}

// EncodedObject implements storer.EncodedObjectStorer.
func (l *layeredObjects) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if o, err := l.Storage.EncodedObject(t, h); err == nil {
		return o, nil
	}
	for _, st := range l.stores {
		if !st.Has(h) {
			continue
		}
		raw, err := st.Object(t, h, l.limit)
		if err != nil {
			return nil, err
		}
		return encoded(t, raw)
	}
	return nil, plumbing.ErrObjectNotFound
}

// made returns the hashes of the objects in memory.
func (l *layeredObjects) made() []plumbing.Hash {
	var all []plumbing.Hash
	for h := range l.Objects {
		all = append(all, h)
	}
	return all
}

func encoded(t plumbing.ObjectType, raw []byte) (plumbing.EncodedObject, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(t)
	_, err := o.Write(raw)
	return o, err
}
