package schema

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// parse decodes an object as the hub does, with whole numbers as int64.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// messages returns the problems of a report as a person reads them.
func messages(r *document.Report) []string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, p.Marked())
	}
	return out
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:")
		for _, line := range got {
			t.Errorf("  %s", line)
		}
		t.Errorf("want:")
		for _, line := range want {
			t.Errorf("  %s", line)
		}
	}
}

// Of gitfleet's kinds every mistake is reported at its field, once, and with what was meant.
func TestDecodeReports(t *testing.T) {
	const selectors = "  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}]\n"
	placement := func(spec string) string { return "metadata: {name: web}\nspec:\n" + selectors + spec }
	for name, test := range map[string]struct {
		version, text string // v1beta1 if it is empty
		want          []string
	}{
		"nothing of a valid one": {"", placement("  policy: {placementType: PickN, numberOfClusters: 3}\n"), nil},
		"an unknown field":       {"", placement("  polcy: {placementType: PickN}\n"), []string{"spec.polcy: unknown field; did you mean policy?"}},
		"one like no other": {"", placement("  zzz: 1\n"), []string{
			"spec.zzz: unknown field; known here: resourceSelectors, policy, strategy, revisionHistoryLimit, statusReportingScope",
		}},
		"a field of another version": {"v1", placement("  strategy: {deleteStrategy: {propagationPolicy: Abandon}}\n"), []string{
			"spec.strategy.deleteStrategy: unknown field: only placement.kubernetes-fleet.io/v1beta1 has it; change the apiVersion",
		}},
		"the same in its version": {"v1beta1", placement("  strategy: {deleteStrategy: {propagationPolicy: Abandon}}\n"), nil},
		"an unknown value": {"", placement("  policy: {placementType: PickSome}\n"), []string{
			`spec.policy.placementType: must be one of PickAll, PickN, PickFixed, not "PickSome"`,
		}},
		"a similar value": {"", placement("  policy: {placementType: PickFixd}\n"), []string{
			`spec.policy.placementType: must be one of PickAll, PickN, PickFixed, not "PickFixd"; did you mean PickFixed?`,
		}},
		"a lower case first letter": {"", placement("  policy: {placementType: pickAll}\n"), []string{`spec.policy.placementType: "pickAll" is written PickAll (warning)`}},
		"an empty value":            {"", placement("  policy: {placementType: ''}\n"), []string{"spec.policy.placementType: must be one of PickAll, PickN, PickFixed, or left out"}},
		"a number for a word":       {"", placement("  policy: {placementType: 3}\n"), []string{"spec.policy.placementType: must be one of PickAll, PickN, PickFixed"}},
		"a number in quotes": {"", placement("  policy: {placementType: PickN, numberOfClusters: '3'}\n"), []string{
			"spec.policy.numberOfClusters: must be a whole number of at most 2147483647, without quotes",
		}},
		"a number that is too large": {"", placement("  policy: {placementType: PickN, numberOfClusters: 3000000000}\n"), []string{
			"spec.policy.numberOfClusters: must be a whole number of at most 2147483647",
		}},
		"a number without quotes": {"", "metadata: {name: web, labels: {tier: 1}}\nspec:\n" + selectors, []string{"metadata.labels.tier: must be a string, not a number; put it in quotes"}},
		"a mapping for a list":    {"", "metadata: {name: web}\nspec: {resourceSelectors: {kind: Namespace}}\n", []string{"spec.resourceSelectors: must be a list, not a mapping"}},
		"a list for a mapping":    {"", placement("  policy: [{placementType: PickAll}]\n"), []string{"spec.policy: must be a mapping, not a list"}},
		"an empty entry": {"", "metadata: {name: web}\nspec:\n  resourceSelectors: [null, {group: '', version: v1, kind: Namespace, name: web}]\n", []string{
			"spec.resourceSelectors[0]: an entry of the list is empty; fill it in, or remove it",
		}},
		"a missing field": {"", "metadata: {name: web}\nspec: {resourceSelectors: [{group: '', version: v1, name: web}]}\n", []string{
			"spec.resourceSelectors[0].kind: required, and missing; add it",
		}},
		"a misspelled field once, and not as missing": {"", "metadata: {name: web}\nspec: {resourceSelectors: [{group: '', version: v1, kin: Namespace, name: web}]}\n", []string{
			"spec.resourceSelectors[0].kin: unknown field; did you mean kind?",
		}},
		"an empty document": {"", "metadata: {name: web}\n", []string{"spec: required, and missing; add it"}},
		"no time":           {"", "metadata: {name: web, creationTimestamp: yesterday}\nspec:\n" + selectors, []string{"metadata.creationTimestamp: must be a time such as 2026-01-31T12:00:00Z"}},
		"the plural of comparisonOption": {"", placement("  strategy: {applyStrategy: {comparisonOptions: FullComparison}}\n"), []string{
			"spec.strategy.applyStrategy.comparisonOptions: the right spelling is comparisonOption (warning)",
		}},
		"both spellings that agree": {"", placement("  strategy: {applyStrategy: {comparisonOptions: fullComparison, comparisonOption: FullComparison}}\n"), []string{
			"spec.strategy.applyStrategy.comparisonOptions: the right spelling is comparisonOption (warning)",
		}},
		"both spellings that differ": {"", placement("  strategy: {applyStrategy: {comparisonOptions: FullComparison, comparisonOption: PartialComparison}}\n"), []string{
			"spec.strategy.applyStrategy.comparisonOptions: contradicts comparisonOption, which is the right spelling; remove comparisonOptions",
		}},
		"several, in the order of the names": {"", placement("  policy: {placementType: PickSome, nmberOfClusters: 3}\n  strategy: []\n"), []string{
			"spec.policy.nmberOfClusters: unknown field; did you mean numberOfClusters?",
			`spec.policy.placementType: must be one of PickAll, PickN, PickFixed, not "PickSome"`,
			"spec.strategy: must be a mapping, not a list",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.version == "" {
				test.version = "v1beta1"
			}
			r := &document.Report{}
			gvk := schema.GroupVersionKind{Group: api.PlacementGroup, Version: test.version, Kind: "ClusterResourcePlacement"}
			if Decode(r, gvk, parse(t, test.text)) == nil {
				t.Error("it cannot be decoded at all")
			}
			same(t, messages(r), test.want)
		})
	}
}

