package arch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// A graph maps each package outside the standard library to the packages that it imports, without
// those that only test files import.
type graph map[string][]string

// importGraph asks the go command for the import graph. It includes packages that do not build or
// cannot be found.
func importGraph(dir string) (graph, error) {
	command := exec.Command("go", "list", "-e", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w\n%s", dir, err, &stderr)
	}
	g := graph{}
	for line := range strings.Lines(string(out)) {
		if paths := strings.Fields(line); len(paths) > 0 {
			g[paths[0]] = paths[1:]
		}
	}
	return g, nil
}

// standard reports whether an import path is in the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
