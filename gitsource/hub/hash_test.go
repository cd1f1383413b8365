package hub

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/placement/api"
)

func loadOne(t *testing.T, text string) *Snapshot {
	t.Helper()
	s, err := load(Commit{}, fstest.MapFS{"a.yaml": {Data: []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const placementText = `apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: a}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace}]
`

// The hash of a spec, which determines its generation, is equal for all equivalent ways to
// write it and different for everything else.
func TestSpecHashIgnoresSpelling(t *testing.T) {
	hash := func(text string) string { return loadOne(t, text).Placements[0].SpecHash }
	plain := hash(placementText)
	for _, more := range []string{"  policy: {placementType: pickAll}\n", "  revisionHistoryLimit: 10\n", "status: {}\n", "  strategy:\n"} {
		if hash(placementText+more) != plain {
			t.Errorf("%q changes the hash", more)
		}
	}
	for _, more := range []string{"  revisionHistoryLimit: 11\n", "  policy: {tolerations: [{key: a}]}\n"} {
		if hash(placementText+more) == plain {
			t.Errorf("%q does not change the hash", more)
		}
	}
}

func TestVersionsAreConverted(t *testing.T) {
	s := loadOne(t, `apiVersion: cluster.kubernetes-fleet.io/v1
kind: MemberCluster
metadata: {name: a}
spec: {}
---
apiVersion: placement.kubernetes-fleet.io/v1alpha1
kind: ClusterResourceOverride
metadata: {name: a}
spec:
  placement: {name: p}
  clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: a}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /spec}]}]}
`)
	c, o := s.Clusters[0], s.ClusterOverrides[0]
	if c.APIVersion != "cluster.kubernetes-fleet.io/v1beta1" || o.APIVersion != "placement.kubernetes-fleet.io/v1beta1" {
		t.Errorf("versions %s and %s", c.APIVersion, o.APIVersion)
	}
	if *c.Spec.HeartbeatPeriodSeconds != 60 || c.Labels[api.MemberNameLabel] != "a" {
		t.Errorf("cluster %+v", c.MemberCluster)
	}
	if o.Spec.Placement.Scope != api.ClusterScoped || o.Spec.Policy.OverrideRules[0].OverrideType != api.JSONPatchOverrideType {
		t.Errorf("override %+v", o.Spec)
	}
}

// A dumped and a hand-written manifest of the same object have equal hashes, in YAML or JSON
// and in any order.
func TestHashIgnoresFormat(t *testing.T) {
	same := []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {x: \"1\", y: z}\n",
		`{"kind": "ConfigMap", "apiVersion": "v1", "data": {"y": "z", "x": "1"}, "metadata": {"namespace": "b", "name": "a"}}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b, uid: u, creationTimestamp: null, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}\ndata: {x: '1', y: z}\n",
	}
	want := loadOne(t, same[0]).Objects[0].Hash
	for _, text := range same[1:] {
		if got := loadOne(t, text).Objects[0].Hash; got != want {
			t.Errorf("%s has another hash", text)
		}
	}
	other := loadOne(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {x: \"2\", y: z}\n").Objects[0].Hash
	if other == want || len(want) != 64 {
		t.Errorf("hashes %s and %s", want, other)
	}
}

// Fields that users may set on purpose are not stripped.
func TestStripKeepsFieldsOfUsers(t *testing.T) {
	s := loadOne(t, `apiVersion: v1
kind: Service
metadata: {name: a, namespace: b, finalizers: [f], deletionGracePeriodSeconds: 3, uid: u}
spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30000}]}
status: {loadBalancer: {ingress: []}}
`)
	got, err := json.Marshal(s.Objects[0].Content.Object)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"Service","metadata":{"deletionGracePeriodSeconds":3,"finalizers":["f"],"name":"a","namespace":"b"},` +
		`"spec":{"clusterIP":"10.0.0.1","healthCheckNodePort":30001,"ports":[{"nodePort":30000,"port":80}]}}`
	if string(got) != want {
		t.Errorf("object %s, want %s", got, want)
	}
}
