package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// A package is read from the top down if each of its files uses only those below it. Files that use each other in a circle are
// understood only together, however short each of them is.
//
// A file uses another one if it names a function, type, constant or variable that the other one declares, or calls a method that
// only the other one can mean: one that is not exported, and whose name nothing else in the package has. The receiver of a method
// does not count, so that a type may have its methods in several files.

// circles reports the packages whose files use each other in a circle, with the shortest of these circles.
func circles(t *tree, report report) {
	all := filesInCircles(t)
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		files := all[pkg]
		report(pkg, 0, "%d files use each other in circles, such as %s; move declarations so that files use only those below them", len(files), files[0])
	}
}

// filesInCircles returns a shortest circle for each file that is in one, the shortest circles first, by package of product code.
func filesInCircles(t *tree) map[string][]string {
	files := map[string][]*file{}
	for _, f := range t.files {
		if f.product() && !f.generated {
			files[f.pkg] = append(files[f.pkg], f)
		}
	}
	out := map[string][]string{}
	for pkg, files := range files {
		uses, names := usesAmong(files)
		var found [][]string
		for from := range uses {
			if circle := uses.circle(from); circle != nil {
				found = append(found, circle)
			}
		}
		slices.SortFunc(found, func(a, b []string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
		})
		for _, circle := range found {
			var text []string
			for i, user := range circle[1:] {
				text = append(text, fmt.Sprintf("%s uses %s of %s", path.Base(circle[i]), names[use{circle[i], user}], path.Base(user)))
			}
			out[pkg] = append(out[pkg], strings.Join(text, ", "))
		}
	}
	return out
}

// circle returns a shortest way from a node back to itself, and nil if there is none.
func (g graph) circle(from string) []string {
	var shortest []string
	for _, next := range g[from] {
		if rest := g.chain(next, func(at string) bool { return at != from }); rest != nil && (shortest == nil || len(rest) < len(shortest)) {
			shortest = rest
		}
	}
	if shortest == nil {
		return nil
	}
	return append([]string{from}, shortest...)
}

// A use is that of one file by another one.
type use struct{ by, of string }

// usesAmong returns which files of a package use which, and one of the names for each use.
func usesAmong(files []*file) (graph, map[use]string) {
	declared, methods := declarations(files)
	names := map[use]string{}
	add := func(by *file, name string, of string) {
		if u := (use{by.path, of}); of != "" && of != by.path && (names[u] == "" || name < names[u]) {
			names[u] = name
		}
	}
	for _, f := range files {
		receivers := map[*ast.Ident]bool{}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					ast.Inspect(n.Recv, func(n ast.Node) bool {
						if name, ok := n.(*ast.Ident); ok {
							receivers[name] = true
						}
						return true
					})
				}
			case *ast.SelectorExpr:
				add(f, n.Sel.Name, methods[n.Sel.Name])
			}
			return true
		})
		for _, name := range f.syntax.Unresolved {
			if !receivers[name] && !slices.ContainsFunc(f.imports, func(i imported) bool { return i.name == name.Name }) {
				add(f, name.Name, declared[name.Name])
			}
		}
	}
	g := graph{}
	for u := range names {
		g[u.by] = append(g[u.by], u.of)
	}
	for _, of := range g {
		slices.Sort(of)
	}
	return g, names
}

// declarations returns the files that declare the names of a package, and its methods whose names are unmistakable.
func declarations(files []*file) (declared, methods map[string]string) {
	declared, methods = map[string]string{}, map[string]string{}
	fields := map[string]bool{}
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch name := d.Name.Name; {
				case d.Recv == nil:
					declared[name] = f.path
				case !d.Name.IsExported() && (methods[name] == "" || methods[name] == f.path):
					methods[name] = f.path
				default:
					fields[name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declared[spec.Name.Name] = f.path
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							declared[name.Name] = f.path
						}
					}
				}
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, field := range fieldsOf(n) {
				for _, name := range field.Names {
					fields[name.Name] = true
				}
			}
			return true
		})
	}
	maps.DeleteFunc(methods, func(name, _ string) bool { return fields[name] })
	return declared, methods
}

// fieldsOf returns the fields of a struct type, or the methods of an interface.
func fieldsOf(n ast.Node) []*ast.Field {
	switch n := n.(type) {
	case *ast.StructType:
		return n.Fields.List
	case *ast.InterfaceType:
		return n.Methods.List
	}
	return nil
}
