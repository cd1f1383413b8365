package work

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// overlayOf returns a ClusterOverlay with one build for each directory, whose objects are ConfigMaps of namespace web.
func overlayOf(path string, builds map[string][]string) *api.Object {
	o := &api.Object{ID: api.ID{Group: api.OverlayGroup, Kind: "ClusterOverlay", Name: "shop"}, Content: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gitfleet.dev/v1alpha1", "kind": "ClusterOverlay", "metadata": map[string]any{"name": "shop"},
	}}, Hash: "shop"}
	o.Overlay = &api.BuiltOverlay{Spec: api.OverlaySpec{Path: path, WhenMissing: api.WhenMissingFail}, At: api.Origin{Path: "shop.yaml", Line: 5}, Builds: map[string]*api.OverlayBuild{}}
	for dir, names := range builds {
		b := &api.OverlayBuild{File: dir + "/kustomization.yaml", Hash: dir}
		for _, name := range names {
			if text, fails := strings.CutPrefix(name, "error: "); fails {
				b.Err = text
				continue
			}
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": name, "namespace": "web"}, "data": map[string]any{"from": dir}}}
			hash, _ := hashObject(u, nil)
			b.Objects = append(b.Objects, &api.Object{ID: api.IDOf(u), Content: u, Hash: hash, Origin: api.Origin{Path: dir + "/a.yaml", Line: 1, Kustomization: b.File}})
		}
		o.Overlay.Builds[dir] = b
	}
	return o
}

func inEnv(name, env string) placement.Cluster {
	return placement.Cluster{Name: name, Labels: map[string]string{"env": env}}
}

// A cluster gets what the overlay has for it, and its hash changes with that alone.
func TestOverlays(t *testing.T) {
	builds := map[string][]string{"envs/dev": {"a", "b"}, "envs/prod": {"a"}, "envs/bad": {"error: bad/kustomization.yaml:1: broken"}}
	r := NewRenderer(api.PlacementKey{Name: "shop"}, []*api.Object{overlayOf("envs/${cluster.labels.env}", builds)}, nil, nil, nil)
	for name, test := range map[string]struct {
		cluster placement.Cluster
		want    string
	}{
		"dev":      {inEnv("one", "dev"), "a from envs/dev, b from envs/dev"},
		"prod":     {inEnv("two", "prod"), "a from envs/prod"},
		"broken":   {inEnv("three", "bad"), "error: shop.yaml:5: ClusterOverlay.gitfleet.dev/shop: bad/kustomization.yaml:1: broken"},
		"missing":  {inEnv("four", "qa"), "error: shop.yaml:5: ClusterOverlay.gitfleet.dev/shop: for cluster four the commit has no directory envs/qa; add it, or write whenMissing: Ignore if the cluster is to get nothing"},
		"no label": {placement.Cluster{Name: "five"}, "error: shop.yaml:5: ClusterOverlay.gitfleet.dev/shop: the cluster has no label env; add it to its MemberCluster, or write a default such as ${cluster.labels.env:-TEXT}"},
	} {
		rendered, err := r.For(test.cluster)
		var texts []string
		for _, m := range rendered.Manifests {
			from, _, _ := unstructured.NestedString(m.Object.Content.Object, "data", "from")
			texts = append(texts, m.ID.Name+" from "+from)
			if m.Envelope == nil || *m.Envelope != (api.EnvelopeIdentifier{Name: "shop", Type: api.ClusterOverlayType}) {
				t.Errorf("%s: the envelope of %s is %v", name, m.ID, m.Envelope)
			}
		}
		got := strings.Join(texts, ", ")
		if err != nil {
			if _, is := errors.AsType[*EnvelopeError](err); !is {
				t.Errorf("%s: %T", name, err)
			}
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	dev, _ := r.For(inEnv("one", "dev"))
	prod, _ := r.For(inEnv("two", "prod"))
	bad, _ := r.For(inEnv("three", "bad"))
	if dev.Hash == prod.Hash || bad.Hash == "" || bad.Hash == prod.Hash {
		t.Error("the hashes of different contents are equal")
	}
	if same, _ := r.For(inEnv("six", "prod")); same.Hash != prod.Hash {
		t.Error("the hash of one overlay differs between clusters")
	}
	if got := r.Labels(inEnv("one", "dev")); got != "env=dev" {
		t.Errorf("labels %s", got)
	}
	if past, _ := r.For(WithLabels(inEnv("one", "prod"), placement.Revision{Labels: "env=dev"})); past.Hash != dev.Hash {
		t.Error("the labels of a revision do not lead to its content")
	}
	builds["envs/dev"] = []string{"a"}
	changed := NewRenderer(api.PlacementKey{Name: "shop"}, []*api.Object{overlayOf("envs/${cluster.labels.env}", builds)}, nil, nil, nil)
	if now, _ := changed.For(inEnv("two", "prod")); now.Hash != prod.Hash {
		t.Error("a change of one overlay changes the clusters of another one")
	}
	if now, _ := changed.For(inEnv("one", "dev")); now.Hash == dev.Hash {
		t.Error("a change of an overlay does not change its clusters")
	}
	if names := len(r.Manifests()); names != 2 {
		t.Errorf("%d objects may be placed, want 2", names)
	}
}

// An overlay may have objects in the reserved namespaces that it lists, and a Namespace in none.
func TestReservedNamespacesOfOverlays(t *testing.T) {
	object := func(kind, namespace, name string) *api.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}}
		return &api.Object{ID: api.IDOf(u), Content: u}
	}
	for name, test := range map[string]struct {
		object *api.Object
		listed []string
		placed bool
	}{
		"listed":        {object("ConfigMap", "kube-system", "a"), []string{"default", "kube-system"}, true},
		"not listed":    {object("ConfigMap", "kube-system", "a"), []string{"default"}, false},
		"the Namespace": {object("Namespace", "", "kube-system"), []string{"kube-system"}, false},
	} {
		o := overlayOf("all", map[string][]string{"all": nil})
		o.Overlay.ReservedNamespaces = test.listed
		o.Overlay.Builds["all"].Objects = []*api.Object{test.object}
		rendered, err := NewRenderer(api.PlacementKey{Name: "shop"}, []*api.Object{o}, nil, nil, nil).For(placement.Cluster{Name: "one"})
		if test.placed != (err == nil && len(rendered.Manifests) == 1) || !test.placed && err == nil {
			t.Errorf("%s: %d objects, %v", name, len(rendered.Manifests), err)
		}
	}
}

