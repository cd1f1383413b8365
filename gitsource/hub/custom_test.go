package hub

import (
	"fmt"
	"strings"
	"testing"
)

// gadgets returns the definition of a kind that has one field.
func gadgets(field string) string {
	return strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Gadget, plural: gadgets}
  versions:
  - {name: v1, schema: {openAPIV3Schema: {type: object, properties: {FIELD: {type: integer}}}}}
`, "FIELD", field)
}

// A custom object is compared with its definition once, and again when the definition changes.
func TestCustomObjectsAreComparedOncePerDefinition(t *testing.T) {
	gadget := "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: one}\nsize: 1\n"
	tree := func(field string) *memoryTree {
		return newMemoryTree(map[string]string{"crd.yaml": gadgets(field), "one.yaml": gadget, "two.yaml": strings.ReplaceAll(gadget, "one", "two")})
	}
	l := NewLoader(Options{})
	warningsOf := func(tree *memoryTree) (warnings, reads int) {
		s, err := l.Load(Commit{}, tree)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Warnings), tree.reads
	}
	long := tree("length")
	if warnings, _ := warningsOf(tree("size")); warnings != 0 {
		t.Errorf("of what fits there are %d warnings", warnings)
	}
	warnings, first := warningsOf(long)
	if warnings != 2 {
		t.Errorf("of what does not fit there are %d warnings", warnings)
	}
	warnings, again := warningsOf(long)
	if warnings != 2 || again != first {
		t.Errorf("the second time there are %d warnings, and %d more files were read", warnings, again-first)
	}
	if warnings, _ := warningsOf(tree("size")); warnings != 0 {
		t.Errorf("at last there are %d warnings", warnings)
	}
}

// A file with many custom objects that do not match their definition is read again only once,
// to find the lines.
func TestMismatchesReadTheirFileOnce(t *testing.T) {
	reads := func(count int) int {
		var documents, list strings.Builder
		list.WriteString("apiVersion: v1\nkind: List\nitems:\n")
		for i := range count {
			fmt.Fprintf(&documents, "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a%d}\nsise: 1\n", i)
			fmt.Fprintf(&list, "- {apiVersion: example.com/v1, kind: Gadget, metadata: {name: b%d}, sise: 1}\n", i)
		}
		tree := newMemoryTree(map[string]string{"crd.yaml": gadgets("size"), "documents.yaml": documents.String(), "list.yaml": list.String()})
		s, err := load(Commit{}, tree, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Warnings) != 2*count {
			t.Errorf("of %d objects there are %d warnings", 2*count, len(s.Warnings))
		}
		for i, w := range s.Warnings[count:] {
			if w.Path != "list.yaml" || w.Line != 4+i || w.Field != fmt.Sprintf("items[%d].sise", i) {
				t.Errorf("item %d is reported at %s, %s", i, w.Origin, w.Field)
			}
		}
		return tree.reads
	}
	if few, many := reads(2), reads(50); few != many {
		t.Errorf("%d reads for a few, %d for many", few, many)
	}
}
