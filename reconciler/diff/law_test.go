package diff

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// anyValue draws JSON with few different keys and values, so that two of them have much in
// common.
func anyValue(depth int) *rapid.Generator[any] {
	scalars := rapid.OneOf(
		rapid.SampledFrom([]any{"", "a", "b", true, false, int64(0), int64(1), 1.0, 0.5, -1e30, int64(1) << 60, nil}),
		rapid.Just[any]("~/-"),
	)
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(
		scalars,
		rapid.Map(anyMap(depth), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(l []any) any { return l }),
	)
}

func anyMap(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c~/d", "0", "-", "name", "kind", "annotations"}), anyValue(depth-1), 0, 5)
}

// Applying the listed changes turns hub into member.
func TestChangesTurnHubIntoMember(t *testing.T) { rapid.Check(t, changesTurnHubIntoMember) }

func FuzzChangesTurnHubIntoMember(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(changesTurnHubIntoMember))
}

func changesTurnHubIntoMember(t *rapid.T) {
	hub := normalized(anyMap(4).Draw(t, "hub"))
	member := normalized(anyMap(4).Draw(t, "member"))
	found := changes("", side{hub, hub}, side{member, member})
	if got := carryOut(t, found, hub); !reflect.DeepEqual(got, member) {
		t.Fatalf("changes %+v turn hub into\n%v, want\n%v", found, got, member)
	}
	if (len(found) == 0) != reflect.DeepEqual(hub, member) {
		t.Fatalf("%d changes between\n%v and\n%v", len(found), hub, member)
	}
}

// carryOut applies the changes as a JSON patch. Removals come first, from the ends of lists, so
// that the other items keep their index. Nothing else refers to what is removed.
func carryOut(t *rapid.T, found []change, hub any) any {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b change) int { return removal(b) - removal(a) })
	patch := []map[string]any{}
	for _, c := range found {
		patch = append(patch, map[string]any{"op": string(c.op), "path": c.path, "value": c.member.raw})
	}
	out, err := mustDecode(t, patch).Apply(mustEncode(t, hub))
	if err != nil {
		t.Fatalf("patch %v: %v", patch, err)
	}
	return decode(t, out)
}

// removal sorts changes: it is positive for a removal, and larger for a later item of a list.
func removal(c change) int {
	if c.op != remove {
		return 0
	}
	i, _ := strconv.Atoi(c.path[strings.LastIndex(c.path, "/")+1:])
	return i + 1
}

func mustDecode(t *rapid.T, patch any) jsonpatch.Patch {
	p, err := jsonpatch.DecodePatch(mustEncode(t, patch))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustEncode(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decode reads JSON as the Kubernetes libraries do: integers are int64.
func decode(t *rapid.T, data []byte) any {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(`{"kind":"A","in":` + string(data) + `}`)); err != nil {
		t.Fatal(err)
	}
	return normalized(u.Object["in"])
}

// In all modes of comparison, an object does not differ from itself, and if a differs from b
// then b differs from a.
func TestDifferingIsMutual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"kind": "A", "apiVersion": "v1", "spec": any(anyMap(3).Draw(t, label))}}
		}
		a, b := draw("a"), draw("b")
		for _, opt := range []Options{{}, {Structural: true}} {
			if got := Compare(a, a, opt); got != nil {
				t.Fatalf("%+v: differs from itself: %v", opt, got)
			}
		}
		ab, ba := Compare(a, b, Options{}), Compare(b, a, Options{})
		if (ab == nil) != (ba == nil) {
			t.Fatalf("a to b: %v, b to a: %v", ab, ba)
		}
		if ab == nil && Compare(a, b, Options{Structural: true}) != nil {
			t.Fatal("equal, but for a manifest")
		}
	})
}

// No value of a Secret is shown, wherever it is in an object.
func TestNoComparisonShowsASecret(t *testing.T) {
	const canary = "canary-7f3a"
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "apiVersion": "v1",
				rapid.SampledFrom([]string{"data", "stringData"}).Draw(t, label+" field"): planted(anyValue(3).Draw(t, label), canary)}}
		}
		hub, member := draw("hub"), draw("member")
		for _, opt := range []Options{{}, {Structural: true}} {
			for _, d := range Compare(hub, member, opt) {
				if strings.Contains(d.ValueInHub+d.ValueInMember, canary) {
					t.Fatalf("%+v shows the canary: %+v", opt, d)
				}
			}
		}
		if shown := string(mustEncode(t, Redact(member).Object)); strings.Contains(shown, canary) {
			t.Fatalf("redacted, and yet it shows the canary: %s", shown)
		}
	})
}

// planted puts the canary into every string of a value.
func planted(v any, canary string) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = planted(v[key], canary)
		}
	case []any:
		for i := range v {
			v[i] = planted(v[i], canary)
		}
	case string:
		return v + canary
	}
	return v
}
