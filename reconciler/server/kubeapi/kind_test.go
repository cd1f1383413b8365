package kubeapi

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Windows and gates of the commit are served, with columns that say what they do.
func TestWindowsAndGatesAreServed(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", fstest.MapFS{"a.yaml": {Data: []byte(`apiVersion: gitfleet.dev/v1alpha1
kind: RolloutWindow
metadata: {name: nights}
spec: {allow: [{schedule: 0 22 * * *, duration: 4h}]}
---
apiVersion: gitfleet.dev/v1alpha1
kind: RolloutGate
metadata: {name: bake}
spec: {soak: {duration: 30m}}
`)}})))
	for resource, want := range map[string]string{"rolloutwindows/nights": "0 22 * * * for 4h", "rolloutgates/bake": "available for 30m"} {
		path := "/apis/gitfleet.dev/v1alpha1/" + resource
		var o metav1.PartialObjectMetadata
		if s.get(path, &o); o.Annotations[api.PathAnnotation] == "" || o.APIVersion != "gitfleet.dev/v1alpha1" {
			t.Errorf("%s is %+v", resource, o)
		}
		if _, text := s.ask("GET", path, "application/json;as=Table;v=v1;g=meta.k8s.io", ""); !strings.Contains(text, want) {
			t.Errorf("the row of %s has no %q: %s", resource, want, text)
		}
	}
	if code, text := s.ask("DELETE", "/apis/gitfleet.dev/v1alpha1/rolloutgates/bake", "application/json", ""); code != 405 || !strings.Contains(text, "a.yaml:6") {
		t.Errorf("%d %s", code, text)
	}
}

// Staged update runs are served in v1alpha1 without the fields that only later versions have.
func TestRunsInV1alpha1(t *testing.T) {
	run := &api.ClusterStagedUpdateRun{Spec: api.StagedUpdateRunSpec{PlacementName: "web", State: api.RunRun}}
	run.APIVersion, run.Kind, run.Name = api.PlacementGroup+"/v1beta1", "ClusterStagedUpdateRun", "web-1"
	run.Status.StagesStatus = []api.StageUpdatingStatus{{StageName: "canary", BeforeStageTaskStatus: []api.StageTaskStatus{{Type: api.ApprovalTask}}}}
	r := reportOf(load(t, "c1", files))
	r.UpdateRuns = []*api.ClusterStagedUpdateRun{run}
	s := serve(t, r)
	const path = "/apis/placement.kubernetes-fleet.io/v1alpha1/clusterstagedupdateruns"
	var got api.ClusterStagedUpdateRun
	s.get(path+"/web-1", &got)
	if got.APIVersion != api.PlacementGroup+"/v1alpha1" || got.Spec.PlacementName != "web" || got.Spec.State != "" || got.Status.StagesStatus[0].BeforeStageTaskStatus != nil {
		t.Errorf("%+v", got)
	}
	_, text := s.ask("GET", path, "application/json;as=Table;v=v1;g=meta.k8s.io", "")
	var table metav1.Table
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		t.Fatal(err)
	}
	for _, c := range table.ColumnDefinitions {
		if c.Name == "Progressing" {
			t.Error("v1alpha1 has the column Progressing")
		}
	}
	var doc spec3.OpenAPI
	s.get("/openapi/v3/apis/placement.kubernetes-fleet.io/v1alpha1", &doc)
	stage := doc.Components.Schemas["io.kubernetes-fleet.placement.v1alpha1.StageConfig"]
	if _, found := stage.Properties["maxConcurrency"]; found || len(stage.Properties) == 0 {
		t.Errorf("the fields of a stage are %v", stage.Properties)
	}
}
