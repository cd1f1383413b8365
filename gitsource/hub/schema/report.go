package schema

import (
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// A fieldSchema describes the values of a field: a goType, or a property of a
// CustomResourceDefinition.
type fieldSchema interface{ shape() shape }

// A shape is what a schema says about a value. A value has one of three forms: a scalar if fault
// is set, a list if items is set, and a mapping if fields is set. The zero shape allows any
// value.
type shape struct {
	// fault returns what was expected instead of v; empty if v is valid.
	fault func(v any) string
	items fieldSchema
	// key identifies the items of a list; nil if they are not identified.
	key itemKey
	// fields are the known fields of a mapping, and values is the schema of all others. Without
	// values, other fields are unknown, unless loose is set.
	fields fieldSet
	values fieldSchema
	loose  bool
	// resource adds the fields that every resource has: schemas do not list them.
	resource bool
}

// An itemKey says by what an API server identifies the items of a list: by the values of some of
// their fields or, if there are none, by the whole item. It refuses a list in which two items
// are the same.
type itemKey []keyField

// A keyField is a field that identifies an item. Items without it have its default value; empty
// if there is none.
type keyField struct{ name, byDefault string }

// A fieldSet has the known fields of a mapping.
type fieldSet interface {
	size() int
	names() []string
	find(name string) (fieldSchema, bool)
}

// ownRules are rules for a kind of gitfleet that its Go type does not express.
type ownRules struct {
	// absent are the paths of the fields that the API version does not have, in which [] stands for the items of a list, and
	// newest is the apiVersion that has them.
	absent []string
	newest string
}

// A level is a mapping on the path to a value.
type level struct {
	up     *level
	at     *document.FieldPath
	fields fieldSet
}

// A comparison compares a value with its schema, and reports the parts that do not match.
type comparison struct {
	r *document.Report
	// by says in warnings what the value was compared with.
	by string
	// secret says that the object is a Secret.
	secret bool
	// own are the rules of gitfleet's kinds; nil for other kinds. With them, the problems are
	// errors, mistakes are corrected, and invalid parts are removed, so that the rest can be
	// decoded. Without them, the problems are warnings, and the value stays unchanged.
	own *ownRules
	// texts are the texts that can be nothing else; nil if they are not collected.
	texts *[][]string
}

func (c *comparison) report(p *document.FieldPath, message string) {
	if c.own == nil {
		// what a key or a value with a variable will be is not known; messages quote values
		if !variable.In(message) && !slices.ContainsFunc(p.Keys(c.r.Object), variable.In) {
			c.r.Warnf(p, "%s (checked against %s)", message, c.by)
		}
		return
	}
	c.r.Errorf(p, "%s", message)
	c.r.Mute(p)
}

// full reports whether further problems would not be reported.
func (c *comparison) full() bool {
	if c.own == nil {
		return c.r.Full(problem.Warning)
	}
	return c.r.Full(problem.Error)
}
