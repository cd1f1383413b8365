package work

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

var fleetVars = &api.Variables{
	Properties: map[string]map[string]string{"paris": {"zone": "3"}},
	Vars: []*api.ClusterVars{{Spec: api.ClusterVarsSpec{
		Vars: map[string]string{"replicas": "1", "text": "${cluster.name} \"q\""},
		Clusters: []api.ClusterVarsRule{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, Vars: map[string]string{"replicas": "5"}},
			{Names: []string{"oslo"}, Vars: map[string]string{"replicas": "many"}},
		},
	}}},
}

var clustersWithVars = map[string]placement.Cluster{
	"paris": {Name: "paris", Labels: map[string]string{"env": "prod"}},
	"tokyo": {Name: "tokyo", Labels: map[string]string{"env": "dev"}},
	"oslo":  {Name: "oslo"},
}

func withVars(t *testing.T, text string, all bool, numbers ...api.NumberField) *Renderer {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	hash, _ := hashObject(u, nil)
	o := &api.Object{ID: api.IDOf(u), Content: u, Hash: hash, Numbers: numbers, Origin: api.Origin{Path: "web.yaml", Line: 3}}
	return NewRenderer(api.PlacementKey{Name: "p"}, []*api.Object{o}, nil, nil, nil).WithVariables(fleetVars, all)
}

const enabled = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop, annotations: {gitfleet.dev/substitute: enabled}}\n"

// Variables are replaced in texts, keys and whole numbers, once; whatever else looks like one stays.
func TestVariablesAreReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		text, cluster, want string
		numbers             []api.NumberField
	}{
		"texts":          {enabled + "data: {a: 'x-${cluster.name}-${cluster.labels.env}', b: '${HOME} ${MEMBER-CLUSTER-NAME}'}", "paris", `{"a":"x-paris-prod","b":"${HOME} ${MEMBER-CLUSTER-NAME}"}`, nil},
		"keys":           {enabled + "data: {'${cluster.name}.conf': a}", "paris", `{"paris.conf":"a"}`, nil},
		"properties":     {enabled + "data: {a: '${cluster.properties.zone:-none}'}", "paris", `{"a":"3"}`, nil},
		"a default":      {enabled + "data: {a: '${cluster.properties.zone:-none}', b: '${vars.none:-}'}", "tokyo", `{"a":"none","b":""}`, nil},
		"escaped":        {enabled + "data: {a: '$${cluster.name}'}", "paris", `{"a":"${cluster.name}"}`, nil},
		"once":           {enabled + "data: {a: '${vars.text}'}", "paris", `{"a":"${cluster.name} \"q\""}`, nil},
		"a number":       {enabled + "data: {count: '${vars.replicas}', t: '${vars.replicas}'}", "paris", `{"count":5,"t":"5"}`, []api.NumberField{{Path: []string{"data", "count"}}}},
		"number or text": {enabled + "data: {count: '${vars.replicas}'}", "oslo", `{"count":"many"}`, []api.NumberField{{Path: []string{"data", "count"}, OrText: true}}},
		"nobody asks":    {strings.Replace(enabled, "enabled", "never", 1) + "data: {a: '${cluster.name}'}", "paris", `{"a":"${cluster.name}"}`, nil},
		"no number":      {enabled + "data: {count: '${vars.replicas}'}", "oslo", "web.yaml:3: ConfigMap/shop/c: data.count: must be a whole number, and ${vars.replicas} is \"many\"; change the value of the variable", []api.NumberField{{Path: []string{"data", "count"}}}},
		"no label":       {enabled + "data: {a: '${cluster.labels.env}'}", "oslo", "web.yaml:3: ConfigMap/shop/c: data.a: the cluster has no label env; add it to its MemberCluster, or write a default such as ${cluster.labels.env:-TEXT}", nil},
		"no variable":    {enabled + "data: {a: '${vars.none}'}", "oslo", "web.yaml:3: ConfigMap/shop/c: data.a: the cluster has no variable none; set it in a ClusterVars, or write a default such as ${vars.none:-TEXT}", nil},
		"malformed":      {enabled + "data: {a: '${cluster.nam}'}", "oslo", "web.yaml:3: ConfigMap/shop/c: data.a: ${cluster.nam} is not known; write ${cluster.name}, ${cluster.labels.KEY}, ${cluster.properties.KEY} or ${vars.NAME}, each with a default such as ${cluster.labels.KEY:-TEXT}", nil},
		"two equal keys": {enabled + "data: {'${cluster.name}': a, paris: b}", "paris", `web.yaml:3: ConfigMap/shop/c: data: two keys are "paris" once their variables are replaced; rename one of them, or change the value of its variable`, nil},
		"no closed one":  {enabled + "data: {a: '${vars.a'}", "paris", "web.yaml:3: ConfigMap/shop/c: data.a: a variable lacks its closing bracket; write ${cluster.name}, ${cluster.labels.KEY}, ${cluster.properties.KEY} or ${vars.NAME}, each with a default such as ${cluster.labels.KEY:-TEXT}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := withVars(t, test.text, false, test.numbers...).For(clustersWithVars[test.cluster])
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				text, _ := yaml.Marshal(r.Manifests[0].Object.Content.Object["data"])
				data, _ := yaml.YAMLToJSON(text)
				got = string(data)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A revision is that of a cluster: it changes with the values that the cluster uses, and is known by the labels.
func TestRevisionsWithVariables(t *testing.T) {
	r := withVars(t, strings.Replace(enabled, "enabled", "never", 1)+"data: {a: '${vars.replicas}'}", true)
	hashes := map[string]string{}
	for name, c := range clustersWithVars {
		rendered, err := r.For(c)
		if err != nil {
			t.Fatal(err)
		}
		hashes[name] = rendered.Hash
		again, err := r.For(WithLabels(placement.Cluster{Name: name}, placement.Revision{Labels: r.Labels(c)}))
		if err != nil || again.Hash != rendered.Hash {
			t.Errorf("%s: the revision is not found again by its labels %q", name, r.Labels(c))
		}
	}
	if len(map[string]bool{hashes["paris"]: true, hashes["tokyo"]: true, hashes["oslo"]: true}) != 3 {
		t.Errorf("the hashes are %v", hashes)
	}
	if fmt.Sprint(r.Manifests()[0].Object.Content.Object["data"]) != "map[a:${vars.replicas}]" {
		t.Error("the manifest before any cluster has changed")
	}
	plain := withVars(t, enabled+"data: {a: b}", true)
	if plain.substitution != nil || len(plain.variants) > 0 {
		t.Error("an object without variables is rendered for each cluster")
	}
}

// The hash of all content depends on the variables that it uses, and on no others: otherwise a new cluster or a variable
// of others would start rollouts.
func TestOnlyVariablesInUseCount(t *testing.T) {
	hash := func(change func(*api.Variables)) string {
		vars := &api.Variables{Properties: map[string]map[string]string{"paris": {"zone": "3"}}, Vars: []*api.ClusterVars{{Spec: api.ClusterVarsSpec{
			Vars:     map[string]string{"replicas": "1", "text": "a"},
			Clusters: []api.ClusterVarsRule{{Names: []string{"oslo"}, Vars: map[string]string{"replicas": "2", "text": "b"}}},
		}}}}
		change(vars)
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "shop"}, "data": map[string]any{"a": "${vars.replicas} ${cluster.properties.zone:-1}"}}}
		return NewRenderer(api.PlacementKey{Name: "p"}, []*api.Object{{ID: api.IDOf(o), Content: o, Hash: "h"}}, nil, nil, nil).WithVariables(vars, true).Hash()
	}
	before := hash(func(*api.Variables) {})
	for name, test := range map[string]struct {
		change func(*api.Variables)
		counts bool
	}{
		"another variable":          {func(v *api.Variables) { v.Vars[0].Spec.Vars["text"] = "x" }, false},
		"another property":          {func(v *api.Variables) { v.Properties["lima"] = map[string]string{"tier": "1"} }, false},
		"the variable":              {func(v *api.Variables) { v.Vars[0].Spec.Vars["replicas"] = "3" }, true},
		"the variable of a cluster": {func(v *api.Variables) { v.Vars[0].Spec.Clusters[0].Vars["replicas"] = "3" }, true},
		"the cluster of a variable": {func(v *api.Variables) { v.Vars[0].Spec.Clusters[0].Names = []string{"lima"} }, true},
		"the property of a cluster": {func(v *api.Variables) { v.Properties["lima"] = map[string]string{"zone": "4"} }, true},
	} {
		if got := hash(test.change) != before; got != test.counts {
			t.Errorf("%s: the hash changes: %t", name, got)
		}
	}
}

