package hub

import (
	"fmt"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// annotationRules are those of our own annotations on what may be placed. Their
// mistakes would otherwise be found on the members, one by one.
var annotationRules = []struct {
	name string
	rule func(value string) error
}{
	{api.AvailableAnnotation, func(value string) error {
		if _, err := expression.Compile(value); err != nil {
			return fmt.Errorf("not a CEL expression over object that says whether it is available: %w", err)
		}
		return nil
	}},
	{api.IgnoreFieldsAnnotation, func(value string) error {
		_, err := api.Pointers(value)
		return err
	}},
	{api.PruneAnnotation, func(value string) error {
		if value != api.PruneDisabled {
			return fmt.Errorf("%q is unknown; write %q, or leave the annotation out", value, api.PruneDisabled)
		}
		return nil
	}},
}

// annotationsFit judges our annotations on the object at p.
func annotationsFit(r *report, p *fieldPath, object map[string]any) bool {
	meta, _ := object["metadata"].(map[string]any)
	notes, _ := meta["annotations"].(map[string]any)
	ok := true
	for _, a := range annotationRules {
		value, written := notes[a.name].(string)
		if !written {
			continue
		}
		if err := a.rule(value); err != nil {
			r.errorf(p.child("metadata", "annotations", a.name), "%v", err)
			ok = false
		}
	}
	return ok
}
