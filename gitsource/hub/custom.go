package hub

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A customResult is the result of comparing a custom object with one definition.
type customResult struct {
	definition *item
	problems   problem.List
}

// checkCustom compares custom objects with the definitions of the commit, as
// schema.CheckBuiltin compares built-in kinds, and caches the results.
func (l *Loader) checkCustom(t *tree.Tree, a *assembly) error {
	definitions := map[api.GroupKind]*item{}
	for _, it := range a.items {
		if it.scope != nil && it.object != nil {
			definitions[it.scope.kind] = it
		}
	}
	var customItems []*item
	mismatches := map[string][]*item{} // by file
	for _, it := range a.items {
		by := definitions[it.id.GroupKind()]
		if by == nil || !it.custom || it.object == nil {
			continue
		}
		customItems = append(customItems, it)
		if it.customResult != nil && it.customResult.definition == by {
			continue
		}
		if it.compare(by, document.Document{}); len(it.customResult.problems) > 0 && !it.built() {
			it.customResult = nil // until the lines are known
			mismatches[it.origin.Path] = append(mismatches[it.origin.Path], it)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(mismatches)) {
		documents, err := l.parseAgain(t, path)
		if err != nil {
			return err
		}
		for _, it := range mismatches[path] {
			it.compare(definitions[it.id.GroupKind()], documents[it.origin.Document])
		}
	}
	for _, it := range customItems {
		a.problems = append(a.problems, it.customResult.problems...)
	}
	return nil
}

// parseAgain parses a file to find the lines of fields, which are not kept in memory. It returns
// the documents by number.
func (l *Loader) parseAgain(t *tree.Tree, path string) (map[int]document.Document, error) {
	data, _, err := t.Read(path)
	if err != nil {
		return nil, err
	}
	documents := map[int]document.Document{}
	for _, doc := range document.Parse(path, data, l.opts.Limits, nil).Documents {
		documents[doc.Number] = doc
	}
	return documents, nil
}

// compare compares a custom object with its definition. Without a document, the problems have
// no lines.
func (it *item) compare(by *item, doc document.Document) {
	r := &document.Report{Origin: it.origin, Object: it.top, Root: doc.Root, LinesBefore: doc.LinesBefore}
	schema.CheckCustom(r, it.top, it.object.Content, by.object.Content, "the CustomResourceDefinition at "+positionText(by.origin))
	it.customResult = &customResult{by, r.Problems}
}
