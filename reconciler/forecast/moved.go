package forecast

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// MovedItems returns a warning for each index in a patch or a replacement of a kustomization, a patch of an override or
// an annotation that means another item of a list than in an earlier snapshot. That is only asked for if there are
// indexes; it may be nil.
func MovedItems(before func() *hub.Snapshot, after *hub.Snapshot) problem.List {
	now := uses(after)
	if len(now) == 0 {
		return nil
	}
	earlier := before()
	if earlier == nil {
		return nil
	}
	var out problem.List
	for _, m := range listitem.Moves(uses(earlier), now) {
		p := problem.Problem{Origin: m.Origin, Field: m.Field, Severity: problem.Warning, Message: fmt.Sprintf(
			"%s means another item of %s than before: %s; correct the index, or name the item: by a strategic merge patch, or with an operation test before it", m.Pointer, m.Object, m.Text)}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// uses returns the indexes that people have written.
func uses(s *hub.Snapshot) []listitem.Use {
	out := slices.Clone(s.Uses)
	targets := overrideTargets{snapshot: s}
	for _, o := range s.ClusterOverrides {
		if o.Spec.Policy == nil {
			continue
		}
		for _, selector := range o.Spec.ClusterResourceSelectors {
			id := api.ID{Group: selector.Group, Kind: selector.Kind, Name: selector.Name}
			for _, object := range targets.find(id) {
				out = append(out, work.OverrideUses(object, o.Origin, o.Spec.Policy.OverrideRules)...)
			}
		}
	}
	for _, o := range s.Overrides {
		if o.Spec.Policy == nil {
			continue
		}
		for _, selector := range o.Spec.ResourceSelectors {
			id := api.ID{Group: selector.Group, Kind: selector.Kind, Namespace: o.Namespace, Name: selector.Name}
			for _, object := range targets.find(id) {
				out = append(out, work.OverrideUses(object, o.Origin, o.Spec.Policy.OverrideRules)...)
			}
		}
	}
	for _, o := range s.Objects {
		pointers, _ := api.Pointers(o.Content.GetAnnotations()[api.IgnoreFieldsAnnotation])
		for _, pointer := range pointers {
			for _, use := range listitem.Uses(o.ID, o.Content.Object, pointer, false) {
				use.Origin, use.Field = o.Origin, "metadata.annotations["+api.IgnoreFieldsAnnotation+"]"
				out = append(out, use)
			}
		}
	}
	return out
}

// overrideTargets finds the objects that overrides change.
type overrideTargets struct {
	snapshot *hub.Snapshot
	// wrapped are the objects in envelopes; nil until they are needed.
	wrapped map[api.ID][]*api.Object
}

// find returns the objects that a selector of an override is for: a Namespace also stands for all that is in it.
func (t *overrideTargets) find(id api.ID) []*api.Object {
	if id.GroupKind() == (api.GroupKind{Kind: "Namespace"}) {
		var out []*api.Object
		for _, o := range t.snapshot.Objects {
			if o.ID == id || o.ID.Namespace == id.Name {
				out = append(out, o)
			}
		}
		return out
	}
	if o := t.snapshot.Object(id); o != nil {
		return []*api.Object{o}
	}
	if t.wrapped == nil {
		t.wrapped = map[api.ID][]*api.Object{}
		everything := placement.NewIndex(t.snapshot.Objects)
		for _, p := range t.snapshot.Placements {
			scope := plan.Scope(t.snapshot)
			selected := placement.Select(placement.Terms{Key: p.Key, Spec: &p.Spec, Scope: scope}, everything)
			for _, m := range work.NewRenderer(p.Key, selected.Objects, nil, nil, scope).Manifests() {
				if m.Envelope != nil && len(t.wrapped[m.ID]) == 0 {
					t.wrapped[m.ID] = []*api.Object{m.Object}
				}
			}
		}
	}
	return t.wrapped[id]
}