// Frequent mistakes of public samples are corrected, and what is wrong is left out, so that the
// rest can be validated.
func TestDecodeCorrects(t *testing.T) {
	decode := func(t *testing.T, spec string) *api.PlacementSpec {
		t.Helper()
		gvk := schema.GroupVersionKind{Group: api.PlacementGroup, Version: "v1beta1", Kind: "ClusterResourcePlacement"}
		p, ok := Decode(&document.Report{}, gvk, parse(t, "metadata: {name: web}\nspec: "+spec)).(*api.ClusterResourcePlacement)
		if !ok {
			t.Fatal("it cannot be decoded at all")
		}
		return &p.Spec
	}
	preferred := func(s *api.PlacementSpec) bool {
		p := s.Policy.Affinity.ClusterAffinity.Preferred
		return len(p) == 1 && p[0].Weight == 20 && p[0].Preference.LabelSelector.MatchLabels["region"] == "eu"
	}
	for name, test := range map[string]struct {
		spec string
		want func(*api.PlacementSpec) bool
	}{
		"a lower case first letter": {"{policy: {placementType: pickN}}", func(s *api.PlacementSpec) bool { return s.Policy.PlacementType == api.PickN }},
		"the plural of comparisonOption": {"{strategy: {applyStrategy: {comparisonOptions: FullComparison}}}", func(s *api.PlacementSpec) bool {
			return s.Strategy.ApplyStrategy.ComparisonOption == api.FullComparison
		}},
		"one preference without a dash": {
			"{policy: {affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: {weight: 20, preference: {labelSelector: {matchLabels: {region: eu}}}}}}}}",
			preferred,
		},
		"a preference with a dash": {
			"{policy: {affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 20, preference: [{labelSelector: {matchLabels: {region: eu}}}]}]}}}}",
			preferred,
		},
		"a part of the wrong type is left out": {"{policy: {placementType: PickN, numberOfClusters: many, clusterNames: [east]}}", func(s *api.PlacementSpec) bool {
			return s.Policy.NumberOfClusters == nil && s.Policy.PlacementType == api.PickN && slices.Equal(s.Policy.ClusterNames, []string{"east"})
		}},
		"an entry of the wrong type is left out": {"{policy: {clusterNames: [east, {}, west]}}", func(s *api.PlacementSpec) bool {
			return slices.Equal(s.Policy.ClusterNames, []string{"east", "west"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if s := decode(t, test.spec); !test.want(s) {
				t.Errorf("decoded: %+v", s)
			}
		})
	}
}

// Of built-in kinds unknown fields and wrong types are warned of, and nothing is refused.
func TestCheckBuiltinWarns(t *testing.T) {
	const by = " (checked against Kubernetes " + KubernetesVersion + ") (warning)"
	deployment := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: " + spec + "}"
	}
	// with adds what a Deployment needs to a part of its spec, and to a part of its container.
	with := func(spec, container string) string {
		return deployment("{" + spec + "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{" + container + "name: web, image: web}]}}}")
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing of a valid one": {with("replicas: 2, ", "resources: {limits: {cpu: 1, memory: 1Gi}}, "), nil},
		"a misspelled field":     {deployment("{replica: 2}"), []string{"spec.replica: unknown field; did you mean replicas?" + by}},
		"a field that is not deep enough": {deployment("{selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, containers: []}}"), []string{
			"spec.template.containers: unknown field; did you mean spec.template.spec.containers?" + by,
		}},
		"a field that is too deep": {deployment("{selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {replicas: 2}}}"), []string{
			"spec.template.spec.replicas: unknown field; did you mean spec.replicas?" + by,
		}},
		"a field like no other": {deployment("{zzz: 1}"), []string{"spec.zzz: unknown field" + by}},
		"a number for a text": {with("", "env: [{name: PORT, value: 80}], "), []string{
			"spec.template.spec.containers[0].env[0].value: must be a string, not a number; put it in quotes" + by,
		}},
		"a text for a number":                           {with("replicas: '2', ", ""), []string{"spec.replicas: must be a whole number of at most 2147483647, without quotes" + by}},
		"a text for a truth":                            {with("paused: 'yes', ", ""), []string{"spec.paused: must be true or false, not text" + by}},
		"no quantity":                                   {with("", "resources: {limits: {cpu: much}}, "), []string{"spec.template.spec.containers[0].resources.limits.cpu: must be a quantity such as 4 or 16Gi" + by}},
		"a fraction of a pod":                           {with("strategy: {rollingUpdate: {maxSurge: 0.5}}, ", ""), []string{"spec.strategy.rollingUpdate.maxSurge: must be a whole number or a percentage such as 25%" + by}},
		"a list for a mapping":                          {deployment("[]"), []string{"spec: must be a mapping, not a list" + by}},
		"a mapping for a list":                          {deployment("{selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: {name: web}}}}"), []string{"spec.template.spec.containers: must be a list, not a mapping" + by}},
		"a list for labels":                             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: [a]}}", []string{"metadata.labels: must be a mapping, not a list" + by}},
		"bytes as a list":                               {"{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {key: [1, 2]}}", []string{"data.key: must be text in base64, not a list" + by}},
		"a field of a Secret":                           {"{apiVersion: v1, kind: Secret, metadata: {name: web}, dta: {}}", []string{"dta: unknown field; did you mean data?" + by}},
		"a value for a field of a Secret is not quoted": {"{apiVersion: v1, kind: Secret, metadata: {name: web}, 'hunter2!xyz': 1}", []string{"unknown field" + by}},
		"a kind that is misspelled": {"{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: web}}", []string{
			"kind: Kubernetes " + KubernetesVersion + " has no such kind in apps/v1; did you mean Deployment? (warning)",
		}},
		"a kind that may be of a newer one": {"{apiVersion: apps/v1, kind: Zzz, metadata: {name: web}}", nil},
		"a version that never was": {"{apiVersion: policy/v9, kind: PodDisruptionBudget, metadata: {name: web}}", []string{
			"apiVersion: Kubernetes " + KubernetesVersion + " has no PodDisruptionBudget in policy/v9; it has it in policy/v1 (warning)",
		}},
		"metadata of any kind":             {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: web, label: {}}, any: 1}", []string{"metadata.label: unknown field; did you mean labels?" + by}},
		"nothing without a kind":           {"{apiVersion: v1, metadata: []}", nil},
		"nothing of an unreadable version": {"{apiVersion: a/b/c, kind: ConfigMap, metadata: []}", nil},
		"several, by field": {deployment("{zzz: 1, replicas: '2', paused: 3}"), []string{
			"spec.paused: must be true or false, not a number" + by,
			"spec.replicas: must be a whole number of at most 2147483647, without quotes" + by,
			"spec.zzz: unknown field" + by,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &document.Report{}
			CheckBuiltin(r, nil, parse(t, test.text))
			same(t, messages(r), test.want)
		})
	}
}

