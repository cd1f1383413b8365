package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
)

// files are a repository: names and YAML.
func files(all ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(all); i += 2 {
		out[all[i]] = &fstest.MapFile{Data: []byte(all[i+1])}
	}
	return out
}

func memberCluster(name, labels string) string {
	return "---\n{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: " + name + ", labels: {" + labels + "}}, spec: {identity: {kind: User, name: gitfleet}}}\n"
}

func crp(namespace, rest string) string {
	return "---\n{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: " + namespace + "}, spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + namespace + "}], " + rest + "}}\n"
}

func namespace(name string) string {
	return "---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}\n"
}

func configMap(name string) string {
	return "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: web}}\n"
}

func override(terms, rule string) string {
	return "---\n{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceOverride, metadata: {name: o}, spec: {clusterResourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: [" +
		terms + "]}, " + rule + "}]}}}\n"
}

// What has no effect is warned of where it is, what could not be carried out is an error, and what
// only a running fleet knows is not judged.
func TestInspect(t *testing.T) {
	const (
		all      = "policy: {placementType: PickAll}"
		labelled = "jsonPatchOverrides: [{op: add, path: /metadata/labels, value: {a: b}}]"
		near     = "policy: {placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: eu}}}]}}}}"
		large    = "policy: {placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: ['3']}]}}]}}}}"
	)
	two := memberCluster("ams", "region: eu") + memberCluster("chi", "region: us")
	for name, test := range map[string]struct {
		of   fstest.MapFS
		want []string
	}{
		"all has an effect": {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")+configMap("one")), nil},
		"a misspelt cluster": {files("c.yaml", memberCluster("amsterdam", ""), "p.yaml", crp("web", "policy: {placementType: PickFixed, clusterNames: [amsterdm]}"), "w.yaml", namespace("web")), []string{
			"c.yaml:2: no placement selects the cluster amsterdam (warning) [dead-configuration]",
			"p.yaml:2: spec.policy.clusterNames[0]: the commit has no MemberCluster amsterdm, so it is not chosen; did you mean amsterdam? (warning) [doubtful]",
		}},
		"no placement":            {files("c.yaml", two, "w.yaml", namespace("web")), []string{"there is no placement, so nothing is placed; add a ClusterResourcePlacement or a ResourcePlacement (warning) [dead-configuration]"}},
		"no member":               {files("p.yaml", crp("web", all), "w.yaml", namespace("web")), []string{"there is no MemberCluster, so nothing is placed; add one for each member (warning) [dead-configuration]"}},
		"a member without effect": {files("c.yaml", two, "p.yaml", crp("web", near), "w.yaml", namespace("web")), []string{"c.yaml:4: no placement selects the cluster chi (warning) [dead-configuration]"}},
		"a member in reserve":     {files("c.yaml", two, "p.yaml", crp("web", "policy: {placementType: PickN, numberOfClusters: 1}"), "w.yaml", namespace("web")), nil},
		"by unknown properties":   {files("c.yaml", two, "p.yaml", crp("web", large), "w.yaml", namespace("web")), nil},
		"too few members": {files("c.yaml", two, "p.yaml", crp("web", "policy: {placementType: PickN, numberOfClusters: 3}"), "w.yaml", namespace("web")), []string{
			"p.yaml:2: spec.policy: selects 2 of the 3 clusters it asks for: there are no more; declare more, or lower numberOfClusters (warning) [dead-configuration]",
		}},
		"no member that matches": {files("c.yaml", memberCluster("chi", "region: us"), "p.yaml", crp("web", near), "w.yaml", namespace("web")), []string{
			"c.yaml:2: no placement selects the cluster chi (warning) [dead-configuration]",
			"p.yaml:2: spec.policy: selects no cluster: cluster does not match with any of the required cluster affinity terms (chi) (warning) [dead-configuration]",
		}},
		"an object of a file that nothing selects": {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")+namespace("other")), []string{
			"w.yaml:4: no placement selects Namespace/other (warning) [dead-configuration]",
		}},
		"a whole file that nothing selects": {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web"), "x.yaml", namespace("one")+namespace("two")), []string{
			"x.yaml: no placement selects anything in this file: Namespace/one, Namespace/two (warning) [dead-configuration]",
		}},
		"a rule for no member": {files("c.yaml", two, "o.yaml", override("{labelSelector: {matchLabels: {region: jp}}}", labelled), "p.yaml", crp("web", all), "w.yaml", namespace("web")), []string{
			"o.yaml:2: spec.policy.overrideRules[0].clusterSelector: matches no cluster, so this rule changes nothing (warning) [dead-configuration]",
		}},
		"a rule for every member": {files("c.yaml", two, "o.yaml", override("", labelled), "p.yaml", crp("web", all), "w.yaml", namespace("web")), nil},
		"an override that cannot be applied": {
			files("c.yaml", two, "o.yaml", override("{labelSelector: {matchLabels: {region: eu}}}", "jsonPatchOverrides: [{op: remove, path: /spec/nothing}]"), "p.yaml", crp("web", all), "w.yaml", namespace("web")),
			[]string{"o.yaml:2: spec.policy.overrideRules[0].jsonPatchOverrides: crp/web would not be updated on ams: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, test.of)
			found, _, err := examine(s, err, "")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				text := f.text() + " [" + f.rule.id + "]"
				if f.rule == unfit {
					text = text[:strings.Index(text, "on ams: ")+len("on ams: ")]
				}
				got = append(got, text)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("%q\nwant %q", got, test.want)
			}
		})
	}
}

