package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/gitfleet/gitfleet/test/golden"
)

// The output of validate for each example: for invalid ones how to fix them, and for others
// which parts have no effect.
func TestValidateExamples(t *testing.T) {
	book := golden.Open(t, "testdata/validate.txt")
	checkout(t)
	for _, example := range examples(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, "validate", example)
			book.Compare(t, filepath.Base(example), got.String())
		})
	}
}

// The output for the same repository is always the same, in every format.
func TestValidateIsDeterministic(t *testing.T) {
	checkout(t)
	for _, args := range [][]string{
		{"validate", "examples/broken-fields"}, {"validate", "-o", "json", "examples/placing-conflict"},
		{"validate", "-o", "sarif", "examples/broken-duplicates"}, {"render", "examples/quickstart"},
	} {
		var first bytes.Buffer
		transcribe(&first, args...)
		for range 5 {
			var again bytes.Buffer
			transcribe(&again, args...)
			if !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Fatalf("%v: first\n%s\nthen\n%s", args, first.Bytes(), again.Bytes())
			}
		}
	}
}
