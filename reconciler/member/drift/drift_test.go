package drift

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var web = api.PlacementKey{Name: "web"}

// configMap returns a ConfigMap with a fleet in its label, the fields of its data that gitfleet owns, and its data.
func configMap(fleet, owned string, values map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": values}}
	o.SetName("web")
	if fleet != "" {
		o.SetLabels(map[string]string{api.ManagedByLabel: fleet})
	}
	if owned != "" {
		fields := metav1.NewFieldsV1(`{"f:data":` + owned + `}`)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields}})
	}
	return o
}

// Whether an object has drifted is answered from what is known of it, the cheapest first.
func TestWhatHasDrifted(t *testing.T) {
	const both, one = `{"f:a":{},"f:b":{}}`, `{"f:b":{}}`
	manifest := configMap("", "", map[string]any{"a": "1", "b": "2"})
	asApplied := configMap("prod", both, map[string]any{"a": "1", "b": "2"})
	edited := configMap("prod", one, map[string]any{"a": "9", "b": "2"})           // by another manager
	sameName := configMap("prod", both, map[string]any{"a": "9", "b": "2"})        // under gitfleet's own name
	byWebhook := configMap("prod", both, map[string]any{"a": "webhook", "b": "2"}) // as a webhook stores it
	unlabelled := configMap("", both, map[string]any{"a": "1", "b": "2"})          // under gitfleet's own name
	applied := Applied{Fleet: "prod", Managed: Read(asApplied).Managed, Manifest: manifest}
	altered := []api.PatchDetail{{Path: "/data/a", ValueInHub: "1", ValueInMember: "webhook"}}
	tests := map[string]struct {
		known           []api.PatchDetail // that the server stores differently
		actual          Actual
		want            Answer
		fields, altered []string
	}{
		"gone":                                    {nil, Seen(nil), Drifted, nil, nil},
		"gone, as it was read":                    {nil, Read(nil), Drifted, nil, nil},
		"metadata as applied":                     {nil, Seen(observed.Of(asApplied)), Untouched, nil, nil},
		"another owner":                           {nil, Seen(observed.Of(edited)), Drifted, nil, nil},
		"another owner, as metadata shows":        {nil, Marked(edited), Drifted, nil, nil},
		"another label":                           {nil, Seen(observed.Of(unlabelled)), Drifted, nil, nil},
		"values as applied":                       {nil, Read(asApplied), Untouched, nil, nil},
		"another owner and value":                 {nil, Read(edited), Drifted, []string{"/data/a"}, nil},
		"another label, as it was read":           {nil, Read(unlabelled), Drifted, []string{"/metadata/labels/gitfleet.dev~1managed-by"}, nil},
		"another value":                           {nil, Read(sameName), Unknown, []string{"/data/a"}, nil},
		"another value, and an apply changes it":  {nil, tried(sameName, asApplied), Drifted, []string{"/data/a"}, nil},
		"a webhook's value":                       {nil, tried(byWebhook, byWebhook), Untouched, nil, []string{"/data/a"}},
		"a webhook's value, edited":               {altered, tried(sameName, byWebhook), Untouched, nil, []string{"/data/a"}},
		"a webhook's value, edited for the first": {nil, tried(sameName, byWebhook), Drifted, []string{"/data/a"}, []string{"/data/a"}},
		"no dry run, and nothing known":           {nil, refused(sameName), Drifted, []string{"/data/a"}, nil},
		"no dry run, as it was":                   {altered, refused(byWebhook), Untouched, nil, []string{"/data/a"}},
		"no dry run, other than it was":           {altered, refused(sameName), Drifted, []string{"/data/a"}, []string{"/data/a"}},
	}
	for name, test := range tests {
		of := applied
		of.Altered = test.known
		got := Of(of, test.actual)
		if got.Answer != test.want || !slices.Equal(paths(got.Fields), test.fields) || !slices.Equal(paths(got.Altered), test.altered) {
			t.Errorf("%s: %q, fields %v, altered %v; want %q, %v and %v", name, got.Answer, got.Fields, got.Altered, test.want, test.fields, test.altered)
		}
	}
}

// Fields that are to be ignored do not count.
func TestIgnoredFieldsHaveNotDrifted(t *testing.T) {
	live := configMap("prod", `{"f:a":{}}`, map[string]any{"a": "9"})
	applied := Applied{Fleet: "prod", Managed: Read(live).Managed, Manifest: configMap("", "", map[string]any{"a": "1"}), Ignore: []string{"/data/a"}}
	if got := Of(applied, Read(live)); got.Answer != Untouched {
		t.Errorf("%+v", got)
	}
}

func tried(live, dryRun *unstructured.Unstructured) Actual {
	a := Read(live)
	a.DryRun = dryRun
	return a
}

func refused(live *unstructured.Unstructured) Actual {
	a := Read(live)
	a.Refused = true
	return a
}

func paths(list []api.PatchDetail) (paths []string) {
	for _, d := range list {
		paths = append(paths, d.Path)
	}
	return paths
}

// A recorded comparison equals a new one with the same paths and values in the same order, also
// if both were shortened.
func TestSameValues(t *testing.T) {
	one, other := api.PatchDetail{Path: "/data/a", ValueInHub: "1", ValueInMember: "2"}, api.PatchDetail{Path: "/data/a", ValueInHub: "1", ValueInMember: "3"}
	var many []api.PatchDetail
	for i := range 40 {
		many = append(many, api.PatchDetail{Path: fmt.Sprintf("/data/%02d", i), ValueInHub: "1"})
	}
	tests := map[string]struct {
		found, known []api.PatchDetail
		want         bool
	}{
		"none":            {nil, nil, true},
		"equal":           {[]api.PatchDetail{one}, []api.PatchDetail{one}, true},
		"another value":   {[]api.PatchDetail{other}, []api.PatchDetail{one}, false},
		"one more":        {[]api.PatchDetail{one, other}, []api.PatchDetail{one}, false},
		"nothing known":   {[]api.PatchDetail{one}, nil, false},
		"nothing found":   {nil, []api.PatchDetail{one}, false},
		"shortened":       {many, recorded(many), true},
		"others, shorter": {many[:39], recorded(many), false},
	}
	for name, test := range tests {
		if got := SameValues(test.found, test.known); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// recorded returns details as the record of altered fields has them.
func recorded(list []api.PatchDetail) []api.PatchDetail {
	m := memory{}
	m.put(web, protocol.Drift{State: api.DriftAltered, Paths: Shorten(diff.Differences(nil, api.FieldManager, list))})
	return m.altered(web, api.ID{})
}
