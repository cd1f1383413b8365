package hub

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/repository"
)

// No file makes the loader panic, and every object that is found satisfies the guarantees of a
// snapshot.
func FuzzParse(f *testing.F) {
	repository.EachFile(f, "testdata/*/*.txtar", func(name string, data []byte) { f.Add(filepath.Ext(name) == ".json", data) })
	limits := Limits{Depth: 20, Documents: 20, AliasExpansion: 10}.WithDefaults()
	f.Fuzz(func(t *testing.T, isJSON bool, data []byte) {
		name := "file.yaml"
		if isJSON {
			name = "file.json"
		}
		got := parseFile(name, data, limits, math.MaxInt64)
		for _, p := range got.Problems {
			if strings.Contains(p.Message, "makes the parser fail") {
				t.Fatal(p)
			}
			// The strict decoder must not find a problem that the comparison has missed.
			if strings.Contains(p.Message, "cannot be read: ") || strings.HasPrefix(p.Message, "unknown field \"") || strings.HasPrefix(p.Message, "duplicate field") {
				t.Fatal(p)
			}
			if lines := countLines(data); p.Line < 0 || p.Line > lines {
				t.Fatalf("%v: the file has %d lines", p, lines)
			}
		}
		for _, it := range got.items {
			if it.id.Kind == "" || it.id.Name == "" || it.origin.Path != name {
				t.Fatalf("item %+v", it)
			}
			if it.object != nil {
				checkObject(t, it.object)
			}
		}
		again := parseFile(name, data, limits, math.MaxInt64)
		if !reflect.DeepEqual(got.Problems, again.Problems) || len(got.items) != len(again.items) {
			t.Fatal("the second answer is another one")
		}
	})
}

// countLines counts line ends as YAML does, which knows more of them than editors do.
func countLines(data []byte) int {
	n := 1
	for _, c := range string(data) {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", c) {
			n++
		}
	}
	return n
}

// checkObject checks that an object is what package unstructured expects, and
// that its JSON is the same object.
func checkObject(t *testing.T, o *api.Object) {
	if got := api.IDOf(o.Content); got != o.ID {
		t.Fatalf("ID %v, and the object says %v", o.ID, got)
	}
	data, err := o.Content.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	copied := o.Content.DeepCopy() // DeepCopy panics on types that it does not know
	if err := copied.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if hash, err := api.HashOf(copied.Object, nil); err != nil || hash != o.Hash {
		t.Fatalf("hash %s, after a round trip %s, %v", o.Hash, hash, err)
	}
}
