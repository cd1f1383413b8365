package forecast

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A commit warns of variables that would be applied as text, at the first of them and once for a placement, unless an annotation says
// what becomes of them.
func TestLiteralVariablesAreWarnedOf(t *testing.T) {
	placement := func(annotations string) string {
		return "clusters a b\nnamespace web\n" +
			`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: web, annotations: {` + annotations + `}}, spec: {policy: {placementType: PickAll}, resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]}}` + "\n"
	}
	configMap := func(annotations string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: web, annotations: {` + annotations + `}}, data: {b: "${cluster.name}", a: "${vars.zone}"}}` + "\n"
	}
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: web}, stringData: {a: "${vars.zone}"}}` + "\n"
	const wrapped = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: e, namespace: web}, data: {c.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: web}, rules: ["${cluster.name}"]}}}` + "\n"
	for name, test := range map[string]struct{ text, field, objects string }{
		"nobody asks":               {placement("") + configMap("") + secret, "stringData.a", "Secret/web/s, ConfigMap/web/c"},
		"the placement asks":        {placement("gitfleet.dev/substitute: enabled") + configMap(""), "", ""},
		"the placement declines":    {placement("gitfleet.dev/substitute: disabled") + configMap(""), "", ""},
		"the object asks":           {placement("") + configMap("gitfleet.dev/substitute: enabled"), "", ""},
		"the object declines":       {placement("") + configMap("gitfleet.dev/substitute: disabled"), "", ""},
		"in an envelope":            {placement("") + wrapped, "data[c.yaml].rules[0]", "ResourceEnvelope.placement.kubernetes-fleet.io/web/e"},
		"an entry of it asks":       {placement("") + strings.Replace(wrapped, "name: c,", "name: c, annotations: {gitfleet.dev/substitute: enabled},", 1), "", ""},
		"escapes are not variables": {placement("") + strings.NewReplacer("${cluster", "$${cluster", "${vars", "$${vars").Replace(configMap("")), "", ""},
		"other texts are not ours":  {placement("") + strings.NewReplacer("${cluster.name}", "${HOME}", "${vars.zone}", "${zone}").Replace(configMap("")), "", ""},
	} {
		o, err := Of(Input{Snapshot: snapshot(t, "v1", test.text), Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		field, message := "", ""
		for _, w := range o.Warnings {
			if strings.Contains(w.Message, "gitfleet.dev/substitute") {
				field, message = field+w.Field, message+w.Message
			}
		}
		if field != test.field || !strings.Contains(message, test.objects) || (message == "") != (test.objects == "") {
			t.Errorf("%s: got %q: %q, want %q: %q", name, field, message, test.field, test.objects)
		}
	}
}

// An object can decline what its placement asks for, since what looks like a variable may be text.
func TestVariablesThatAreText(t *testing.T) {
	const text = "clusters a\nnamespace web\n" +
		`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: web, annotations: {gitfleet.dev/substitute: enabled}}, spec: {policy: {placementType: PickAll}, resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]}}` + "\n" +
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: web}, data: {a: "${cluster.name}"}}` + "\n" +
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: web, annotations: {gitfleet.dev/substitute: disabled}}, data: {a: "${cluster.name}"}}` + "\n"
	o, err := Of(Input{Snapshot: snapshot(t, "v1", text), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for p := range o.Plan.Placements.Values() {
		for _, m := range p.Clusters[0].Content.Manifests {
			got[m.ID.Name], _, _ = unstructured.NestedString(m.Object.Content.Object, "data", "a")
		}
	}
	if got["c"] != "a" || got["d"] != "${cluster.name}" {
		t.Errorf("got %v", got)
	}
}
