package member

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

var web = api.PlacementKey{Name: "web"}

func manifestOf(o map[string]any) *work.Manifest {
	u := &unstructured.Unstructured{Object: o}
	return &work.Manifest{Object: &api.Object{ID: api.IDOf(u), Object: u, Origin: api.Origin{Path: "apps/all.yaml", Line: 3}}}
}

// encoded returns the object that is sent for a manifest.
func encoded(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, e *Encoder, m *work.Manifest, commit string) *unstructured.Unstructured {
	t.Helper()
	raw, err := e.encode(m, web, commit)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &out.Object); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return out
}

// Objects on a member have annotations with their fleet and origin. Existing annotations of the
// manifest are kept, and the manifest is not changed.
func TestEncoderMarks(t *testing.T) {
	m := manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "one", "namespace": "app",
			"labels":      map[string]any{"app": "web", api.ManagedByLabel: "somebody"},
			"annotations": map[string]any{"note": "x", api.CommitAnnotation: "theirs"},
		},
		"data": map[string]any{"key": "value"},
	})
	before := m.Object.Object.DeepCopy()
	got := encoded(t, NewEncoder("prod", "https://git.example/fleet"), m, "c1")
	want := before.DeepCopy()
	want.SetLabels(map[string]string{"app": "web", api.ManagedByLabel: "prod"})
	want.SetAnnotations(map[string]string{
		"note": "x", api.PlacementAnnotation: "crp/web", api.SourceAnnotation: "https://git.example/fleet",
		api.CommitAnnotation: "c1", api.PathAnnotation: "apps/all.yaml",
	})
	if g, w := text(t, got), text(t, want); g != w {
		t.Errorf("sent:\n%s\nwant:\n%s", g, w)
	}
	if text(t, m.Object.Object) != text(t, before) {
		t.Error("the manifest was changed")
	}
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	raw, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The commit is inserted only in its annotation, even if the content contains the placeholder.
func TestEncoderPutsTheCommitInOnePlace(t *testing.T) {
	look := map[string]any{api.CommitAnnotation: "@"}
	tests := map[string]map[string]any{
		"a field that sorts before metadata": {"config": look},
		"a field that sorts after it":        {"spec": look},
		"both, and deeper":                   {"a": map[string]any{"list": []any{look, look}}, "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": look}}}},
		"several marks":                      {"a": map[string]any{api.CommitAnnotation: "@@"}, "b": map[string]any{api.CommitAnnotation: "@"}, "c": map[string]any{api.CommitAnnotation: "@@@"}},
		"as text":                            {"a": `"` + api.CommitAnnotation + `":"@"`, "z": `{"` + api.CommitAnnotation + `":"@"}`},
		"as a key":                           {"a": map[string]any{`"` + api.CommitAnnotation + `":"@"`: "x", `"` + api.CommitAnnotation: "@"}},
		"in an annotation of its own":        {"metadata": map[string]any{"name": "x", "annotations": map[string]any{api.CommitAnnotation: "@", "a": "@"}}},
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			o := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"}}
			for k, v := range content {
				o[k] = v
			}
			m := manifestOf(o)
			got := encoded(t, NewEncoder("prod", "url"), m, "0123abcd")
			if c := got.GetAnnotations()[api.CommitAnnotation]; c != "0123abcd" {
				t.Errorf("the commit annotation is %q", c)
			}
			got.SetAnnotations(m.Object.Object.GetAnnotations())
			got.SetLabels(nil)
			if g, w := text(t, got), text(t, m.Object.Object); g != w {
				t.Errorf("content became\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// For any content, the object that is sent is the manifest with our annotations.
func TestEncoderKeepsAnyContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{api.CommitAnnotation, "@", "@@", `"@"`, `":"@"`, `\`, `"`, "a", "", "metadata", "annotations", "é\u2028<&>"})
		m := manifestOf(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"},
			"config": anything(word, 3).Draw(t, "config"), "spec": anything(word, 3).Draw(t, "spec"),
		})
		got := encoded(t, NewEncoder("prod", "url"), m, "c1")
		for _, field := range []string{"config", "spec"} {
			g, _ := json.Marshal(got.Object[field])
			w, _ := json.Marshal(m.Object.Object.Object[field])
			if !bytes.Equal(g, w) {
				t.Fatalf("%s became %s, was %s", field, g, w)
			}
		}
		if got.GetAnnotations()[api.CommitAnnotation] != "c1" {
			t.Fatalf("annotations: %v", got.GetAnnotations())
		}
	})
}

