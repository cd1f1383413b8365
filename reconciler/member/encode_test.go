package member

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
