package arch

import (
	"go/ast"
	"slices"
	"strings"
)

const prometheus = "github.com/prometheus/client_golang/prometheus"

// registries are the names in Prometheus' package for what metrics are registered with, and global
// those for the registry that the whole process shares.
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
				report(f.path, t.line(at), "prometheus.%s uses the registry of the whole process: register with the one that the daemon creates", name)
			case slices.Contains(registries, name) && f.pkg != "cmd/gitfleet/daemon" && f.pkg != "reconciler/server":
				report(f.path, t.line(at), "%s may not use prometheus.%s: export a struct of metrics, and let the daemon register them", f.pkg, name)
			}
		})
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				registrations(t, f, fn, report)
			}
		}
	}
}

// registrations reports the metrics that an init function registers.
func registrations(t *tree, f *file, fn *ast.FuncDecl, report report) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "MustRegister" || s.Sel.Name == "Register") {
			report(f.path, t.line(s), "init may not register metrics: the daemon registers them, with the registry that it creates")
		}
		return true
	})
}

// processStarters are the functions, besides those of os/exec, that start another program.
var processStarters = map[string][]string{
	"os":                    {"StartProcess"},
	"syscall":               {"Exec", "ForkExec", "StartProcess"},
	"golang.org/x/sys/unix": {"Exec"},
}

// programs checks all packages of this module that are linked into the binary.
func programs(t *tree, report report) {
	linked := t.graph.closure(t.module+"/cmd/gitfleet", t.module)
	for _, f := range t.files {
		if !f.main || f.test || !linked[t.module+"/"+f.pkg] {
			continue
		}
		for _, i := range f.imports {
			if i.path == "os/exec" {
				report(f.path, i.line, "%s may not import os/exec: the binary starts no other program", f.pkg)
			}
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if slices.Contains(processStarters[importPath], name) {
				report(f.path, t.line(at), "%s may not use %s.%s: the binary starts no other program", f.pkg, importPath, name)
			}
		})
	}
}

// printers write to the standard output or the standard error beside the writer of commands, which
// sanitises what comes from members, repositories and forges.
var printers = map[string][]string{
	"os":  {"Stdout", "Stderr"},
	"fmt": {"Print", "Printf", "Println"},
}

// standardOutput allows only the main package to name the standard output and the standard error.
func standardOutput(t *tree, report report) {
	const main = "cmd/gitfleet"
	linked := t.graph.closure(t.module+"/"+main, t.module)
	for _, f := range t.files {
		if !f.main || f.test || f.pkg == main || !linked[t.module+"/"+f.pkg] {
			continue
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if slices.Contains(printers[importPath], name) {
				report(f.path, t.line(at), "%s may not use %s.%s: commands write to cmd.OutOrStdout() and cmd.ErrOrStderr(), which are sanitised", f.pkg, importPath, name)
			}
		})
	}
}

// closure returns a package and the packages of a module that it imports, directly or not.
func (g graph) closure(from, module string) map[string]bool {
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
