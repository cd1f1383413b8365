package hub

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// Long values of variables cannot make the objects of a commit much larger than limits.commitSize counts.
func TestGrowthByVariablesOfACommitIsBounded(t *testing.T) {
	vars := func(size int) string {
		return "apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterVars\nmetadata: {name: v}\nspec:\n  vars: {x: " + strings.Repeat("x", size) + "}\n"
	}
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: shop, annotations: {gitfleet.dev/substitute: enabled}}\ndata: {a: '%s'}\n"
	for name, test := range map[string]struct {
		vars    string
		objects int
		uses    int
		says    string
	}{
		"a certificate in some": {vars(8 << 10), 50, 2, ""},
		"many uses":             {vars(60 << 10), 20, 100, "larger by more than 64 MiB for one cluster"},
		"short values":          {vars(200), 20, 100, ""},
		"a value too long":      {vars(70 << 10), 1, 1, "a value may have at most 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"vars.yaml": {Data: []byte(test.vars)}}
			for i := range test.objects {
				files[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, object, i, strings.Repeat("${vars.x}", test.uses))}
			}
			_, err := NewLoader(Options{}).Load(Commit{Hash: "1"}, files)
			if said := fmt.Sprint(err); (err == nil) != (test.says == "") || !strings.Contains(said, test.says) {
				t.Errorf("%.500s, want %q", said, test.says)
			}
		})
	}
}

// What looks like a variable in an object in which an overlay has replaced variables is text.
func TestGrowthByVariablesIgnoresReplacedOnes(t *testing.T) {
	files := map[string]string{
		".gitfleet.yaml": "roots: [fleet]\n",
		"fleet/a.yaml": `
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: paris}}
---
{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: v}, spec: {vars: {x: ` + strings.Repeat("x", 60<<10) + `}}}
---
{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: web}, spec: {path: web, postBuild: {}}}
`,
		"web/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {a: '" + strings.Repeat("$${vars.x}", 2_000) + "'}}\n",
	}
	if _, err := load(Commit{}, newMemoryTree(files), Options{}); err != nil {
		t.Errorf("%.500v", err)
	}
}