// anything draws a JSON value whose strings and keys are drawn from word.
func anything(word *rapid.Generator[string], depth int) *rapid.Generator[any] {
	leaf := rapid.Map(word, func(s string) any { return s })
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(
		leaf,
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anything(word, depth-1) }), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(word, rapid.Deferred(func() *rapid.Generator[any] { return anything(word, depth-1) }), 0, 3), func(m map[string]any) any { return m }),
	)
}

// The stringData of a Secret is sent as data: a server never returns stringData, so that its
// ownership could not be observed.
func TestEncoderTurnsStringDataIntoData(t *testing.T) {
	got := encoded(t, NewEncoder("prod", "url"), manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "app"},
		"data": map[string]any{"a": "YQ==", "b": "eA=="}, "stringData": map[string]any{"b": "b", "c": "c"},
	}), "c1")
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	if want := (map[string]string{"a": "YQ==", "b": "Yg==", "c": "Yw=="}); len(data) != 3 || data["a"] != want["a"] || data["b"] != want["b"] || data["c"] != want["c"] {
		t.Errorf("data: %v, want %v", data, want)
	}
	if _, ok := got.Object["stringData"]; ok {
		t.Error("stringData is sent")
	}
}

// A content is encoded once, however many clusters get it and whatever its commit is.
// Placements do not share encodings.
func TestEncoderShares(t *testing.T) {
	e, m := NewEncoder("prod", "url"), manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}})
	body := func(m *work.Manifest, p api.PlacementKey) *body {
		t.Helper()
		b, err := e.body(m, p)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := body(m, web)
	if body(m, web) != first {
		t.Error("encoded twice")
	}
	if body(m, api.PlacementKey{Name: "other"}) == first {
		t.Error("two placements share a body that names only one of them")
	}
	if same := manifestOf(m.Object.Object.Object); body(same, web) == first {
		t.Error("two manifests share a body")
	}

	e.Rotate()
	if body(m, web) != first {
		t.Error("forgotten although it was used since the last turn")
	}
	e.Rotate()
	e.Rotate()
	if body(m, web) == first {
		t.Error("kept although nobody asked for it during two turns")
	}
}

// Encodings that are no longer used are dropped, so that a daemon that runs for months does not
// keep them all.
func TestEncoderForgets(t *testing.T) {
	e := NewEncoder("prod", "url")
	for range 10 {
		for range 100 {
			if _, err := e.encode(manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}}), web, "c"); err != nil {
				t.Fatal(err)
			}
		}
		e.Rotate()
	}
	if n := len(e.recent) + len(e.previous); n > 100 {
		t.Errorf("remembers %d contents of which none is used", n)
	}
}

// Agents of all clusters use one encoder concurrently; the race detector checks that.
func TestEncoderIsSharedByGoroutines(t *testing.T) {
	e := NewEncoder("prod", "url")
	var ms []*work.Manifest
	for range 20 {
		ms = append(ms, manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"k": "v"}}))
	}
	want, err := e.encode(ms[0], web, "c1")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				got, err := e.encode(ms[i%len(ms)], web, "c1")
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v: %s", err, got)
					return
				}
				for j := range got {
					got[j] = 'x' // the result belongs to the caller
				}
				if i%50 == 0 {
					e.Rotate()
				}
			}
		})
	}
	wg.Wait()
}

// If an object cannot be encoded, the error names it and contains none of its values.
func TestEncoderDoesNotTellSecrets(t *testing.T) {
	_, err := NewEncoder("prod", "url").encode(manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "app"},
		"data": map[string]any{"a": "canary-value"}, "extra": math.NaN(),
	}), web, "c1")
	if err == nil || !strings.Contains(err.Error(), "encode Secret/app/s") {
		t.Errorf("it says: %v", err)
	} else if strings.Contains(err.Error(), "canary-value") {
		t.Errorf("the Secret is in %q", err)
	}
}