// A custom resource is compared with the schema of its version, as an API server would do it.
func TestCheckCustomWarns(t *testing.T) {
	const definition = `
spec:
  versions:
  - name: v1alpha1
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              ratio: {type: number}
              name: {type: string}
              paused: {type: boolean}
              port: {x-kubernetes-int-or-string: true}
              rules: {type: array, items: {type: object, properties: {path: {type: string}}}}
              labels: {type: object, additionalProperties: {type: string}}
              any: {type: object, additionalProperties: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}, inner: {type: object}}}
              freeList: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {path: {type: string}}}}
              template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
              untyped: {}
`
	for name, test := range map[string]struct {
		version, spec string
		want          []string
	}{
		"nothing of a valid one":      {"v1", "{size: 1, ratio: 0.5, name: a, paused: true, port: 80, rules: [{path: /}], labels: {a: b}}", nil},
		"a version without a schema":  {"v1alpha1", "{zzz: 1}", nil},
		"an undefined version":        {"v2", "{zzz: 1}", []string{"apiVersion: no such version; there is v1alpha1, v1"}},
		"a misspelled field":          {"v1", "{siz: 1}", []string{"spec.siz: unknown field; did you mean size?"}},
		"a field at the wrong level":  {"v1", "{path: /}", []string{"spec.path: unknown field"}},
		"the type of each field":      {"v1", "{size: a, ratio: a, name: 1, paused: a}", []string{"spec.name: must be a string, not a number; put it in quotes", "spec.paused: must be true or false, not text", "spec.ratio: must be a number, not text", "spec.size: must be a whole number, without quotes"}},
		"a whole number is a number":  {"v1", "{ratio: 1}", nil},
		"a fraction is no integer":    {"v1", "{size: 1.5}", []string{"spec.size: must be a whole number"}},
		"a port by name":              {"v1", "{port: http}", nil},
		"a port that is neither":      {"v1", "{port: []}", []string{"spec.port: must be a whole number or a string, not a list"}},
		"a null is left out":          {"v1", "{size: null, rules: null}", nil},
		"entries of a list":           {"v1", "{rules: [{path: /}, {pth: /}, 3]}", []string{"spec.rules[1].pth: unknown field; did you mean path?", "spec.rules[2]: must be a mapping, not a number"}},
		"a mapping for a list":        {"v1", "{rules: {path: /}}", []string{"spec.rules: must be a list, not a mapping"}},
		"values of free keys":         {"v1", "{labels: {a: 1}}", []string{"spec.labels.a: must be a string, not a number; put it in quotes"}},
		"any value of free keys":      {"v1", "{any: {a: 1, b: []}}", nil},
		"unknown fields where kept":   {"v1", "{free: {zzz: 1}}", nil},
		"known fields where kept":     {"v1", "{free: {size: a}}", []string{"spec.free.size: must be a whole number, without quotes"}},
		"not below a known field":     {"v1", "{free: {inner: {zzz: 1}}}", []string{"spec.free.inner.zzz: unknown field"}},
		"entries of a list that keep": {"v1", "{freeList: [{zzz: 1}]}", nil},
		"an embedded object":          {"v1", "{template: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}, sepc: {}}}", []string{"spec.template.sepc: unknown field; did you mean spec?"}},
		"metadata is not in a schema": {"v1", "{metadata: {}}", []string{"spec.metadata: unknown field"}},
		"a field without a type":      {"v1", "{untyped: [{a: 1}]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: parse(t, "{kind: Widget, metadata: {name: one}, spec: "+test.spec+"}")}
			object.SetAPIVersion("example.com/" + test.version)
			r := &document.Report{}
			CheckCustom(r, nil, object, &unstructured.Unstructured{Object: parse(t, definition)}, "its definition")
			for i := range test.want {
				test.want[i] += " (checked against its definition) (warning)"
			}
			same(t, messages(r), test.want)
		})
	}
}
