package ledger

import (
	"maps"
	"slices"
)

// Texts are texts that many records have, such as hashes, commits and reasons. Records that share them take less memory.
// The zero value is not usable; a map is.
type Texts map[string]string

// maxTexts limits how many texts are kept. Beyond it they are forgotten, and shared anew.
const maxTexts = 1 << 16

// Share makes texts refer to the memory of equal ones that were shared before.
func (t Texts) Share(texts ...*string) {
	for _, s := range texts {
		if *s == "" {
			continue
		}
		known, found := t[*s]
		if !found {
			if len(t) >= maxTexts {
				clear(t)
			}
			known, t[*s] = *s, *s
		}
		*s = known
	}
}

// A sharing makes entries that are decoded share what is equal in them, as they did before they were stored.
type sharing struct {
	Texts
	// transitions are those of the last entries that differ.
	transitions []map[string]Transition
}

// maxSharedTransitions limits with how many transitions those of an entry are compared: the clusters of a placement
// change at few different times.
const maxSharedTransitions = 8

func (s *sharing) entry(e *Entry) {
	b := &e.Binding
	s.Share(&b.Cluster, &b.Policy, &b.Reason, &b.Assigned.Commit, &b.Assigned.Hash, &b.Assigned.Labels)
	if b.Circumstances != nil {
		s.Share(&b.Circumstances.RemovedBy)
	}
	if w := e.Seen; w != nil {
		s.Share(&w.Revision.Commit, &w.Revision.Hash, &w.Revision.Labels)
	}
	if len(e.Transitions) == 0 {
		return
	}
	for _, known := range s.transitions {
		if maps.EqualFunc(known, e.Transitions, Transition.equal) {
			e.Transitions = known
			return
		}
	}
	s.transitions = append(s.transitions, e.Transitions)
	s.transitions = slices.Clone(s.transitions[max(0, len(s.transitions)-maxSharedTransitions):])
}

func (t Transition) equal(o Transition) bool { return t.Status == o.Status && t.Time.Equal(o.Time) }
