package hub

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/test/sopsfile"
)

var postBuildFleet = map[string]string{
	"fleet/fleet.yaml": `
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: paris}}
---
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: tokyo}}
---
{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: first}, spec: {vars: {REPLICAS: "2"}, clusters: [{names: [paris], vars: {REPLICAS: "5"}}]}}
---
{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: second}, spec: {vars: {DOMAIN: example.com, HOST: none}}}
---
apiVersion: gitfleet.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: web}
spec:
  path: apps/web
  postBuild:
    substitute: {HOST: '${cluster.name}.${vars.DOMAIN}', TEXT: '$${cluster.name}'}
    substituteFrom: [{name: first}, {kind: ClusterVars, name: second}]
`,
	".gitfleet.yaml":              "roots: [fleet]\n",
	"apps/web/kustomization.yaml": "namespace: web\nresources: [web.yaml]\n",
	"apps/web/web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${NAME:=web}
spec:
  replicas: ${REPLICAS}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'x:${HOST}', args: ['${TEXT}', '$${HOST}', '${REPLICAS}']}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: same}}
`,
}

func buildsOf(t *testing.T, s *Snapshot, name, cluster string) []*api.OverlayBuild {
	t.Helper()
	o := s.Object(api.ID{Group: api.OverlayGroup, Kind: "ClusterOverlay", Name: name})
	keys, err := overlay.BuildsFor(o.Overlay, overlay.Cluster{Name: cluster})
	if err != nil {
		t.Fatal(err)
	}
	var all []*api.OverlayBuild
	for _, key := range keys {
		all = append(all, o.Overlay.Builds[key])
	}
	return all
}

// Each cluster gets its own values, and a change of one moves the clusters that have it only, without building anything anew.
func TestPostBuildReplacesVariables(t *testing.T) {
	l := NewLoader(Options{})
	load := func(files map[string]string) *Snapshot {
		s, err := l.Load(Commit{}, newMemoryTree(files))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Warnings) > 0 {
			t.Fatal(s.Warnings)
		}
		return s
	}
	before := load(postBuildFleet)
	for cluster, want := range map[string]string{
		"paris": "5 x:paris.example.com [${cluster.name} ${HOST} 5]", "tokyo": "2 x:tokyo.example.com [${cluster.name} ${HOST} 2]",
	} {
		objects := buildsOf(t, before, "web", cluster)[0].Objects
		web, _ := yaml.Marshal(objects[1].Content.Object)
		var d struct {
			Spec struct {
				Replicas int
				Template struct {
					Spec struct {
						Containers []struct {
							Image string
							Args  []string
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(web, &d); err != nil {
			t.Fatal(err)
		}
		c := d.Spec.Template.Spec.Containers[0]
		if got := fmt.Sprint(d.Spec.Replicas, " ", c.Image, " ", c.Args); got != want {
			t.Errorf("%s: %s, want %s", cluster, got, want)
		}
		if !objects[1].Substituted || objects[0].Substituted || objects[1].ID.Name != "web" {
			t.Errorf("%s: %v", cluster, objects)
		}
	}
	if _, err := overlay.BuildsFor(before.Object(api.ID{Group: api.OverlayGroup, Kind: "ClusterOverlay", Name: "web"}).Overlay, overlay.Cluster{Name: "lima"}); err == nil {
		t.Error("a cluster that the commit does not have gets something")
	}
	built := l.built
	changed := maps.Clone(postBuildFleet)
	changed["fleet/fleet.yaml"] = strings.Replace(changed["fleet/fleet.yaml"], `"5"`, `"6"`, 1)
	after := load(changed)
	if l.built != built {
		t.Errorf("%d builds", l.built-built)
	}
	if buildsOf(t, after, "web", "tokyo")[0].Hash != buildsOf(t, before, "web", "tokyo")[0].Hash {
		t.Error("tokyo has other content than before")
	}
	if buildsOf(t, after, "web", "paris")[0].Hash == buildsOf(t, before, "web", "paris")[0].Hash {
		t.Error("paris has the same content as before")
	}
}

func TestPostBuildProblems(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, want string }{
		"no value":                         {"fleet/fleet.yaml", "REPLICAS: \"2\"", "OTHER: \"2\"", "apps/web/web.yaml:2: spec.replicas: variable REPLICAS has no value; set it in spec.postBuild of ClusterOverlay.gitfleet.dev/web or in a ClusterVars that it names, or write a default such as ${REPLICAS:=TEXT}, for tokyo (built by apps/web/kustomization.yaml)"},
		"a label that no cluster has":      {"fleet/fleet.yaml", "${vars.DOMAIN}", "${cluster.labels.env}", "apps/web/web.yaml:2: spec.template.spec.containers[0].image: spec.postBuild.substitute.HOST of ClusterOverlay.gitfleet.dev/web: the cluster has no label env; add it to its MemberCluster, or write a default such as ${cluster.labels.env:-TEXT}, for paris, tokyo"},
		"a Secret":                         {"apps/web/web.yaml", "kind: ConfigMap, metadata: {name: same}", "kind: Secret, metadata: {name: same}, stringData: {a: 'x${canary}'}", "apps/web/web.yaml:11: stringData.a: a variable has no value; set it in spec.postBuild of ClusterOverlay.gitfleet.dev/web or in a ClusterVars that it names, or write a default such as ${NAME:=TEXT}, or $${ for the text ${, for paris, tokyo"},
		"a namespace that it may not have": {"apps/web/kustomization.yaml", "namespace: web", "namespace: kube-${NAME:=system}", "namespace kube-system is reserved"},
		"a name that is none":              {"apps/web/web.yaml", "${NAME:=web}", "${NAME:=a/b}", "a/b"},
		"unknown ClusterVars":              {"fleet/fleet.yaml", "[{name: first}", "[{name: fist}", "fleet/fleet.yaml:17: spec.postBuild.substituteFrom[0]: the commit has no ClusterVars fist; did you mean first?"},
		"a ConfigMap":                      {"fleet/fleet.yaml", "kind: ClusterVars, name: second", "kind: ConfigMap, name: second", "spec.postBuild.substituteFrom[1].kind: must be ClusterVars, since the values of a ConfigMap are known on its cluster only"},
		"a name that cannot be":            {"fleet/fleet.yaml", "{HOST:", "{a.b:", `"a.b" cannot be the name of a variable`},
		"a value that cannot be":           {"fleet/fleet.yaml", "HOST: '${cluster.name}", "HOST: '${cluster.nam}", "${cluster.nam} is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(postBuildFleet)
			files[test.file] = strings.Replace(files[test.file], test.old, test.new, 1)
			s, err := load(Commit{}, newMemoryTree(files), Options{})
			said := fmt.Sprint(err)
			if err == nil {
				said = fmt.Sprint(s.Warnings.Err())
			}
			if !strings.Contains(said, test.want) {
				t.Errorf("%s\nwant %s", said, test.want)
			}
		})
	}
}

// An encrypted value may look like a variable: nothing is replaced in its object, and no message has a part of it.
func TestPostBuildLeavesEncryptedObjectsAlone(t *testing.T) {
	files := maps.Clone(postBuildFleet)
	files["apps/web/kustomization.yaml"] = "namespace: web\nresources: [web.yaml, secret.yaml]\n"
	secret := func(metadata string) string {
		return sopsfile.Encrypt("apiVersion: v1\nkind: Secret\nmetadata: "+metadata+"\nstringData: {a: 'canary${REPLICAS}'}\n", "^stringData$", recipient)
	}
	for metadata, fails := range map[string]bool{"{name: s}": true, "{name: s, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}": false} {
		files["apps/web/secret.yaml"] = secret(metadata)
		s, err := load(Commit{}, newMemoryTree(files), Options{Keys: &fakeKeys{recipient, "1"}})
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(s.Warnings.Err())
		if strings.Contains(said, "canary") || strings.Contains(said, "variables are not replaced in an object with encrypted values") != fails {
			t.Errorf("%s: %s", metadata, said)
		}
		b := buildsOf(t, s, "web", "paris")[0]
		if !fails && (len(b.Objects) != 3 || b.Objects[1].HashKey == nil || b.Objects[1].Content.Object["stringData"].(map[string]any)["a"] != "canary${REPLICAS}") {
			t.Errorf("%s: %v %s", metadata, b.Objects, b.Err)
		}
	}
}

// A load with other values changes nothing in the objects of published snapshots, such as the definitions that a build has beside objects
// with variables.
func TestPostBuildChangesNoPublishedDefinition(t *testing.T) {
	files := maps.Clone(postBuildFleet)
	files["apps/web/web.yaml"] += `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}]
