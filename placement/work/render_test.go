package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

const app = `
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec: {replicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: app}
data: {k: v}
`

// patching returns an override of the Deployment web that sets the replicas on
// the clusters with the labels; no labels mean all.
func patching(name string, labels map[string]string, value string) *api.ResourceOverride {
	o := &api.ResourceOverride{}
	o.Namespace, o.Name = "app", name
	o.Spec.ResourceSelectors = []api.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}
	o.Spec.Policy = &api.OverridePolicy{OverrideRules: []api.OverrideRule{{
		ClusterSelector: &api.ClusterSelector{ClusterSelectorTerms: []api.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}},
		}},
		JSONPatchOverrides: []api.JSONPatchOverride{{Operator: api.JSONPatchAdd, Path: "/spec/replicas", Value: json.RawMessage(value)}},
	}}}
	return o
}

func named(name string, labels ...string) placement.Cluster {
	return clusters(name + " " + strings.Join(labels, " "))[0]
}

func renderer(t fataler, ros ...*api.ResourceOverride) *Renderer {
	t.Helper()
	return NewRenderer(api.PlacementKey{Name: "crp"}, objects(t, app), nil, ros, scopes)
}

func must(t fataler, r *Renderer, c placement.Cluster) Rendered {
	t.Helper()
	out, err := r.For(c)
	if err != nil {
		t.Fatal(err)
	}
	return *out
}

// A cluster to which no override applies needs no extra memory and shares everything.
func TestUnconcernedClustersShareEverything(t *testing.T) {
	r := renderer(t, patching("ro", map[string]string{"env": "prod"}, "3"))
	a, b := must(t, r, named("a", "env=dev")), must(t, r, named("b"))
	if &a.Manifests[0] != &b.Manifests[0] || a.Hash != b.Hash {
		t.Error("two clusters of equal content do not share it")
	}
	c := named("c", "env=dev")
	if n := testing.AllocsPerRun(100, func() { must(t, r, c) }); n > 0 {
		t.Errorf("asking for a cluster that nothing concerns allocates %v times", n)
	}
}

// An override copies only the objects that it changes. Clusters with the same change share the
// copy.
func TestOnlyWhatAnOverrideChangesIsCopied(t *testing.T) {
	r := renderer(t, patching("ro", map[string]string{"env": "prod"}, "3"))
	base := must(t, r, named("a"))
	one, two := must(t, r, named("b", "env=prod")), must(t, r, named("c", "env=prod", "x=y"))
	for i := range base.Manifests {
		changed := base.Manifests[i].ID.Kind == "Deployment"
		if (base.Manifests[i] != one.Manifests[i]) != changed {
			t.Errorf("%s: copied is %v, want %v", base.Manifests[i].ID, !changed, changed)
		}
	}
	if &one.Manifests[0] != &two.Manifests[0] || one.Hash != two.Hash || one.Hash == base.Hash {
		t.Errorf("hashes %s, %s and %s: want the last two equal and shared", base.Hash, one.Hash, two.Hash)
	}
}

// A patch that does not change the object does not change the content.
func TestAnOverrideWithoutEffectMovesNothing(t *testing.T) {
	out := must(t, renderer(t, patching("ro", nil, "1")), named("a"))
	if base := must(t, renderer(t), named("a")); out.Hash != base.Hash {
		t.Errorf("hash %s, want %s", out.Hash, base.Hash)
	}
	if len(out.Overrides) != 1 {
		t.Errorf("overrides %v, want ro", out.Overrides)
	}
}

