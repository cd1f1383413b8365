package chart

import (
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// ReadValues reads a file of values. Each document of it replaces values of the documents before it. The problems are errors.
func ReadValues(t *tree.Tree, name string, limits limit.Limits) (all []map[string]any, problems problem.List, err error) {
	fail := func(message string) {
		problems = append(problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: message})
	}
	data, fault, err := t.Read(name)
	if err != nil {
		return nil, nil, err
	}
	if fault != "" {
		fail(fault)
		return nil, problems, nil
	}
	file := document.Read(name, data, limits, limits.BuildInput, func(r *document.Report, value any) {
		values, isMap := value.(map[string]any)
		switch {
		case !isMap:
			r.Errorf(nil, "values are a mapping, not %s", document.Describe(value))
		case values["apiVersion"] != nil && values["kind"] != nil:
			r.Errorf(nil, "this is a Kubernetes object, not values; correct the path in valuesFiles")
		case api.IsEncryptedDocument(values):
			r.Errorf(nil, "%s", Encrypted)
		}
		all = append(all, values)
	})
	problems = append(problems, file.Problems.Errors()...)
	if file.Cut {
		fail("the values take too much memory; make them smaller, or raise limits.buildInput")
	}
	return all, problems, nil
}
