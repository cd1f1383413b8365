package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/test/golden"
)

// Each scene is a directory of files, and commands that are run in it. The result is their
// output; standard error is marked, and an exit code other than zero is shown.
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/scenes/*.txtar", play)
}

func play(t *testing.T, scene *txtar.Archive) {
	t.Chdir(t.TempDir())
	for _, f := range scene.Files {
		if f.Name == "answer" {
			continue
		}
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
	golden.Answer(t, scene, "answer", got.String())
}

// transcribe runs a command and writes its output.
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
