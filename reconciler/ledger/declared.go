package ledger

import (
	"iter"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Declared is the record of a declared object, kept while the commit in force has it.
// Placements have other records.
type Declared struct {
	Created    time.Time // time of the commit that added the object
	Commit     string    // the commit that last changed the object
	Generation int64     // the changes of its spec, from 1
	DeclaredHashes
}

// DeclaredHashes identify what a commit declares about an object.
type DeclaredHashes struct {
	// Hash depends on all fields, and Spec on the fields that count for the generation. An
	// empty Spec stands for all fields.
	Hash string
	Spec string `json:",omitempty"`
}

// next returns the record for what a commit declares.
func (d Declared) next(h DeclaredHashes, commit string, at time.Time) Declared {
	switch {
	case d.Generation == 0:
		return Declared{Created: at.UTC(), Commit: commit, Generation: 1, DeclaredHashes: h}
	case d.DeclaredHashes == h:
		return d
	case d.Spec != h.Spec || h.Spec == "":
		d.Generation++
	}
	d.Commit, d.DeclaredHashes = commit, h
	return d
}

// Declare records all objects of a commit and its time. Objects that the commit does not have
// are forgotten, so that an object that is added again is a new one. If nothing has changed, the
// map of records stays the same.
func (m *members) Declare(commit string, at time.Time, all iter.Seq2[api.ID, DeclaredHashes]) {
	was, changed := m.declared, false
	is := make(map[api.ID]Declared, len(was)) // readers keep the previous map
	compare := func(id api.ID) {
		if is[id] != was[id] {
			m.markUnsaved(declaredKey(id))
			changed = true
		}
	}
	for id, h := range all {
		is[id] = was[id].next(h, commit, at)
		compare(id)
	}
	for id := range was {
		compare(id)
	}
	if changed {
		m.declared = is
		m.recent.changed()
	}
}

// Declared returns the records of all objects of the commit in force. The map is immutable: a
// Declare that changes anything creates a new one.
func (m *members) Declared() map[api.ID]Declared { return m.declared }
