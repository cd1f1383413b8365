package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linked lists the packages of the binary.
func linked(t *testing.T) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Root,Standard,Module", "./cmd/gitfleet")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every module that is compiled into the binary has a licence, and is named with its version.
func TestEveryLinkedModuleHasALicence(t *testing.T) {
	list := linked(t)
	var text bytes.Buffer
	if err := run(bytes.NewReader(list), &text); err != nil {
		t.Fatal(err)
	}
	modules := 0
	for _, m := range regexp.MustCompile(`"Path": "([^"]+)",\s+"Version": "([^"]+)"`).FindAllSubmatch(list, -1) {
		modules++
		if name := "\n" + string(m[1]) + " " + string(m[2]) + " ("; !strings.Contains(text.String(), name) {
			t.Errorf("%s is missing", name)
		}
	}
	if modules < 20 || !strings.Contains(text.String(), "\nthe standard library of Go (LICENSE)\n") {
		t.Errorf("it names %d modules, or not the standard library", modules)
	}
}

// Licences of directories below a module count, source files do not, and equal texts are written once.
// A module without a licence is named in the error.
func TestNotices(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"a/LICENSE": "MIT\r\n", "a/sub/COPYING.txt": "BSD", "a/NOTICE": "by Ada", "a/license.go": "package a",
		"b/LICENCE-MIT": "MIT", "c/NOTICE": "by Bob", "c/other/LICENSE": "unused",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func(dirs ...string) io.Reader {
		var b bytes.Buffer
		for _, dir := range dirs {
			name, _, _ := strings.Cut(dir, "/")
			if err := json.NewEncoder(&b).Encode(listed{Dir: filepath.Join(root, dir), Module: &module{Path: name, Version: "v1", Dir: filepath.Join(root, name), Main: name == "main"}}); err != nil {
				t.Fatal(err)
			}
		}
		return &b
	}
	var out strings.Builder
	if err := run(list("main", "a/sub", "a", "b"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\na v1 (LICENSE)\nb v1 (LICENCE-MIT)\n" + strings.Repeat("-", 80) + "\n\nMIT\n", "\na v1 (sub/COPYING.txt)\n", "\na v1 (NOTICE)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "package a") || strings.Count(out.String(), "MIT\n") != 1 {
		t.Errorf("it has too much:\n%s", out.String())
	}
	if err := run(list("a", "c"), io.Discard); err == nil || err.Error() != "of 2 modules these have no licence: c v1" {
		t.Errorf("a module without a licence: %v", err)
	}
}
