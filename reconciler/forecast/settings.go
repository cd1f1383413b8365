package forecast

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A SettingChange is a changed field of the spec of a placement, except for its selectors and the type of its policy.
type SettingChange struct {
	// Field is the path of the field below spec.
	Field string `json:"field"`
	// From and To are the values as JSON; empty if the field is not set.
	From string `json:"from"`
	To   string `json:"to"`
}

// settingChanges returns the fields that differ, sorted. Equivalent policies do not differ.
func settingChanges(before, after *api.PlacementSpec) []SettingChange {
	was, is := settings(before), settings(after)
	samePolicy := placement.PolicyHash(before.Policy) == placement.PolicyHash(after.Policy)
	all := maps.Clone(was)
	maps.Copy(all, is)
	var out []SettingChange
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if was[field] != is[field] && !(samePolicy && strings.HasPrefix(field, "policy.")) {
			out = append(out, SettingChange{field, was[field], is[field]})
		}
	}
	return out
}

// settings returns the fields of a spec by their paths. A list is one value.
func settings(s *api.PlacementSpec) map[string]string {
	spec := *s
	spec.ResourceSelectors = nil
	if s.Policy != nil {
		policy := *s.Policy
		policy.PlacementType, policy.NumberOfClusters = "", nil
		spec.Policy = &policy
	}
	data, err := json.Marshal(spec)
	if err != nil {
		panic("forecast: the spec of a placement is not JSON: " + err.Error())
	}
	var fields map[string]json.RawMessage
	out := map[string]string{}
	if err := json.Unmarshal(data, &fields); err != nil {
		panic("forecast: the spec of a placement is no object: " + err.Error())
	}
	delete(fields, "resourceSelectors")
	flatten(out, "", fields)
	return out
}

func flatten(out map[string]string, path string, fields map[string]json.RawMessage) {
	for name, value := range fields {
		var inner map[string]json.RawMessage
		if json.Unmarshal(value, &inner) == nil && inner != nil {
			flatten(out, path+name+".", inner)
			continue
		}
		out[path+name] = string(value)
	}
}
