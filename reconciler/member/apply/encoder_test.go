package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
)

var web = api.PlacementKey{Name: "web"}

func manifestOf(o map[string]any) *work.Manifest {
	u := &unstructured.Unstructured{Object: o}
	return &work.Manifest{Object: &api.Object{ID: api.IDOf(u), Content: u, Origin: api.Origin{Path: "apps/all.yaml", Line: 3}}}
}

// encode returns the bytes to apply a manifest of a placement at a commit.
func (e *Encoder) encode(m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	return e.encodeAs(diff.Normalize(m.Object.Content), m, p, commit)
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
	if err := out.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return out
}

// Objects on a member have annotations with their fleet and origin. Existing annotations of the
// manifest are kept, and the manifest is not changed.
func TestEncoderAddsFleetAndOrigin(t *testing.T) {
	m := manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "one", "namespace": "app",
			"labels":      map[string]any{"app": "web", api.ManagedByLabel: "somebody"},
			"annotations": map[string]any{"note": "x", api.CommitAnnotation: "theirs"},
		},
		"data": map[string]any{"key": "value"},
	})
	before := m.Object.Content.DeepCopy()
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
	if text(t, m.Object.Content) != text(t, before) {
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

// Whatever content a manifest has, it is sent unchanged, except for the label with the fleet and
// the annotations with the origin.
func TestEncoderSendsAnyContentUnchanged(t *testing.T) {
	origin := map[string]string{
		api.PlacementAnnotation: "crp/web", api.SourceAnnotation: "url", api.CommitAnnotation: "c1", api.PathAnnotation: "apps/all.yaml",
	}
	rapid.Check(t, func(t *rapid.T) {
		m := manifestOf(rapid.MapOfN(jsonText(), jsonValue(3), 0, 5).Draw(t, "content"))
		o := m.Object.Content
		texts := rapid.MapOfN(jsonText(), jsonText(), 0, 3)
		o.Object["metadata"] = map[string]any{"name": "one"}
		o.SetAPIVersion("example.com/v1")
		o.SetKind("Gadget")
		o.SetLabels(texts.Draw(t, "labels"))
		o.SetAnnotations(texts.Draw(t, "annotations"))
		want := o.DeepCopy()
		labels, notes := map[string]string{api.ManagedByLabel: "prod"}, maps.Clone(origin)
		maps.Copy(labels, o.GetLabels())
		maps.Copy(notes, o.GetAnnotations())
		want.SetLabels(labels)
		want.SetAnnotations(notes)
		if got := encoded(t, NewEncoder("prod", "url"), m, "c1"); !reflect.DeepEqual(got.Object, want.Object) {
			t.Errorf("sent: %#v\nwant: %#v", got.Object, want.Object)
		}
	})
}

// The values of a Secret arrive as they were written, whether in data or in stringData, which
// takes precedence.
func TestEncoderSendsTheValuesOfASecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		binary := rapid.MapOfN(jsonText(), rapid.SliceOfN(rapid.Byte(), 0, 20), 0, 4).Draw(t, "data")
		written := rapid.MapOfN(jsonText(), jsonText(), 0, 4).Draw(t, "stringData")
		data, stringData, want := map[string]any{}, map[string]any{}, map[string]string{}
		for key, value := range binary {
			data[key], want[key] = base64.StdEncoding.EncodeToString(value), string(value)
		}
		for key, value := range written {
			stringData[key], want[key] = value, value
		}
		sent := encoded(t, NewEncoder("prod", "url"), manifestOf(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": data, "stringData": stringData,
		}), "c1")
		all, _, _ := unstructured.NestedStringMap(sent.Object, "data")
		got := map[string]string{}
		for key, value := range all {
			clear, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			got[key] = string(clear)
		}
		if !maps.Equal(got, want) {
			t.Errorf("sent: %q, want %q", got, want)
		}
	})
}

// jsonText generates strings, often ones that JSON or YAML must escape or quote.
func jsonText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "yes", "1e3", "<a href=\"b\">&", "\u2028", "\x00\t\n", "~1/~0"}))
}

// jsonValue generates values of the types that decoding JSON into an object yields.
func jsonValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		jsonText().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		// Decoding turns fractions without decimals into integers.
		rapid.Float64().Filter(func(f float64) bool { return f != math.Trunc(f) }).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	deeper := jsonValue(depth - 1)
	return rapid.OneOf(append(scalars, rapid.SliceOfN(deeper, 0, 3).AsAny(), rapid.MapOfN(jsonText(), deeper, 0, 3).AsAny())...)
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
func TestEncodeErrorsContainNoSecrets(t *testing.T) {
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

// What was encoded last is known, also when more is encoded than is kept; nothing large is kept.
func TestEncodingsAreBounded(t *testing.T) {
	var e encodings
	key := func(n int) encodingKey { return encodingKey{hash: fmt.Sprint(n), commit: "c1", placement: web} }
	raw := bytes.Repeat([]byte("x"), 50<<10)
	e.add(key(-1), bytes.Repeat([]byte("x"), 2*len(raw)))
	for n := range 100 {
		e.add(key(n), raw)
		if n >= 10 && e.of(key(n-10)) == nil {
			t.Fatalf("%d is forgotten after ten others", n-10)
		}
	}
	if kept := len(e.now) + len(e.earlier); e.of(key(-1)) != nil || e.of(key(0)) != nil || kept > 2*maxEncodings/len(raw) {
		t.Errorf("kept: %d", kept)
	}
}

// Only bytes with nothing of one cluster in them are shared, and only for the same manifest, placement, path and commit.
func TestClustersShareWhatIsSent(t *testing.T) {
	content := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "app"}, "data": map[string]any{"key": value}}
	}
	x := &Executor{Encoder: NewEncoder("prod", "url")}
	one, two := manifestOf(content("a")), manifestOf(content("b"))
	one.Hash, two.Hash = "a", "b"
	moved := *one.Object
	moved.Origin.Path = "apps/other.yaml"
	live := &unstructured.Unstructured{Object: content("live")}
	same := func(t1 Task, read Snapshot, commit string) bool {
		t.Helper()
		first, _, err := x.body(Task{Object: desired.Object{Placement: web, Manifest: one}}, Snapshot{}, "c1")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := x.body(t1, read, commit)
		if err != nil {
			t.Fatal(err)
		}
		return &got[0] == &first[0]
	}
	tests := map[string]struct {
		task   Task
		read   Snapshot
		commit string
		want   bool
	}{
		"the same":          {Task{Object: desired.Object{Placement: web, Manifest: one}}, Snapshot{}, "c1", true},
		"another commit":    {Task{Object: desired.Object{Placement: web, Manifest: one}}, Snapshot{}, "c2", false},
		"another content":   {Task{Object: desired.Object{Placement: web, Manifest: two}}, Snapshot{}, "c1", false},
		"another placement": {Task{Object: desired.Object{Placement: api.PlacementKey{Name: "shop"}, Manifest: one}}, Snapshot{}, "c1", false},
		"another path":      {Task{Object: desired.Object{Placement: web, Manifest: &work.Manifest{Object: &moved}}}, Snapshot{}, "c1", false},
		"it was read":       {Task{Object: desired.Object{Placement: web, Manifest: one}}, Snapshot{Live: live}, "c1", false},
		"it is replaced":    {Task{Object: desired.Object{Placement: web, Manifest: one}, Inputs: Inputs{Replaced: &Snapshot{Live: live}}}, Snapshot{}, "c1", false},
	}
	for name, test := range tests {
		if got := same(test.task, test.read, test.commit); got != test.want {
			t.Errorf("%s: shared: %t", name, got)
		}
	}
}
