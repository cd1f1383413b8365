package edit

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// What an overlay adds to a map or a list that the base does not have does not overwrite one that the base gets later.
func TestAnAdditionKeepsWhatTheBaseGetsLater(t *testing.T) {
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(`
-- clusters.yaml --
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}, spec: {identity: {kind: User, name: fleet}}}
-- places/place.yaml --
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: prod}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: prod}]
-- base/kustomization.yaml --
resources: [web.yaml]
-- base/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}]
-- prod/kustomization.yaml --
namespace: prod
resources: [../base, namespace.yaml]
patches:
  - target: {group: apps, kind: Deployment, name: web}
    patch: |
      - op: add
        path: /spec/replicas
        value: 3
-- prod/namespace.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: prod}}
`)).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	load := func(files fs.FS) *hub.Snapshot {
		s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	editor := &Editor{Files: files, Head: load(files), Load: func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}}
	d := drifted{Object: "apps/Deployment prod web", Placement: "crp/prod", Changed: []string{"east"}}
	target := d.target(t)
	for path, value := range map[string]string{"/metadata/labels/team": `"shop"`, "/spec/template/spec/volumes/-": `{"name":"tmp","emptyDir":{}}`} {
		target.Drift = append(target.Drift, api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInMember: value}, MemberJSON: []byte(value)})
	}
	r, err := editor.Edit(target)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(files["base/web.yaml"].Data), "metadata: {name: web}", "metadata: {name: web, labels: {tier: front}}", 1)
	text = strings.Replace(text, "      containers:", "      volumes: [{name: data, emptyDir: {}}]\n      containers:", 1)
	merged := load(treeWith(files, append(slices.Clone(r.Files), FileChange{Path: "base/web.yaml", After: []byte(text)})))
	object := merged.Object(target.ID)
	if object == nil {
		t.Fatal("the Deployment is gone")
	}
	if got, want := object.Content.GetLabels(), map[string]string{"team": "shop", "tier": "front"}; !maps.Equal(got, want) {
		t.Errorf("the labels are %v, want %v", got, want)
	}
	var volumes []string
	list, _ := yamledit.LookUp(yamledit.Canonical(object.Content.Object), api.SplitPointer("/spec/template/spec/volumes"))
	items, _ := list.([]any)
	for _, v := range items {
		volumes = append(volumes, fmt.Sprint(v.(map[string]any)["name"]))
	}
	if slices.Sort(volumes); !slices.Equal(volumes, []string{"data", "tmp"}) {
		t.Errorf("the volumes are %v", volumes)
	}
}

// Where only a JSON patch can add a list, the commit that gives the base such a list is refused instead of losing it.
func TestAJSONPatchReplacesNothingThatTheBaseGetsLater(t *testing.T) {
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(`
-- clusters.yaml --
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}, spec: {identity: {kind: User, name: fleet}}}
-- place.yaml --
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: prod}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: prod}]
-- base/kustomization.yaml --
resources: [web.yaml]
-- base/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}, {name: side, image: "side:1"}]
-- prod/kustomization.yaml --
namespace: prod
resources: [../base, namespace.yaml]
-- prod/namespace.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: prod}}
`)).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	load := func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}
	head, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	d := drifted{Object: "apps/Deployment prod web", Placement: "crp/prod", Changed: []string{"east"}}
	target := d.target(t)
	const value = `{"name":"LEVEL","value":"1"}`
	target.Drift = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/template/spec/containers/1/env/-", ValueInMember: value}, MemberJSON: []byte(value)}}
	r, err := (&Editor{Files: files, Head: head, Load: load}).Edit(target)
	if err != nil {
		t.Fatal(err)
	}
	patch := string(r.Files[0].After)
	if !strings.Contains(patch, "value: null") {
		t.Fatalf("without a test that the list is new:\n%s", patch)
	}
	text := strings.Replace(string(files["base/web.yaml"].Data), `{name: side, image: "side:1"}`, `{name: side, image: "side:1", env: [{name: BASE, value: x}]}`, 1)
	if _, err := load(treeWith(files, append(slices.Clone(r.Files), FileChange{Path: "base/web.yaml", After: []byte(text)}))); err == nil || !strings.Contains(err.Error(), "test") {
		t.Errorf("the list of the base is lost: %v", err)
	}
}
