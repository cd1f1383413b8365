package ledger

import (
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Declared is what is remembered of an object for as long as commits have it.
// Placements have a record of their own for that.
type Declared struct {
	// Created is the time of the commit that brought the object.
	Created time.Time
	// Commit last changed anything of it.
	Commit string
	// Generation counts the changes of its spec from 1.
	Generation int64
	Content
}

// A Content tells what an object declares from what it declared before.
type Content struct {
	// Hash changes with anything, Spec with what a generation counts; empty if
	// that is anything.
	Hash string
	Spec string `json:",omitempty"`
}

// next is what is remembered of an object with a content at a commit.
func (d Declared) next(c Content, commit string, at time.Time) Declared {
	switch {
	case d.Generation == 0:
		return Declared{Created: at.UTC(), Commit: commit, Generation: 1, Content: c}
	case d.Content == c:
		return d
	case d.Spec != c.Spec || c.Spec == "":
		d.Generation++
	}
	d.Commit, d.Content = commit, c
	return d
}

// Declare writes down all that a commit has, which was made at a time. What it
// has no more is forgotten: if it comes again, it is another.
func (l *Ledger) Declare(commit string, at time.Time, all iter.Seq2[api.ID, Content]) {
	changed := map[api.ID]Declared{}
	n := 0
	for id, c := range all {
		n++
		was := l.declared[id]
		if is := was.next(c, commit, at); is != was {
			changed[id] = is
		}
	}
	if len(changed) == 0 && n == len(l.declared) {
		return
	}
	next := maps.Clone(l.declared) // others read the one there was
	for id, d := range changed {
		next[id] = d
		l.saw(declaredKey(id))
	}
	if n < len(next) {
		gone := maps.Clone(next)
		for id := range all {
			delete(gone, id)
		}
		for id := range gone {
			delete(next, id)
			l.saw(declaredKey(id))
		}
	}
	l.declared = next
}

// Declared is what is remembered of all that the commit in force has. It is not
// changed any more: the next Declare makes another.
func (l *Ledger) Declared() map[api.ID]Declared { return l.declared }

func declaredKey(id api.ID) string {
	return strings.Join([]string{"o", id.Group, id.Kind, id.Namespace, id.Name}, "\x00")
}

// declaredOf reads the parts of the key of what was declared.
func declaredOf(parts []string) api.ID {
	return api.ID{Group: parts[1], Kind: parts[2], Namespace: parts[3], Name: parts[4]}
}
