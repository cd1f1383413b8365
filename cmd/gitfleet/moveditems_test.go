package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/githttp"
)

// An index in a patch that means another item of a list than before is a warning: of a checkout than in its last commit,
// and of a commit than in the other one, in plans as well.
func TestIndexesThatMeanAnotherItem(t *testing.T) {
	const containers = "[{name: web, image: nginx}]"
	files := map[string]string{
		"fleet.yaml":              "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
		"base/kustomization.yaml": "resources: [web.yaml]\n",
		"base/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\nspec: {selector: {matchLabels: {app: web}}, " +
			"template: {metadata: {labels: {app: web}}, spec: {containers: " + containers + "}}}\n",
		"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Deployment}\n  path: patch.yaml\n",
		"prod/patch.yaml":         "- op: replace\n  path: /spec/template/spec/containers/0/image\n  value: nginx:2\n",
	}
	for name, text := range map[string]string{"cluster": "MemberCluster", "placement": "ClusterResourcePlacement"} {
		group := map[string]string{"cluster": "cluster", "placement": "placement"}[name]
		files[name+".yaml"] = "apiVersion: " + group + ".kubernetes-fleet.io/v1beta1\nkind: " + text + "\nmetadata: {name: web}\n" +
			map[string]string{"cluster": "", "placement": "spec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]}\n"}[name]
	}
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	repo.Commit(t, "main", files)
	top := t.TempDir()
	if err := os.CopyFS(filepath.Join(top, ".git"), os.DirFS(repo.Dir)); err != nil {
		t.Fatal(err)
	}
	const warning = `prod/patch.yaml:1: [0].path: /spec/template/spec/containers/0/image means another item of Deployment.apps/web/web than before: the item at index 0 of the list has the name "log" now, and had "web"; "web" is at index 1; `
	says := func(want bool, args ...string) {
		t.Helper()
		if _, out, errOut := command(args...); strings.Contains(out, warning) != want {
			t.Errorf("%q warns: %t, want %t\n%s%s", args, !want, want, out, errOut)
		}
	}
	for name, text := range files {
		write(t, top, name, text)
	}
	says(false, "validate", top)
	moved := strings.Replace(files["base/web.yaml"], containers, "[{name: log, image: logger}, {name: web, image: nginx}]", 1)
	write(t, top, "base/web.yaml", moved)
	says(true, "validate", top)
	repo.Commit(t, "main", map[string]string{"base/web.yaml": moved})
	for _, command := range []string{"validate", "plan"} {
		says(true, command, repo.Dir+"@main~1..main")
		says(false, command, repo.Dir+"@main..main")
	}
}
