package work

import (
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// OverrideUses returns the indexes in the paths of an override's patches of an object, with the items that they mean
// after the operations before them in their rule. An item that the rule tests is left out: it cannot be another one.
func OverrideUses(object *api.Object, origin api.Origin, rules []api.OverrideRule) []listitem.Use {
	var out []listitem.Use
	for i, rule := range rules {
		if !slices.ContainsFunc(rule.JSONPatchOverrides, hasIndex) {
			continue
		}
		doc, err := json.Marshal(object.Content.Object)
		if err != nil {
			return nil
		}
		for n, p := range rule.JSONPatchOverrides {
			var now any
			if hasIndex(p) && utiljson.Unmarshal(doc, &now) == nil {
				for _, use := range listitem.Uses(object.ID, now, p.Path, p.Operator == api.JSONPatchAdd) {
					if !tests(rule.JSONPatchOverrides[:n], use) {
						use.Origin, use.Field = origin, fmt.Sprintf("spec.policy.overrideRules[%d].jsonPatchOverrides[%d].path", i, n)
						out = append(out, use)
					}
				}
			}
			operation, _ := json.Marshal([]api.JSONPatchOverride{p})
			if patch, err := jsonpatch.DecodePatch(operation); err == nil {
				if next, err := patch.ApplyWithOptions(doc, applyOptions); err == nil {
					doc = next
				}
			}
		}
	}
	return out
}

// hasIndex reports whether the path of an operation that changes something may have the index of an item.
func hasIndex(p api.JSONPatchOverride) bool {
	lists, _ := listitem.Lists(p.Path, p.Operator == api.JSONPatchAdd)
	return lists != nil && p.Operator != api.JSONPatchTest
}

// tests reports whether one of some operations tests the item that an index means.
func tests(patches []api.JSONPatchOverride, use listitem.Use) bool {
	item := fmt.Sprintf("%s/%d", use.List, use.Index)
	return slices.ContainsFunc(patches, func(p api.JSONPatchOverride) bool {
		return p.Operator == api.JSONPatchTest && (p.Path == item || p.Path == item+"/"+use.Items.Key)
	})
}
