package arch

import (
	"go/ast"
	"slices"
	"strings"
)

const prometheus = "github.com/prometheus/client_golang/prometheus"

// registries are the words of Prometheus for where metrics are registered, and
// global those of the one that all of a process share.
var (
	registries = []string{"Registry", "Registerer", "Gatherer", "Gatherers", "NewRegistry", "NewPedanticRegistry", "WrapRegistererWith", "WrapRegistererWithPrefix"}
	global     = []string{"Register", "MustRegister", "Unregister", "DefaultRegisterer", "DefaultGatherer"}
)

func metrics(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			switch {
			case importPath != prometheus:
			case slices.Contains(global, name):
				report(f.path, t.line(at), "prometheus.%s is of the whole process: register with the registry that the daemon makes", name)
			case slices.Contains(registries, name) && f.room != "cmd/gitfleet/daemon" && f.room != "reconciler/server":
				report(f.path, t.line(at), "%s may not know prometheus.%s: offer a struct of metrics, and let the daemon register them", f.room, name)
			}
		})
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				registers(t, f, fn, report)
			}
		}
	}
}

// registers reports what an init function registers.
func registers(t *tree, f *file, fn *ast.FuncDecl, report report) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "MustRegister" || s.Sel.Name == "Register") {
			report(f.path, t.line(s), "init may not register metrics: the daemon does, where the registry is made")
		}
		return true
	})
}

// starters are what starts another program, beside the package os/exec.
var starters = map[string][]string{
	"os":                    {"StartProcess"},
	"syscall":               {"Exec", "ForkExec", "StartProcess"},
	"golang.org/x/sys/unix": {"Exec"},
}

// programs looks at all that the binary is made of in this module, whatever
// room it is in.
func programs(t *tree, report report) {
	reached := t.graph.reached(t.module+"/cmd/gitfleet", t.module)
	for _, f := range t.files {
		if !f.main || f.test || !reached[t.module+"/"+f.room] {
			continue
		}
		for _, i := range f.imports {
			if i.path == "os/exec" {
				report(f.path, i.line, "%s may not import os/exec: it is part of the binary, which starts no other program", f.room)
			}
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if slices.Contains(starters[importPath], name) {
				report(f.path, t.line(at), "%s may not use %s.%s: it is part of the binary, which starts no other program", f.room, importPath, name)
			}
		})
	}
}

// reached returns the packages of a module that a package is made of.
func (g graph) reached(from, module string) map[string]bool {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]] {
			if !seen[next] && strings.HasPrefix(next, module+"/") {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}