// An object with encrypted values keeps them as they are, and an error about its variables has no text of it.
func TestEncryptedObjectsHaveNoVariables(t *testing.T) {
	render := func(annotation string) (*Rendered, error) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.Replace(enabled, "enabled", annotation, 1)+"data: {a: 'x${cluster.secret}'}"), &u.Object); err != nil {
			t.Fatal(err)
		}
		o := &api.Object{ID: api.IDOf(u), Content: u, Hash: "h", HashKey: []byte("key")}
		return NewRenderer(api.PlacementKey{Name: "p"}, []*api.Object{o}, nil, nil, nil).WithVariables(fleetVars, true).For(clustersWithVars["paris"])
	}
	if r, err := render("never"); err != nil || fmt.Sprint(r.Manifests[0].Object.Content.Object["data"]) != "map[a:x${cluster.secret}]" {
		t.Errorf("it is %v, %v", r, err)
	}
	if _, err := render("enabled"); err == nil || strings.Contains(err.Error(), "secret}") {
		t.Errorf("the error is %v", err)
	}
}

// Variables make no object larger than an API server accepts: a commit would take the memory of the daemon by them.
func TestGrowthByVariablesIsBounded(t *testing.T) {
	long := &api.Variables{Vars: []*api.ClusterVars{{Spec: api.ClusterVarsSpec{Vars: map[string]string{"x": strings.Repeat("x", api.LargestVariable), "y": "y"}}}}}
	for name, test := range map[string]struct {
		data  string
		error string
	}{
		"within":           {"'" + strings.Repeat("${vars.x}", 16) + "'", ""},
		"one text":         {"'" + strings.Repeat("${vars.x}", 20_000) + "'", "larger by more than 1024 KiB"},
		"many texts":       {"'${vars.x}', b: '" + strings.Repeat("${vars.x}${vars.y}", 16) + "'", "larger by more than 1024 KiB"},
		"many short ones":  {"'" + strings.Repeat("${vars.y}", 20_000) + "'", ""},
		"many without one": {"'" + strings.Repeat("${vars.none}", 20_000) + "'", "the cluster has no variable none"},
	} {
		t.Run(name, func(t *testing.T) {
			r := withVars(t, enabled+"data: {a: "+test.data+"}", false).WithVariables(long, false)
			_, err := r.For(clustersWithVars["paris"])
			if said := fmt.Sprint(err); (err == nil) != (test.error == "") || !strings.Contains(said, test.error) || len(said) > 10_000 {
				t.Errorf("%.300s, want %q", said, test.error)
			}
		})
	}
}
