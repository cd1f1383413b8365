package hub

import (
	"math"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// checkCustom compares custom objects with the definitions of the commit, as schema.CheckBuiltin
// compares built-in kinds. The items, which are cached, keep the problems until their definition
// changes.
func (a *assembly) checkCustom(t *tree.Tree, definitions map[api.GroupKind]*item) error {
	// documents are those of the file at path by number, which is parsed again to find the lines of
	// fields: they are not kept in memory. The items of one file follow each other.
	var documents map[int]*document.Report
	var path string
	find := func(file string) error {
		if file == path {
			return nil
		}
		data, _, err := t.Read(file)
		path, documents = file, map[int]*document.Report{}
		document.Read(path, data, a.limits, math.MaxInt64, func(r *document.Report, _ any) { documents[r.Origin.Document] = r })
		return err
	}
	for _, it := range a.items {
		by := definitions[it.id.GroupKind()]
		if by == nil || !it.custom || it.object == nil {
			continue
		}
		if it.definition != by {
			it.compare(by, &document.Report{})
			if len(it.mismatches) > 0 && !it.built() {
				if err := find(it.origin.Path); err != nil {
					return err
				}
				it.compare(by, documents[it.origin.Document])
			}
			it.definition = by
		}
		a.problems = append(a.problems, it.mismatches...)
	}
	return nil
}

// definitions are the items that define kinds.
func (a *assembly) definitions() map[api.GroupKind]*item {
	all := map[api.GroupKind]*item{}
	for _, it := range a.items {
		if it.scope != nil && it.object != nil {
			all[it.scope.kind] = it
		}
	}
	return all
}

// compare compares a custom object with its definition. The problems have the lines of the
// document.
func (it *item) compare(by *item, doc *document.Report) {
	r := &document.Report{Origin: it.origin, Object: it.top, Root: doc.Root, LinesBefore: doc.LinesBefore}
	schema.CheckCustom(r, it.top, it.object.Content, by.object.Content, "the CustomResourceDefinition at "+positionText(by.origin))
	it.mismatches = r.Problems
	if len(r.Numbers) > 0 {
		object := *it.object // which a snapshot may use
		object.Numbers = r.Numbers
		it.object = &object
	}
}
