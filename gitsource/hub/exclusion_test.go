package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	chartText = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	useText   = "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterHelmChart, metadata: {name: c}, spec: {chart: {path: charts/web}, namespace: web, whenMissing: Ignore, valuesFiles: [%s]}}\n"
)

// A file of values that has objects is refused as such, and its objects stay in the hub.
func TestObjectsAreNoValues(t *testing.T) {
	s, err := NewLoader(Options{}).Load(Commit{}, newMemoryTree(map[string]string{
		"fleet/cluster.yaml": "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}}\n",
		"fleet/chart.yaml":   fmt.Sprintf(useText, "apps/web.yaml"), "charts/web/Chart.yaml": chartText, "charts/web/templates/a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
		"apps/web.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if !s.names()["Namespace/web"] {
		t.Error("the object is not in the hub")
	}
	refused := func(p problem.Problem) bool {
		return p.Origin.Path == "apps/web.yaml" && strings.Contains(p.Message, "this is a Kubernetes object, not values")
	}
	if !slices.ContainsFunc(s.Warnings, refused) {
		t.Errorf("got %v", s.Warnings)
	}
}

// What a commit takes out of the hub is found, unless an overlay builds it for a cluster, it is elsewhere now, or its file
// was removed.
func TestDrops(t *testing.T) {
	files := map[string]string{
		"fleet/cluster.yaml":      "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east, labels: {env: prod}}}\n",
		"fleet/placement.yaml":    "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: web}, spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {placementType: PickAll}}}\n",
		"web/prod/ns.yaml":        "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n",
		"blog/kustomization.yaml": "resources: [blog.yaml]\n",
		"blog/blog.yaml":          "{apiVersion: v1, kind: ConfigMap, metadata: {name: blog, namespace: web}}\n",
		"web/prod/notes.yaml":     "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes, namespace: web}}\n",
		"apps/dev/ns.yaml":        "{apiVersion: v1, kind: Namespace, metadata: {name: dev}}\n",
		"vars/vars.yaml":          "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: sizes}, spec: {vars: {replicas: '3'}}}\n",
	}
	for name, test := range map[string]struct {
		changes map[string]string // an empty text removes the file
		want    string
	}{
		"nothing":              {},
		"what is not deployed": {map[string]string{".gitfleetignore": "notes.yaml\n"}, ""},
		"roots that forget a directory": {map[string]string{".gitfleet.yaml": "roots: [fleet, web, blog, vars]\n"},
			"Namespace/dev: apps, the roots in .gitfleet.yaml do not have it"},
		"roots that forget the placements": {map[string]string{".gitfleet.yaml": "roots: [fleet/cluster, web, blog, apps, vars]\n", "fleet/cluster/c.yaml": "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}}\n", "fleet/cluster.yaml": ""},
			"crp/web: fleet/placement.yaml, the roots in .gitfleet.yaml do not have it"},
		"roots without the directory of a kustomization": {map[string]string{".gitfleet.yaml": "roots: [fleet, web, apps, vars]\n"},
			"ConfigMap/web/blog: blog, the roots in .gitfleet.yaml do not have it"},
		"roots without a directory that is removed as well": {map[string]string{".gitfleet.yaml": "roots: [fleet, web, apps, vars]\n", "blog/kustomization.yaml": "", "blog/blog.yaml": ""}, ""},
		"roots without it, and its objects moved":           {map[string]string{".gitfleet.yaml": "roots: [fleet, web, apps, vars]\n", "web/prod/blog.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: blog, namespace: web}}\n"}, ""},
		"a variable path means another directory by chance": {map[string]string{
			"fleet/o.yaml":                     "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: o}, spec: {paths: ['${cluster.labels.env}', 'overlays/prod', '${cluster.name}']}}\n",
			"overlays/prod/kustomization.yaml": "resources: [ns.yaml]\n", "overlays/prod/ns.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n",
		}, "ConfigMap/web/blog: blog, ClusterOverlay.gitfleet.dev/o (fleet/o.yaml:1) builds it for clusters"},
		"an overlay builds it for a cluster": {map[string]string{
			"fleet/o.yaml": "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: o}, spec: {path: 'blog'}}\n"}, ""},
		"an overlay builds it under another name": {map[string]string{
			"fleet/o.yaml":            "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: o}, spec: {path: 'blog'}}\n",
			"blog/kustomization.yaml": "resources: [blog.yaml]\nnamePrefix: my-\n"}, ""},
		"a file beside what an overlay builds": {map[string]string{
			"fleet/o.yaml":                "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: o}, spec: {path: 'web/${cluster.labels.env}'}}\n",
			"web/prod/kustomization.yaml": "namePrefix: a-\nresources: [other.yaml]\n", "web/prod/other.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n",
		}, "Namespace/web: web/prod, ClusterOverlay.gitfleet.dev/o (fleet/o.yaml:1) builds it for clusters"},
		"values that are an object":         {map[string]string{"charts/web/Chart.yaml": chartText, "fleet/chart.yaml": fmt.Sprintf(useText, "blog/blog.yaml, apps/dev/ns.yaml")}, ""},
		"values that are objects by chance": {map[string]string{"charts/web/Chart.yaml": chartText, "fleet/chart.yaml": fmt.Sprintf(useText, "'apps/dev/${cluster.name}.yaml'")}, ""},
		"an object becomes values": {map[string]string{"charts/web/Chart.yaml": chartText, "fleet/chart.yaml": fmt.Sprintf(useText, "apps/dev/ns.yaml"), "apps/dev/ns.yaml": "a: 1\n"},
			"Namespace/dev: apps/dev/ns.yaml, ClusterHelmChart.gitfleet.dev/c (fleet/chart.yaml:1) renders it for clusters"},
		"a pattern of an ignore file": {map[string]string{".gitfleetignore": "dev*\n"}, "Namespace/dev: apps/dev, .gitfleetignore lists it"},
		"a kustomization that does not list its neighbours": {map[string]string{"apps/dev/kustomization.yaml": "resources: [other.yaml]\n", "apps/dev/other.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n"},
			"Namespace/dev: apps/dev/ns.yaml, apps/dev/kustomization.yaml is the kustomization of its directory and does not list it"},
		"a kustomization that lists it":        {map[string]string{"apps/dev/kustomization.yaml": "resources: [ns.yaml]\nnamePrefix: a-\n"}, ""},
		"a kustomization lists a file no more": {map[string]string{"blog/kustomization.yaml": "resources: [other.yaml]\n", "blog/other.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n"}, ""},
		"roots that forget the values of variables": {map[string]string{".gitfleet.yaml": "roots: [fleet, web, blog, apps]\n"},
			"ClusterVars/sizes: vars, the roots in .gitfleet.yaml do not have it"},
		"an ignored file with values of variables": {map[string]string{".gitfleetignore": "vars.yaml\n"},
			"ClusterVars/sizes: vars/vars.yaml, .gitfleetignore lists it"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLoader(Options{})
			before, err := l.Load(Commit{Hash: "before"}, newMemoryTree(files))
			if err != nil {
				t.Fatal(err)
			}
			changed := maps.Clone(files)
			for name, text := range test.changes {
				if changed[name] = text; text == "" {
					delete(changed, name)
				}
			}
			next, err := l.Load(Commit{Hash: "next"}, newMemoryTree(changed))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if d := next.Drops(before, func(o *api.Object) bool { return o.ID.Name != "notes" }); d != nil {
				got = d.What + ": " + d.Exclusion.Path + ", " + d.Exclusion.Why
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Nothing that has an effect may leave the hub by a path that was mistyped, whatever its kind is.
func TestDropsOfEachKind(t *testing.T) {
	const selected = "---\n{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: p}, spec: {resourceSelectors: [{group: gitfleet.dev, version: v1alpha1, kind: %s, name: c}], policy: {placementType: PickAll}}}\n"
	for text, want := range map[string]string{
		"{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: c}, spec: {vars: {replicas: '3'}}}": "ClusterVars/c",
		"{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: c}, spec: {path: apps}}":         "ClusterOverlay.gitfleet.dev/c",
		fmt.Sprintf(useText, ""): "ClusterHelmChart.gitfleet.dev/c",
		"{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: west}}": "MemberCluster/west",
		"{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourceOverride, metadata: {name: c}, spec: {clusterResourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}}}": "ClusterResourceOverride/c",
		"{apiVersion: placement.kubernetes-fleet.io/v1, kind: ResourceOverride, metadata: {name: c, namespace: web}, spec: {resourceSelectors: [{group: '', version: v1, kind: Service, name: a}], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}}}":   "ResourceOverride/web/c",
	} {
		files := map[string]string{
			"fleet/cluster.yaml": "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}}\n" + fmt.Sprintf(selected, "ClusterOverlay"), "it/it.yaml": text,
			"apps/kustomization.yaml": "resources: [ns.yaml]\n", "apps/ns.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n",
			"charts/web/Chart.yaml": chartText, "charts/web/templates/a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: a}}", ".gitfleet.yaml": "roots: [fleet, it]\n",
		}
		l := NewLoader(Options{})
		before, err := l.Load(Commit{Hash: "before"}, newMemoryTree(files))
		if err != nil {
			t.Fatal(err)
		}
		files[".gitfleet.yaml"] = "roots: [fleet]\n"
		next, err := l.Load(Commit{Hash: "next"}, newMemoryTree(files))
		if err != nil {
			t.Fatal(err)
		}
		if d := next.Drops(before, func(*api.Object) bool { return true }); d == nil || d.What != want {
			t.Errorf("%s: got %v", want, d)
		}
	}
}