func TestHashIsOfTheContentAlone(t *testing.T) {
	hash := func(text string) string {
		return NewRenderer(api.PlacementKey{Name: "crp"}, objects(t, text), nil, nil, nil).Hash()
	}
	want := hash(app)
	documents := documents(app)
	slices.Reverse(documents)
	if got := hash(strings.Join(documents, "\n---\n")); got != want {
		t.Error("the order of the files changes the hash")
	}
	different := map[string]string{
		"content":  strings.Replace(app, "replicas: 1", "replicas: 2", 1),
		"name":     strings.Replace(app, "settings", "options", 1),
		"version":  strings.Replace(app, "apps/v1", "apps/v1beta1", 1),
		"one less": strings.Join(documents[1:], "\n---\n"),
		"nothing":  "",
	}
	seen := map[string]string{want: "as it was"}
	for name, text := range different {
		h := hash(text)
		if seen[h] != "" {
			t.Errorf("%s has the hash of %s", name, seen[h])
		}
		seen[h] = name
	}
	moved := objects(t, app)
	for _, o := range moved {
		o.Origin = api.Origin{Path: "elsewhere.yaml"}
	}
	if got := NewRenderer(api.PlacementKey{}, moved, nil, nil, nil).Hash(); got != want {
		t.Error("where an object stands changes the hash")
	}
}

func TestHashKnowsTheEnvelope(t *testing.T) {
	const wrapped = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: NAME, namespace: app}
data:
  KEY: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: app}, data: {k: v}}`
	hash := func(name, key string) string {
		text := strings.NewReplacer("NAME", name, "KEY", key).Replace(wrapped)
		return NewRenderer(api.PlacementKey{}, objects(t, text), nil, nil, nil).Hash()
	}
	if hash("one", "a") == hash("two", "a") {
		t.Error("an object that moves to another envelope keeps its hash")
	}
	if hash("one", "a") != hash("one", "b") {
		t.Error("renaming a key of an envelope moves clusters")
	}
}

// Content that cannot be rendered has a different hash, so that the rollout can assign it, and
// assign the corrected content afterwards.
func TestContentThatCannotBeMadeHasItsOwnHash(t *testing.T) {
	base := must(t, renderer(t), named("a"))
	broken, err := renderer(t, patching("ro", nil, "word")).For(named("a"))
	if _, ok := errors.AsType[*OverrideError](err); !ok {
		t.Fatalf("error %v, want an OverrideError", err)
	}
	const want = `ResourceOverrideSnapshot "ro" failed to apply on Deployment "web" in namespace "app": the value for add /spec/replicas is not valid JSON; quote text`
	if err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
	if broken.Hash == "" || broken.Hash == base.Hash || broken.Manifests != nil {
		t.Errorf("rendered %+v: want a hash of its own and no manifests", broken)
	}
	again, _ := renderer(t, patching("ro", nil, "word")).For(named("b"))
	if again.Hash != broken.Hash {
		t.Error("the same error has another hash on another cluster")
	}
	mended := must(t, renderer(t, patching("ro", nil, `"word"`)), named("a"))
	if mended.Hash == broken.Hash {
		t.Error("the mended content has the hash of the broken one")
	}
}

// All problems of the envelopes are one error with one hash.
func TestEnvelopeErrorsAreCollected(t *testing.T) {
	const broken = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: e, namespace: app}
data: {a: 1, b: {kind: X}}`
	r := NewRenderer(api.PlacementKey{Name: "crp"}, objects(t, app+"---"+broken), nil, nil, nil)
	out, err := r.For(named("a"))
	e, ok := errors.AsType[*EnvelopeError](err)
	if !ok || len(e.Problems) != 2 || !errors.Is(err, e.Problems[1]) {
		t.Fatalf("error %v, want an EnvelopeError with two problems", err)
	}
	if out.Hash != r.Hash() || out.Hash == must(t, renderer(t), named("a")).Hash {
		t.Errorf("hash %s, want that of what cannot be made, %s", out.Hash, r.Hash())
	}
}

func TestAnObjectIsNamedWithItsEnvelope(t *testing.T) {
	id := api.EnvelopeIdentifier{Name: "e", Namespace: "app", Type: api.ResourceEnvelopeType}
	m := &Manifest{Object: objects(t, app)[1], Envelope: &id}
	got := m.Identifier()
	if got.Kind != "Deployment" || got.Version != "v1" || got.Envelope == nil || *got.Envelope != id {
		t.Errorf("identifier %+v", got)
	}
}

