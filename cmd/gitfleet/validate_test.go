package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What a person is told of each example: of the broken ones what it takes to
// mend them, of the others what is there in vain.
func TestValidateExamples(t *testing.T) {
	golden, err := filepath.Abs("testdata/validate")
	if err != nil {
		t.Fatal(err)
	}
	checkout(t)
	for _, example := range examples(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, "validate", example)
			file := filepath.Join(golden, filepath.Base(example)+".txt")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the answer changed; got:\n%s\nwant:\n%s", got.Bytes(), want)
			}
		})
	}
}

// The same repository gives the same answer, byte for byte, in every form.
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
