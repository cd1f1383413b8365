package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/golden"
)

// checkout makes the directory with the examples a repository and changes to it, so that the
// examples have the same names as in the documentation.
func checkout(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	if _, err := githttp.Git(dir, "init", "-q"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
}

// examples returns the directories of examples, as they are called in a checkout.
func examples(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, "examples/"+e.Name())
		}
	}
	return all
}

// given returns the options for the other files of an example: the observed fleet, and an
// earlier plan.
func given(example string) []string {
	ignored, _ := os.ReadFile(example + "/" + tree.IgnoreFile)
	var args []string
	for _, g := range []struct{ option, file string }{{"--clusters", "clusters.yaml"}, {"--current", "before.json"}} {
		if strings.Contains(string(ignored), g.file) {
			args = append(args, g.option, example+"/"+g.file)
		}
	}
	return args
}

// The output of plan and explain for every example is compared with the recorded one.
func TestEveryExampleIsPlannedAndExplained(t *testing.T) {
	book := golden.Open(t, "testdata/examples.txt")
	checkout(t)
	for _, example := range examples(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			var got bytes.Buffer
			say := func(args ...string) {
				fmt.Fprintf(&got, "$ gitfleet %s\n", strings.Join(args, " "))
				transcribe(&got, args...)
			}
			options := given(example)
			say(append([]string{"plan", example}, options...)...)
			for _, p := range planned(t, example, options).Placements {
				say(append([]string{"explain", p.Key(), "--path", example}, options...)...)
			}
			say(append([]string{"plan", example, "-o", "json"}, options...)...)
			book.Compare(t, filepath.Base(example), got.String())
		})
	}
}

// planned returns the plan of an example.
func planned(t *testing.T, example string, options []string) forecast.Document {
	t.Helper()
	var out, errOut bytes.Buffer
	run(append([]string{"plan", example, "-o", "json"}, options...), &out, &errOut)
	var d forecast.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errOut)
	}
	return d
}

// A plan that is compared with itself changes nothing, and has the same content.
func TestAPlanFedBackChangesNothing(t *testing.T) {
	checkout(t)
	for _, example := range examples(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			args := append([]string{"plan", example, "-o", "json"}, given(example)...)
			var first, second, errOut bytes.Buffer
			if code := run(args, &first, &errOut); code == exit.Failed {
				t.Skip("the example does not load, as it should")
			}
			if err := os.WriteFile("fed-back.json", first.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			if code := run(append(args, "--current", "fed-back.json"), &second, &errOut); code != exit.OK {
				t.Errorf("exit code %d\n%s", code, &errOut)
			}
			var documents [2]forecast.Document
			for i, text := range []*bytes.Buffer{&first, &second} {
				if err := json.Unmarshal(text.Bytes(), &documents[i]); err != nil {
					t.Fatal(err)
				}
				documents[i].Deletions, documents[i].Changes = nil, nil // present only if there is something to compare with
			}
			if !reflect.DeepEqual(documents[0], documents[1]) {
				t.Errorf("first\n%s\nthen\n%s", &first, &second)
			}
		})
	}
}

// The examples of placing load without problems.
func TestExamplesOfPlacingLoadWithoutProblems(t *testing.T) {
	checkout(t)
	for _, example := range examples(t) {
		if !strings.HasPrefix(filepath.Base(example), "placing-") {
			continue
		}
		s, err := offline.ReadDir(example, hub.Options{})
		if err != nil {
			t.Errorf("%s: %v", example, err)
		} else if len(s.Warnings) > 0 {
			t.Errorf("%s: %v", example, s.Warnings.Err())
		}
	}
}
