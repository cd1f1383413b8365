package store

import (
	"cmp"
	"strings"
	"time"
)

// A Source is what an object is made of.
type Source interface {
	// Key names it among its kind.
	Key() (namespace, name string)
	// Of is the value it is made of, a pointer: while that is the same, so is
	// the object.
	Of() any
	// First is what is to be known of an object that is new.
	First(Moment) Known
	// Next takes over what was known when it was made of old, and reports
	// whether the object is another now.
	Next(m Moment, old Source, known Known) (Known, bool)
	// Object makes the object.
	Object(Known) *Object
}

// A Moment is when sources are what they are.
type Moment struct {
	// Commit is the one in force, made at Time.
	Commit string
	Time   time.Time
}

// Known is what is remembered of an object from one version to the next.
type Known struct {
	// Created is when the commit was made that brought it.
	Created time.Time
	// Commit is the one that last changed what was declared.
	Commit string
	// Generation counts the changes of what was declared, from 1.
	Generation int64
}

// Compare orders sources as Replace wants them.
func Compare(a, b Source) int {
	aNamespace, aName := a.Key()
	bNamespace, bName := b.Key()
	return cmp.Or(strings.Compare(aNamespace, bNamespace), strings.Compare(aName, bName))
}
