package proposal

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// addedChange returns a change that adds a key.
func addedChange(clusters ...string) *change {
	c := heldChange(9, clusters...)
	c.addition, c.paths[0].ValueInHub = true, ""
	for _, d := range c.drifts {
		d.State, d.Addition, d.Rule = api.DriftAdded, true, "propose"
	}
	return c
}

// What somebody has added is offered like other drift, and is removed if the pull request is closed.
func TestAdditionsAreOffered(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, addedChange("east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	pr := p.forge.Pulls[0]
	if want := "Drift: ConfigMap shop/web: key added on 1 cluster"; pr.Title != want {
		t.Errorf("the title is %q, want %q", pr.Title, want)
	}
	for _, want := range []string{
		"Something that Git does not have was added to `ConfigMap shop/web` on 1 cluster, and is left there until this pull request is merged or closed.",
		"takes the addition over into Git", "**Closing** removes it from these clusters",
	} {
		if !strings.Contains(pr.Body, want) {
			t.Errorf("the body has no %q:\n%s", want, pr.Body)
		}
	}
	p.forge.End(1, forge.Closed)
	p.after(t, 30*time.Second, addedChange("east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	for key := range p.resolved["east"] {
		if !key.Addition {
			t.Errorf("the decision is about %+v", key)
		}
	}
}

// An addition that can be offered neither as a pull request nor as an issue stays: nobody has rejected it.
func TestAnAdditionThatCannotBeOfferedStays(t *testing.T) {
	p := newProposing(10)
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	c := addedChange("east")
	c.files, c.reason = nil, errInManifest
	p.after(t, 5*time.Minute, c)
	p.says(t, "east", "held: left as it is and only reported, since it can be offered neither as a pull request nor as an issue")
}

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

// An object may have an addition that is offered beside a change that is held: they are two changes. An addition that
// is only reported is none.
func TestAdditionsBesideAChange(t *testing.T) {
	added := func(rule string) protocol.Drift {
		return protocol.Drift{
			ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Version: "v1", State: api.DriftAdded, Addition: true, Rule: rule, Count: 1, FirstSeen: now, LastSeen: now,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/more", ValueInMember: "theirs"}, MemberJSON: []byte(`"theirs"`)}},
		}
	}
	for rule, want := range map[string]int{"propose": 2, "": 1} {
		change := func(d *protocol.Drift) {
			d.Rule, d.Paths = "propose", []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInHub: "plain", ValueInMember: "x"}}}
		}
		files := world.Files(t, smallFleet)
		r := reporting(t, files, change, "east")
		extra := r.Drifts[0]
		d := added(rule)
		extra.State, extra.Addition, extra.Rule, extra.Paths = d.State, d.Addition, d.Rule, d.Paths
		r.Drifts = append(r.Drifts, extra)
		col := collector{fleet: "shop", load: func(files fs.FS) (*hub.Snapshot, error) {
			return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
		}}
		offers, others := col.collect(r, files)
		if len(offers)+len(others) != want {
			t.Errorf("with the rule %q there are %d changes, want %d", rule, len(offers)+len(others), want)
		}
		hashes := map[string]bool{}
		for _, c := range offers {
			hashes[c.hash] = true
			text := c.body("shop", nil)
			if c.addition && (!strings.Contains(text, "**puts back** what else was changed in the object: `") || strings.Contains(text, "Nothing is written")) {
				t.Errorf("what merging does: %s", text)
			}
			if c.addition && (c.reason != nil || len(c.files) == 0) {
				t.Errorf("the addition has no edit: %v", c.reason)
			}
		}
		if len(hashes) != len(offers) {
			t.Error("the change and the addition have the same hash")
		}
	}
}
