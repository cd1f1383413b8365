package hub

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// declaredScopes are the scopes of the kinds that the commit defines: the hub, or else an overlay.
func (a *assembly) declaredScopes() map[api.GroupKind]bool {
	all := map[api.GroupKind]bool{}
	maps.Copy(all, a.scopes)
	for _, it := range a.items {
		if it.scope != nil {
			all[it.scope.kind] = it.scope.namespaced
		}
	}
	return all
}

// checkScopes checks custom objects, and placements that select them, against the definitions
// of the commit.
func (a *assembly) checkScopes(scopes map[api.GroupKind]bool) {
	kept := a.items[:0]
	for _, it := range a.items {
		if it.placement != nil && len(scopes) > 0 {
			a.termScopes(it, scopes)
		}
		a.checkWrappedScopes(it, scopes)
		if it.custom {
			it = a.checkScope(it, scopes)
		}
		if it != nil {
			kept = append(kept, it)
		}
	}
	a.items = kept
}

func (a *assembly) termScopes(it *item, scopes map[api.GroupKind]bool) {
	terms := it.placement.Spec.ResourceSelectors
	for i, t := range terms {
		namespaced, declared := scopes[api.GroupKind{Group: t.Group, Kind: t.Kind}]
		if msg := validation.SelectionFault(terms, t.Kind, namespaced, declared, it.id.Namespace != ""); msg != "" {
			field := fmt.Sprintf("spec.resourceSelectors[%d].kind", i)
			a.problem(problem.Error, it.at(field), field, "%s", msg)
		}
	}
}

// checkWrappedScopes checks the contents of an envelope whose kinds the commit defines.
func (a *assembly) checkWrappedScopes(it *item, scopes map[api.GroupKind]bool) {
	for _, w := range it.wrapped {
		if namespaced, declared := scopes[w.id.GroupKind()]; declared && !w.known {
			if message := w.scopeFault(it.id, namespaced); message != "" {
				a.problem(problem.Failure, w.origin, w.field, "in %s: %s", it.id, message)
			}
		}
	}
}

// checkScope returns the item in the scope that its kind requires, with or without a namespace;
// nil if that is impossible.
func (a *assembly) checkScope(it *item, scopes map[api.GroupKind]bool) *item {
	namespaced, declared := scopes[it.id.GroupKind()]
	switch {
	case declared && namespaced && it.id.Namespace == "":
		a.problem(problem.Error, it.origin, "metadata.namespace", needsNamespace, api.WithArticle(it.id.Kind))
		return nil
	case declared && !namespaced && it.id.Namespace != "":
		if !it.built() {
			a.problem(problem.Warning, it.origin, "metadata.namespace", dropsNamespace, api.WithArticle(it.id.Kind))
		}
		return it.withoutNamespace()
	case !declared && it.id.Namespace == "":
		if message := scopeWarning(it.id.GroupKind()); message != "" {
			a.problem(problem.Warning, it.origin, "metadata.namespace", message, it.id.Kind)
		}
	}
	return it
}

// scopeWarning returns the warning of an object without a namespace, which is treated as cluster-scoped; empty if its kind
// probably is that.
func scopeWarning(kind api.GroupKind) string {
	namespaced, known := api.UsuallyNamespaced(kind)
	switch {
	case namespaced:
		return "missing: the kind %s is usually namespaced, and API servers then refuse an object without a namespace; write the namespace, or commit the definition of the kind if it is cluster-scoped"
	case known || strings.HasPrefix(kind.Kind, "Cluster") && kind.Kind != "Cluster":
		return ""
	}
	return "missing, so %s is treated as cluster-scoped, since the commit does not define the kind; if it is namespaced, write the namespace, or commit its definition"
}

// withoutNamespace returns the item as a cluster-scoped object: the same one at every call.
func (it *item) withoutNamespace() *item {
	if it.unnamespaced == nil {
		it.unnamespaced = &item{id: it.id, origin: it.origin, object: it.object.InNamespace("")}
		it.unnamespaced.id.Namespace = ""
	}
	return it.unnamespaced
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
