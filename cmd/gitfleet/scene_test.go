package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// Each scene is a directory of files, and commands that are run in it. Its
// answer is what they print: what goes to stderr is marked, and an exit code
// other than zero is told.
func TestScenes(t *testing.T) {
	scenes, err := filepath.Glob("testdata/scenes/*.txtar")
	if err != nil || len(scenes) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	for _, file := range scenes {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			file, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, file)
		})
	}
}

func play(t *testing.T, file string) {
	scene, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var want []byte
	files := scene.Files[:0]
	for _, f := range scene.Files {
		if f.Name == "answer" {
			want = f.Data
			continue
		}
		files = append(files, f)
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	for line := range strings.Lines(string(scene.Comment)) {
		if command, ok := strings.CutPrefix(line, "gitfleet "); ok {
			fmt.Fprintf(&got, "$ %s", line)
			transcribe(&got, strings.Fields(command)...)
		}
	}
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	if !*update {
		t.Errorf("the answer changed; got:\n%s\nwant:\n%s", got.Bytes(), want)
		return
	}
	scene.Files = append(files, txtar.File{Name: "answer", Data: got.Bytes()})
	if err := os.WriteFile(file, txtar.Format(scene), 0o644); err != nil {
		t.Fatal(err)
	}
}

// transcribe runs a command and writes down what it does.
func transcribe(w *bytes.Buffer, args ...string) {
	var out, errOut bytes.Buffer
	code := run(args, &out, &errOut)
	w.Write(out.Bytes())
	for line := range strings.Lines(errOut.String()) {
		w.WriteString("! " + line)
	}
	if code != 0 {
		fmt.Fprintf(w, "exit code %d\n", code)
	}
}
