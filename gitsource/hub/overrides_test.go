package hub

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// overriding returns an override with the given numbers of parts, each on a line of its own
// from line 5 on.
func overriding(selectors, rules, terms, patches int) string {
	var b strings.Builder
	b.WriteString("apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceOverride\nmetadata: {name: o}\nspec:\n")
	b.WriteString("  clusterResourceSelectors:\n")
	for i := range selectors {
		fmt.Fprintf(&b, "  - {group: \"\", version: v1, kind: Namespace, name: n%d}\n", i)
	}
	b.WriteString("  policy:\n    overrideRules:\n")
	for range rules {
		b.WriteString("    - clusterSelector: {clusterSelectorTerms: [" + strings.Repeat("{labelSelector: {}},", terms) + "]}\n")
		b.WriteString("      jsonPatchOverrides: [" + strings.Repeat("{op: remove, path: /x},", patches) + "]\n")
	}
	return b.String()
}

// An override exactly at each limit loads. Above the limit, the reported line is that of the
// first part too many.
func TestLimitsOfAnOverride(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{overriding(20, 20, 10, 20), ""},
		{overriding(1, 1, 0, 1), ""},
		{overriding(21, 1, 1, 1), "o.yaml:5: spec.clusterResourceSelectors: must have at most 20 entries, and has 21"},
		{overriding(1, 21, 1, 1), "o.yaml:8: spec.policy.overrideRules: must have at most 20 entries, and has 21"},
		{overriding(1, 1, 11, 1), "o.yaml:9: spec.policy.overrideRules[0].clusterSelector.clusterSelectorTerms: must have at most 10 entries, and has 11"},
		{overriding(1, 1, 1, 21), "o.yaml:10: spec.policy.overrideRules[0].jsonPatchOverrides: must have at most 20 entries, and has 21"},
		{
			"apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceOverride\nmetadata: {name: o}\nspec:\n  clusterResourceSelectors: []\n  policy: {overrideRules: []}\n",
			"o.yaml:5: spec.clusterResourceSelectors: must have at least 1 entry\no.yaml:6: spec.policy.overrideRules: must have at least 1 entry",
		},
	} {
		_, err := load(Commit{}, fstest.MapFS{"o.yaml": {Data: []byte(test.text)}}, Options{})
		if got := message(err); got != test.want {
			t.Errorf("%s\nis reported as:\n%s\nwant:\n%s", test.text, got, test.want)
		}
	}
}

// message returns the problems of a load without its commit.
func message(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "load commit : ")
}

// More overrides than KubeFleet allows are accepted, with one warning for the fleet and one for
// each namespace.
func TestManyOverridesAreWarnedOf(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 103 {
		files[fmt.Sprintf("c/%03d.yaml", i)] = &fstest.MapFile{Data: []byte(strings.NewReplacer("name: o", fmt.Sprintf("name: o%03d", i), "name: n0", fmt.Sprintf("name: n%d", i)).Replace(overriding(1, 1, 0, 1)))}
		for _, namespace := range []string{"full", "other"} {
			if namespace == "other" && i >= 100 {
				continue
			}
			files[fmt.Sprintf("%s/%03d.yaml", namespace, i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: o%03[1]d, namespace: %[2]s}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: n%[1]d}]
  policy: {overrideRules: [{clusterSelector: {}, overrideType: Delete}]}
`, i, namespace)}
		}
	}
	snapshot, err := load(Commit{}, files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range snapshot.Warnings {
		got = append(got, w.Error())
	}
	want := "c/100.yaml:1: clusterResourceOverride limit has been reached: at most 100 cluster resources can be created in KubeFleet\n" +
		"full/100.yaml:2: resourceOverride limit has been reached: at most 100 resources can be created in KubeFleet"
	if strings.Join(got, "\n") != want {
		t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
}
