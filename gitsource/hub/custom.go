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
	by       *item
	problems problem.List
}

// A misfit is a custom object that differs from its definition.
type misfit struct {
	*item
	by    *item
	found *schema.Comparison
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
	if len(definitions) == 0 {
		return nil
	}
	var customItems []*item
	misfits := map[string][]misfit{} // by file
	for _, it := range a.items {
		by := definitions[it.id.GroupKind()]
		if by == nil || !it.custom || it.object == nil {
			continue
		}
		customItems = append(customItems, it)
		if it.customResult != nil && it.customResult.by == by {
			continue
		}
		if found := schema.CompareCustom(it.top, it.object.Object, by.object.Object); !found.Fits() {
			misfits[it.origin.Path] = append(misfits[it.origin.Path], misfit{it, by, found})
		} else {
			it.customResult = &customResult{by: by}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(misfits)) {
		if err := l.reportMisfits(t, path, misfits[path]); err != nil {
			return err
		}
	}
	for _, it := range customItems {
		a.problems = append(a.problems, it.customResult.problems...)
	}
	return nil
}

// reportMisfits reports the misfits of one file. It reads the file again to find their lines,
// which are not kept in memory.
func (l *Loader) reportMisfits(t *tree.Tree, path string, misfits []misfit) error {
	documents := map[int]document.Document{}
	if slices.ContainsFunc(misfits, func(m misfit) bool { return !m.built() }) {
		defer t.Drop(path)
		data, err := t.Read(path)
		if err != nil {
			return err
		}
		for _, doc := range document.Parse(path, data, l.opts.Limits.documents(), nil).Documents {
			documents[doc.Number] = doc
		}
	}
	for _, m := range misfits {
		r := &document.Report{Origin: m.origin, Object: m.top}
		if !m.built() {
			doc := documents[m.origin.Document]
			r.Root, r.LinesBefore = doc.Root, doc.LinesBefore
		}
		m.found.Warn(r, "the CustomResourceDefinition at "+positionText(m.by.origin))
		m.customResult = &customResult{m.by, r.Problems}
	}
	return nil
}
