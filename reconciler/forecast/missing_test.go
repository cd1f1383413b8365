package forecast

import (
	"strings"
	"testing"
)

// A commit warns of what workloads need and clusters would not get, in one warning for all these clusters, unless somebody has
// said that it comes from elsewhere.
func TestMissingReferencesAreWarnedOf(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\n" +
		`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: web}, spec: {policy: {placementType: PickAll}, resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]}}` + "\n"
	workload := func(annotations string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: web, annotations: {` + annotations + `}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, envFrom: [{secretRef: {name: db}}]}]}}}}` + "\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"missing": {fleet + workload(""), "Deployment.apps/web/d refers to Secret/web/db, which a, b would not get: the commit has no such object"},
		"made":    {fleet + workload("") + "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: db, namespace: web}}\n", ""},
		"there is a document that cannot be decrypted": {fleet + workload("") + "{apiVersion: 'ENC[AES256_GCM,data:a,type:str]', kind: 'ENC[AES256_GCM,data:b,type:str]', sops: {mac: c}}\n", ""},
		"ignored": {fleet + workload("gitfleet.dev/missing-references: ignore"), ""},
	} {
		o, err := Of(Input{Snapshot: snapshot(t, "v1", test.text), Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range o.Warnings {
			if strings.Contains(w.Message, "refers to") {
				got += w.Message
			}
		}
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
