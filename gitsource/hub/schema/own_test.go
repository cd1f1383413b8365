package schema

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Every type of the API whose values are words has its valid values here, or takes any text. A
// new type must be added to one of them.
func TestEveryEnumerationIsChecked(t *testing.T) {
	freeText := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[api.AgentType](), reflect.TypeFor[api.EnvelopeType]()} // the last two are in a status
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if _, special := specialTypes[typ]; special {
			return
		}
		switch typ.Kind() {
		case reflect.String:
			fromKubernetes := typ.PkgPath() != "" && typ.PkgPath() != reflect.TypeFor[api.ID]().PkgPath()
			if enums[typ] == nil && !slices.Contains(freeText, typ) && !fromKubernetes {
				t.Errorf("%s has no valid values", typ)
			}
		case reflect.Struct:
			for _, f := range fieldsOf(typ) {
				walk(f.schema.(goType).Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		}
	}
	for gk := range api.ManifestKinds {
		empty, _, err := api.Decode(gk, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		walk(reflect.TypeOf(empty).Elem())
	}
	for typ := range enums {
		if !seen[typ] && typ.PkgPath() == reflect.TypeFor[api.ID]().PkgPath() {
			t.Errorf("no field has the type %s", typ)
		}
	}
}

// Mistakes in the other kinds of gitfleet are reported as in placements.
func TestDecodeReportsInEveryKind(t *testing.T) {
	const policy = "policy: {overrideRules: [{clusterSelector: {}, overrideType: Delete}]}"
	for name, test := range map[string]struct {
		group, version, kind, text string
		want                       []string
	}{
		"a cluster":                         {api.ClusterGroup, "v1beta1", "MemberCluster", "{metadata: {name: a}, spec: {taints: [{key: a, effect: NoSchedule}]}}", nil},
		"a cluster without a spec":          {api.ClusterGroup, "v1beta1", "MemberCluster", "{metadata: {name: a}}", nil},
		"a misspelt effect":                 {api.ClusterGroup, "v1beta1", "MemberCluster", "{metadata: {name: a}, spec: {taints: [{key: a, effect: NoSchedul}]}}", []string{`spec.taints[0].effect: must be one of NoSchedule, not "NoSchedul"; did you mean NoSchedule?`}},
		"a taint without an effect":         {api.ClusterGroup, "v1beta1", "MemberCluster", "{metadata: {name: a}, spec: {taints: [{key: a}]}}", []string{"spec.taints[0].effect: required, and missing; add it"}},
		"a newer field of a cluster":        {api.ClusterGroup, "v1", "MemberCluster", "{metadata: {name: a}, spec: {deleteOptions: {validationMode: Skip}}}", []string{"spec.deleteOptions: unknown field: only cluster.kubernetes-fleet.io/v1beta1 has it; change the apiVersion"}},
		"an override":                       {api.PlacementGroup, "v1", "ResourceOverride", "{metadata: {name: a}, spec: {resourceSelectors: [{group: '', version: v1, kind: Pod, name: a}], " + policy + "}}", nil},
		"an override without a policy":      {api.PlacementGroup, "v1beta1", "ResourceOverride", "{metadata: {name: a}, spec: {resourceSelectors: []}}", []string{"spec.policy: required, and missing; add it"}},
		"an unknown operator":               {api.PlacementGroup, "v1beta1", "ClusterResourceOverride", "{metadata: {name: a}, spec: {clusterResourceSelectors: [], policy: {overrideRules: [{jsonPatchOverrides: [{op: copy, path: /a}]}]}}}", []string{`spec.policy.overrideRules[0].jsonPatchOverrides[0].op: must be one of add, remove, replace, test, not "copy"`}},
		"any value of a patch":              {api.PlacementGroup, "v1beta1", "ClusterResourceOverride", "{metadata: {name: a}, spec: {clusterResourceSelectors: [], policy: {overrideRules: [{jsonPatchOverrides: [{op: add, path: /a, value: {b: [1]}}]}]}}}", nil},
		"terms that are required":           {api.PlacementGroup, "v1beta1", "ClusterResourcePlacement", "{metadata: {name: a}, spec: {resourceSelectors: [], policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}}}", []string{"spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms: required, and missing; add it"}},
		"terms that an override leaves out": {api.PlacementGroup, "v1beta1", "ClusterResourceOverride", "{metadata: {name: a}, spec: {clusterResourceSelectors: [], " + policy + "}}", nil},
		"a wrong operator of labels":        {api.PlacementGroup, "v1beta1", "ResourcePlacement", "{metadata: {name: a}, spec: {resourceSelectors: [{group: '', version: v1, kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}}]}}", []string{`spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: "in" is written In (warning)`}},
		"bytes":                             {api.PlacementGroup, "v1beta1", "ResourceEnvelope", "{metadata: {name: a}, data: {a: {kind: Pod}}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &document.Report{}
			if Decode(r, schema.GroupVersionKind{Group: test.group, Version: test.version, Kind: test.kind}, parse(t, test.text)) == nil {
				t.Error("it cannot be decoded at all")
			}
			same(t, messages(r), test.want)
		})
	}
}

// An object that is part of a list is compared at its place in the list.
func TestDecodeInAList(t *testing.T) {
	r := (&document.Report{}).Item(2)
	Decode(r, schema.GroupVersionKind{Group: api.ClusterGroup, Version: "v1", Kind: "MemberCluster"}, parse(t, "{metadata: {name: a}, spec: {taint: [], deleteOptions: {}}}"))
	same(t, messages(r), []string{
		"items[2].spec.deleteOptions: unknown field: only cluster.kubernetes-fleet.io/v1beta1 has it; change the apiVersion",
		"items[2].spec.taint: unknown field; did you mean taints?",
	})
}

// The suggestion is the most similar word, or all words if none is similar.
func TestSuggestKnown(t *testing.T) {
	for word, want := range map[string]string{
		"resource": "did you mean resources?",
		"zzz":      "known here: patches, resources",
	} {
		if got := SuggestKnown(word, []string{"patches", "resources"}); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// The field names of a type are those of its JSON, with the fields of embedded types.
func TestFieldNames(t *testing.T) {
	if got, want := FieldNames(reflect.TypeFor[api.ClusterResourcePlacement]()), []string{"apiVersion", "kind", "metadata", "spec", "status"}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}