func TestASelectorNobodyUnderstandsFailsEveryCluster(t *testing.T) {
	o := patching("ro", nil, "3")
	o.Spec.Policy.OverrideRules[0].ClusterSelector.ClusterSelectorTerms[0].LabelSelector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like", Values: []string{"p"}}},
	}
	_, err := renderer(t, o).For(named("a"))
	if err == nil || !strings.Contains(err.Error(), "read the cluster selector") {
		t.Errorf("error %v, want one that names the cluster selector", err)
	}
}

func TestOverridesThatMatchNothingAreNamed(t *testing.T) {
	bound := func(name, to string, labels map[string]string) *api.ResourceOverride {
		o := patching(name, labels, "2")
		if to != "" {
			o.Spec.Placement = &api.PlacementRef{Name: to}
		}
		return o
	}
	stray := bound("stray", "", nil)
	stray.Spec.ResourceSelectors[0].Name = "wob"
	cro := &api.ClusterResourceOverride{}
	cro.Name = "nowhere"
	ros := []*api.ResourceOverride{
		bound("used", "", nil), stray, bound("idle", "crp", map[string]string{"env": "prod"}), bound("busy", "crp", nil), bound("of another", "other", nil),
	}
	r := renderer(t, ros...)
	got := Unused([]*api.ClusterResourceOverride{cro}, ros, []*Renderer{r})
	want := []api.NamespacedName{{Name: "nowhere"}, {Namespace: "app", Name: "stray"}}
	if !slices.Equal(got, want) {
		t.Errorf("unused: %v, want %v", got, want)
	}
	idle := []api.NamespacedName{{Namespace: "app", Name: "idle"}}
	for _, test := range []struct {
		clusters []placement.Cluster
		want     []api.NamespacedName
	}{
		{nil, nil},
		{[]placement.Cluster{named("a"), named("b", "env=dev")}, idle},
		{[]placement.Cluster{named("a"), named("b", "env=prod")}, nil},
	} {
		if got := r.Idle(slices.Values(test.clusters)); !slices.Equal(got, test.want) {
			t.Errorf("idle on %v: %v, want %v", test.clusters, got, test.want)
		}
	}
}

// A renderer with cached content gives the same results as a new one. The order of overrides
// and objects does not matter.
func TestWhatIsRememberedIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ros []*api.ResourceOverride
		for i := range rapid.IntRange(0, 4).Draw(t, "overrides") {
			labels := map[string]string{}
			for _, k := range []string{"env", "region"} {
				if v := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, k); v != "" {
					labels[k] = v
				}
			}
			value := rapid.SampledFrom([]string{"1", "2", `"${MEMBER-CLUSTER-NAME}"`, `"${MEMBER-CLUSTER-LABEL-KEY-region}"`, "broken"}).Draw(t, "value")
			o := patching(fmt.Sprint("ro-", i), labels, value)
			if rapid.IntRange(0, 5).Draw(t, "delete") == 0 {
				o.Spec.Policy.OverrideRules[0].OverrideType = api.DeleteOverrideType
			}
			ros = append(ros, o)
		}
		selected := objects(t, app)
		old := NewRenderer(api.PlacementKey{Name: "crp"}, selected, nil, ros, scopes)
		for range rapid.IntRange(1, 12).Draw(t, "questions") {
			c := placement.Cluster{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"), Labels: map[string]string{}}
			for _, k := range []string{"env", "region"} {
				if v := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "cluster "+k); v != "" {
					c.Labels[k] = v
				}
			}
			fresh := NewRenderer(api.PlacementKey{Name: "crp"},
				rapid.Permutation(slices.Clone(selected)).Draw(t, "objects"), nil,
				rapid.Permutation(slices.Clone(ros)).Draw(t, "order"), scopes)
			got, err := old.For(c)
			want, wantErr := fresh.For(c)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || got.Hash != want.Hash || !slices.Equal(got.Overrides, want.Overrides) {
				t.Fatalf("%+v: %s %v %v, want %s %v %v", c, got.Hash, got.Overrides, err, want.Hash, want.Overrides, wantErr)
			}
			if err == nil && hashOf(got.Manifests, got.Refused) != got.Hash {
				t.Fatalf("the hash is not of the manifests")
			}
		}
	})
}