`
	l := NewLoader(Options{})
	definition := func() *api.Object {
		s, err := l.Load(Commit{}, newMemoryTree(files))
		if err != nil {
			t.Fatal(err)
		}
		objects := buildsOf(t, s, "web", "paris")[0].Objects
		return objects[slices.IndexFunc(objects, func(o *api.Object) bool { return o.ID.Kind == "CustomResourceDefinition" })]
	}
	published := definition()
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = json.Marshal(published.Content.Object) }) // the race detector reports a load that writes to it
	files["fleet/fleet.yaml"] = strings.Replace(files["fleet/fleet.yaml"], `"5"`, `"6"`, 1)
	if definition() != published {
		t.Error("the definition is another object than before")
	}
	reader.Wait()
}

// What no cluster uses is no part of the hub either, so that only an overlay that may decide so takes it away from others.
func TestPostBuildTakesNoUnusedDirectoryFromOthers(t *testing.T) {
	files := map[string]string{
		"fleet.yaml":                "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: paris}}\n",
		"shop/paris/a.yaml":         "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n",
		"orders/kustomization.yaml": "namespace: orders\nresources: [b.yaml]\n",
		"orders/b.yaml":             "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: '${A:=b}'}}\n",
		"shop/overlay.yaml":         "apiVersion: gitfleet.dev/v1alpha1\nkind: Overlay\nmetadata: {name: all, namespace: shop}\nspec:\n  paths: ['shop/${cluster.name}', '${cluster.labels.none:-x}']\n  postBuild: {}\n",
	}
	all := []string{"*"}
	opts := Options{Grants: grant.Set{
		{Field: "paths[0]", Namespaces: all, Kinds: all, Placements: all},
		{Path: "shop", Field: "paths[1]", Namespaces: []string{"shop"}, Kinds: all},
		{Path: "orders", Field: "paths[2]", Namespaces: []string{"orders"}},
	}}
	const refused = "orders/kustomization.yaml is not in path shop, and its own path does not share it"
	if _, err := load(Commit{}, newMemoryTree(files), opts); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("got %v, want %s", err, refused)
	}
}

// Who sets a value may decide the namespace of an object, and must be granted it, however the overlay takes the value.
func TestPostBuildValuesAreGrantedWhatTheyDecide(t *testing.T) {
	all := []string{"*"}
	opts := Options{Grants: grant.Set{{Field: "paths[0]", Namespaces: all, Kinds: all, Placements: all}, {Path: "vars", Field: "paths[1]", Kinds: all}}}
	for _, postBuild := range []string{"{substituteFrom: [{name: v}]}", "{substitute: {NAMESPACE: '${vars.NAMESPACE}'}}"} {
		files := map[string]string{
			".gitfleet.yaml": "roots: [fleet, vars]\n",
			"fleet/a.yaml": "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: paris}}\n---\n" +
				"{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: web}, spec: {path: web, postBuild: " + postBuild + "}}\n",
			"vars/a.yaml": "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterVars, metadata: {name: v}, spec: {vars: {NAMESPACE: shop}}}\n",
			"web/a.yaml":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: '${NAMESPACE}'}}\n",
		}
		const refused = "files in path vars may not produce ConfigMap/shop/a"
		if _, err := load(Commit{}, newMemoryTree(files), opts); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: got %v, want %s", postBuild, err, refused)
		}
	}
}
