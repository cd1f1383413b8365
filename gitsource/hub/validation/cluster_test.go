package validation

import (
	"maps"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The taints, labels and declared properties of a cluster are validated, since placements
// select clusters by them.
func TestCheckCluster(t *testing.T) {
	const property = "metadata.annotations[" + api.PropertyAnnotationPrefix
	declares := func(name, value string) string {
		return "metadata: {name: east, annotations: {'" + api.PropertyAnnotationPrefix + name + "': '" + value + "'}}"
	}
	for name, test := range map[string]struct {
		cluster string
		want    []string
	}{
		"only a name":                      {"metadata: {name: east}", nil},
		"a malformed name":                 {"metadata: {name: East}", []string{`metadata.name: "East" is not a valid name: ` + notDNS}},
		"a long name":                      {"metadata: {name: " + strings.Repeat("a", 64) + "}", []string{"metadata.name: metadata.name max length is 63; it has 64"}},
		"the shortest period":              {"metadata: {name: east}\nspec: {heartbeatPeriodSeconds: 1}", nil},
		"the longest period":               {"metadata: {name: east}\nspec: {heartbeatPeriodSeconds: 600}", nil},
		"a period of zero":                 {"metadata: {name: east}\nspec: {heartbeatPeriodSeconds: 0}", []string{"spec.heartbeatPeriodSeconds: must be between 1 and 600, not 0"}},
		"a period that is too long":        {"metadata: {name: east}\nspec: {heartbeatPeriodSeconds: 601}", []string{"spec.heartbeatPeriodSeconds: must be between 1 and 600, not 601"}},
		"taints of one key":                {"metadata: {name: east}\nspec: {taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}", nil},
		"a taint twice":                    {"metadata: {name: east}\nspec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}", []string{"spec.taints[1]: this taint already exists, taints must be unique; remove it"}},
		"a malformed taint":                {"metadata: {name: east}\nspec: {taints: [{key: a b, value: c d, effect: NoSchedule}]}", []string{`spec.taints[0].key: invalid taint key "a b": `, `spec.taints[0].value: invalid taint value "c d": `}},
		"too many taints":                  {"metadata: {name: east}\nspec: {taints: [" + numbered("{key: a%d, effect: NoSchedule}", 101) + "]}", []string{"spec.taints: must have at most 100 entries, and has 101"}},
		"labels":                           {"metadata: {name: east, labels: {example.com/env: prod, empty: ''}}", nil},
		"malformed labels":                 {"metadata: {name: east, labels: {a b: '?'}}", []string{`metadata.labels[a b]: "a b" is not a valid label key: `, `metadata.labels[a b]: "?" is not a valid label value: `}},
		"the name as a label":              {"metadata: {name: east, labels: {" + api.MemberNameLabel + ": east}}", nil},
		"another name as a label":          {"metadata: {name: east, labels: {" + api.MemberNameLabel + ": west}}", []string{"metadata.labels[" + api.MemberNameLabel + "]: is set to the name of the cluster automatically"}},
		"a property":                       {declares("nodes", "16Gi"), nil},
		"a property that is no quantity":   {declares("nodes", "many"), []string{property + `nodes]: "many" is not a quantity such as 4 or 0.25 or 16Gi, so placements cannot compare it (warning)`}},
		"a property with a malformed name": {declares("two words", "1"), []string{property + "two words]: property name two words is not valid: "}},
		"an unknown drift rule":            {"metadata: {name: east, annotations: {" + api.DriftAnnotation + ": perhaps}}", []string{"metadata.annotations[" + api.DriftAnnotation + "]: "}},
		"an annotation of a placement":     {"metadata: {name: east, annotations: {" + api.OnFailureAnnotation + ": perhaps}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := decode[api.MemberCluster](t, test.cluster)
			DefaultCluster(c)
			checkProblems(t, func(r *document.Report) { CheckCluster(r, c) }, test.want)
		})
	}
}

// A cluster always has the label with its name. The labels are copied, since other clusters may
// share them through a YAML alias.
func TestCheckClusterSetsTheNameLabel(t *testing.T) {
	for _, labels := range []map[string]string{nil, {"env": "prod"}, {api.MemberNameLabel: "east"}} {
		before := maps.Clone(labels)
		c := decode[api.MemberCluster](t, "metadata: {name: east}")
		c.Labels = labels
		DefaultCluster(c)
		CheckCluster(&document.Report{}, c)
		if c.Labels[api.MemberNameLabel] != "east" || c.Labels["env"] != labels["env"] {
			t.Errorf("of labels %v the cluster has %v", before, c.Labels)
		}
		if !maps.Equal(labels, before) {
			t.Errorf("labels %v were changed to %v", before, labels)
		}
	}
}