// A cluster gets the rendering of a chart that the commit has for it, whatever its labels are.
func TestCharts(t *testing.T) {
	chart := func(choices map[string]api.ChartChoice, selectors string) *Renderer {
		o := overlayOf("", map[string][]string{"small": {"a"}, "large": {"a", "b"}})
		o.ID.Kind = "ClusterHelmChart"
		o.Overlay.Chart, o.Overlay.Selectors = choices, selectors
		return NewRenderer(api.PlacementKey{Name: "shop"}, []*api.Object{o}, nil, nil, nil)
	}
	choices := map[string]api.ChartChoice{"one": {Build: "small"}, "two": {Build: "large"}, "three": {Err: "spec.values: none"}}
	r := chart(choices, "by label")
	small, _ := r.For(placement.Cluster{Name: "one"})
	large, _ := r.For(inEnv("two", "prod"))
	if len(small.Manifests) != 1 || len(large.Manifests) != 2 || small.Hash == large.Hash || small.Manifests[0].Envelope.Type != api.ClusterHelmChartType {
		t.Errorf("got %d and %d objects", len(small.Manifests), len(large.Manifests))
	}
	for name, want := range map[string]string{"three": "spec.values: none", "four": "the commit has no MemberCluster four"} {
		if _, err := r.For(placement.Cluster{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if r.Fingerprint() != chart(choices, "by label").Fingerprint() || r.Fingerprint() == chart(choices, "by name").Fingerprint() {
		t.Error("the fingerprint does not identify the content and what decides about it")
	}
}

// What decides which directories a cluster gets is part of the hash: the first of three that exists is not the same as two parts.
func TestHashTellsPathsFromParts(t *testing.T) {
	hashes := map[string]bool{}
	for _, parts := range [][]api.OverlayPart{{{Path: "a"}, {Path: "b"}}, {{Paths: []string{"a", "b"}}}, {{Paths: []string{"a", "part", "b"}}}} {
		o := overlayOf("", map[string][]string{"a": {"a"}, "b": {"b"}})
		o.Overlay.Spec.Parts = parts
		hashes[NewRenderer(api.PlacementKey{}, []*api.Object{o}, nil, nil, nil).hashOfOverlays(true)] = true
	}
	if len(hashes) != 3 {
		t.Errorf("%d hashes, want 3", len(hashes))
	}
}
