package hub

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
)

// overlayFiles are a base with an overlay for each of three environments, and clusters.
func overlayFiles(clusters int) map[string]string {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [a.yaml]\n",
		"base/a.yaml":             "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
		"fleet/overlay.yaml":      "apiVersion: gitfleet.dev/v1alpha1\nkind: Overlay\nmetadata: {name: web, namespace: web}\nspec: {path: 'overlays/${cluster.labels.env}'}\n",
	}
	envs := []string{"dev", "prod", "staging"}
	for _, env := range envs {
		files["overlays/"+env+"/kustomization.yaml"] = "resources: [../../base]\n"
	}
	for i := range clusters {
		files[fmt.Sprintf("fleet/cluster-%d.yaml", i)] = fmt.Sprintf("{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: c%d, labels: {env: %s}}}\n", i, envs[i%3])
	}
	return files
}

// loadsOf returns a function that loads the files as they are at each call, and checks how many directories were built and charts
// rendered so far.
func loadsOf(t *testing.T, files map[string]string) func(want int) *Snapshot {
	l := NewLoader(Options{})
	return func(want int) *Snapshot {
		t.Helper()
		s, err := l.Load(Commit{Hash: "c0ffee"}, newMemoryTree(files))
		if err != nil {
			t.Fatal(err)
		}
		if l.built != want {
			t.Errorf("%d builds so far, want %d", l.built, want)
		}
		return s
	}
}

// checkGrants checks that a commit with some files is refused with a message, or accepted if that is empty.
func checkGrants(t *testing.T, name string, files fstest.MapFS, grants grant.Set, refused string) {
	t.Helper()
	_, err := load(Commit{Hash: "c0ffee"}, files, Options{Grants: grants})
	switch {
	case refused == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Errorf("%s: got %v, want %s", name, err, refused)
	}
}

// Each directory is built once, whatever the number of clusters, and again only if it changes.
func TestOverlaysAreBuiltOnce(t *testing.T) {
	files := overlayFiles(30)
	load := loadsOf(t, files)
	first := load(3)
	if again := load(3); again.Objects[0] != first.Objects[0] {
		t.Error("an overlay that has not changed is another object")
	}
	files["overlays/prod/kustomization.yaml"] = "resources: [../../base]\ncommonAnnotations: {a: b}\n"
	changed := load(4)
	before, after := first.Objects[0].Overlay.Builds, changed.Objects[0].Overlay.Builds
	if before["overlays/dev"].Objects[0] != after["overlays/dev"].Objects[0] || before["overlays/prod"].Hash == after["overlays/prod"].Hash || changed.Objects[0].Hash == first.Objects[0].Hash {
		t.Error("not only the overlay that was changed differs")
	}
}

// What an overlay builds must be granted to the files that it is in and that it builds, and be in the same path or shared.
func TestGrantsOfOverlays(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range overlayFiles(1) {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	all := []string{"*"}
	set := func(fleet, overlays grant.Grant) grant.Set {
		fleet.Path, fleet.Field = "fleet", "paths[0]"
		overlays.Path, overlays.Field = "overlays", "paths[1]"
		return grant.Set{&fleet, &overlays, {Path: "base", Field: "paths[2]", Namespaces: all, SharedBases: []string{"base"}}}
	}
	for name, test := range map[string]struct {
		grants  grant.Set
		refused string
	}{
		"granted": {set(grant.Grant{Namespaces: all, Kinds: all, Placements: all}, grant.Grant{Namespaces: []string{"web"}, SharedBases: []string{"overlays"}}), ""},
		"shared":  {set(grant.Grant{Namespaces: []string{"web"}, Kinds: []string{"Overlay.*", "MemberCluster.*", "ConfigMap"}}, grant.Grant{Namespaces: []string{"web"}, SharedBases: []string{"overlays"}}), ""},
		"shared, with a path of others below it": {append(set(grant.Grant{Namespaces: []string{"web"}, Kinds: all}, grant.Grant{Namespaces: []string{"web"}, SharedBases: []string{"overlays"}}),
			&grant.Grant{Path: "overlays/dev/others", Field: "paths[3]"}), "fleet/overlay.yaml: decides whether overlays/dev/others is read"},
		"of another path": {set(grant.Grant{Namespaces: []string{"web"}, Kinds: all}, grant.Grant{Namespaces: []string{"web"}}),
			"fleet/overlay.yaml:4: spec.path: overlays/dev/kustomization.yaml is not in path fleet, and its own path does not share it"},
		"a namespace that the files of the build have not": {set(grant.Grant{Namespaces: all, Kinds: all, Placements: all}, grant.Grant{Namespaces: []string{"shop"}, SharedBases: []string{"overlays"}}),
			`files in path overlays may not produce ConfigMap/web/a; move it, or add "web" to paths[1].namespaces`},
		"a namespace that the overlay has not": {set(grant.Grant{Namespaces: []string{"shop"}, Kinds: all}, grant.Grant{Namespaces: all, SharedBases: []string{"overlays"}}),
			`files in path fleet may not produce ConfigMap/web/a; move it, or add "web" to paths[0].namespaces`},
	} {
		checkGrants(t, name, files, test.grants, test.refused)
	}
}

// All parts of an overlay together have a limited number of paths, each of which is compared with directories for each cluster.
func TestPathsOfAnOverlayAreLimited(t *testing.T) {
	for parts, refused := range map[int]bool{128: false, 129: true} {
		text := "apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: apps}\nspec:\n  parts:\n" + strings.Repeat("  - paths: [a, b]\n", parts)
		_, err := load(Commit{}, fstest.MapFS{"fleet.yaml": {Data: []byte(text)}}, Options{})
		if got := strings.Contains(fmt.Sprint(err), "spec.parts: must have at most 256 paths, and has 258"); got != refused {
			t.Errorf("%d parts of two paths: %v", parts, err)
		}
	}
}