// Problems of a placement and of an override are at the lines of their fields.
func TestFindingsAreAtTheLinesOfFields(t *testing.T) {
	const p = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: web}
  - {group: "", version: v1, kind: Namespace, name: wbe}
  policy:
    placementType: PickN
    numberOfClusters: 3
`
	const o = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceOverride
metadata: {name: o}
spec:
  clusterResourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: web}
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      overrideType: Delete
    - overrideType: Delete
      clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: jp}}}]}
`
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, files("c.yaml", memberCluster("ams", "region: eu"), "p.yaml", p, "o.yaml", o, "w.yaml", namespace("web")))
	found, _, err := examine(s, err, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		at, _, _ := strings.Cut(f.text(), ": ")
		got = append(got, at+" "+f.Field)
	}
	if want := []string{"o.yaml:13 spec.policy.overrideRules[1].clusterSelector", "p.yaml:8 spec.resourceSelectors[1]", "p.yaml:9 spec.policy"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// Of the reasons why clusters are not selected the most frequent are named, with their clusters.
func TestObjections(t *testing.T) {
	decisions := func(reasons ...string) (out []placement.Decision) {
		for i, r := range reasons {
			out = append(out, placement.Decision{Cluster: fmt.Sprintf("c%d", i), Selected: r == "", Reason: r})
		}
		return out
	}
	for name, test := range map[string]struct {
		of   []placement.Decision
		want string
	}{
		"none":           {decisions("", ""), ""},
		"by number":      {decisions("taint", "label", "", "label"), "label (c1, c3); taint (c0)"},
		"by name":        {decisions("b", "a"), "a (c1); b (c0)"},
		"without prefix": {decisions("ClusterUnschedulable, taint", "taint"), "taint (c0, c1)"},
		"not too many":   {decisions("a", "b", "c", "d", "e"), "a (c0); b (c1); c (c2); 2 other reasons"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := objections(test.of); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A variable that many clusters lack is one problem, which names some of them.
func TestOneProblemForAllClustersWithoutAVariable(t *testing.T) {
	members := ""
	for i := range 40 {
		members += memberCluster(fmt.Sprintf("c%02d", i), "region: eu")
	}
	for text, want := range map[string]string{
		"${vars.none}":            "the cluster has no variable none; set it in a ClusterVars, or write a default such as ${vars.none:-TEXT}",
		"${cluster.labels.zone}":  "the cluster has no label zone; add it to its MemberCluster, or write a default such as ${cluster.labels.zone:-TEXT}",
		"${cluster.properties.a}": "the cluster has no declared property a; add the annotation property.gitfleet.dev/a to its MemberCluster, or write a default such as ${cluster.properties.a:-TEXT}",
	} {
		object := strings.Replace(namespace("web"), "name: web", "name: web, annotations: {gitfleet.dev/substitute: enabled, a: '"+text+"'}", 1)
		s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, files("c.yaml", members, "p.yaml", crp("web", "policy: {placementType: PickAll}"), "w.yaml", object))
		found, _, err := examine(s, err, "")
		if err != nil {
			t.Fatal(err)
		}
		want = "p.yaml:2: crp/web would not be updated on c00, c01, c02, c03, c04 and 35 more: w.yaml:2: Namespace/web: metadata.annotations.a: " + want
		if len(found) != 1 || found[0].text() != want {
			t.Errorf("%s: %d problems, the first is\n%s\nwant\n%s", text, len(found), found[0].text(), want)
		}
	}
}

// What an overlay cannot build is one more problem of its placement, for all clusters, and not its reason once for each.
func TestInspectWithoutBuilds(t *testing.T) {
	const overlay = "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: web}, spec: {path: 'apps/${cluster.name}'}}\n"
	const placed = "---\n{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: web}, spec: {resourceSelectors: [{group: gitfleet.dev, version: v1alpha1, kind: ClusterOverlay, name: web}], policy: {placementType: PickAll}}}\n"
	of := files("c.yaml", memberCluster("ams", "")+memberCluster("chi", ""), "o.yaml", overlay+placed,
		"apps/base/kustomization.yaml", "resources: [web.yaml]\n", "apps/base/web.yaml", "metadata: {\n",
		"apps/ams/kustomization.yaml", "resources: [../base]\n", "apps/chi/kustomization.yaml", "resources: [../base]\n")
	found, _, err := examine(loaded(t, of), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		if f.rule == unfit {
			got = append(got, f.text())
		}
	}
	const want = "o.yaml:3: crp/web would not be updated on ams, chi: what ClusterOverlay.gitfleet.dev/web (o.yaml:1) has there cannot be built, for a reason that is reported as well"
	if len(got) != 2 || !slices.Contains(got, want) {
		t.Errorf("got %q, want the reason and %q", got, want)
	}
}
