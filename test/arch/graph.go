package arch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// A graph says of each package what it imports, test files left out. Packages
// of the standard library are left out too.
type graph map[string][]string

// list asks the go command for the import graph. Packages that do not build,
// or are not there, are in it all the same: what they import is what counts.
func list(dir string) (graph, error) {
	command := exec.Command("go", "list", "-e", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w\n%s", dir, err, &problems)
	}
	g := graph{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 0 {
			g[words[0]] = words[1:]
		}
	}
	return g, nil
}

// standard reports whether an import path is one of the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
