package arch

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// maxLines is the maximum length of a Go file. Of product code, maxFiles is the maximum number of
// files of a package, and maxMethods the maximum number of methods of a type: more are usually several
// ideas in one name. Those that a type has through embedded types of this repository count, too, except for the types in largeTypes.
const (
	maxLines   = 500
	maxFiles   = 25
	maxMethods = 40
)

func length(t *tree, report report) {
	for _, f := range t.files {
		if f.lines > maxLines && !f.generated {
			report(f.path, 0, "%d lines; split it, at most %d are allowed", f.lines, maxLines)
		}
	}
}

func size(t *tree, report report) {
	files := map[string]int{}
	for _, f := range t.files {
		if !f.product() || f.generated {
			continue
		}
		files[f.pkg]++
	}
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		if n := files[pkg]; n > maxFiles {
			report(pkg, 0, "%d files; split the package, at most %d are allowed", n, maxFiles)
		}
	}
	own, reached := methodSets(t)
	for at, all := range own {
		if n := len(all); n > maxMethods {
			report(at.pkg, 0, "type %s has %d methods; split it, at most %d are allowed", at.name, n, maxMethods)
		}
	}
	for at, all := range reached {
		if n, most := len(all), max(maxMethods, largeTypes[at]); n > most && n > len(own[at]) {
			report(at.pkg, 0, "type %s has %d methods with those of the types that it embeds; use a field, at most %d are allowed", at.name, n, most)
		}
	}
}

// A typeName is a type of a package of this repository.
type typeName struct{ pkg, name string }

// largeTypes reach more methods than others may. Their numbers may only get smaller.
var largeTypes = map[typeName]int{
	// Most of its methods are one line about the build target, of which it is the work in progress.
	{"gitsource/hub/build", "builder"}: 50,
	// Its parts are embedded because their exported methods are the API of a ledger.
	{"reconciler/ledger", "Ledger"}: 75,
	// It calls all parts of an agent, and embeds what these read: the cluster, the assignment and the agent's state.
	{"reconciler/member", "session"}: 65,
	// It plans a placement with staged runs, and a placement without runs is planned by what it embeds.
	{"reconciler/plan", "runPlanner"}: 65,
	// It embeds the exported methods with which other goroutines request plans.
	{"reconciler/review", "Reviewer"}: 45,
}

// methodSets returns the names of the methods of each type of product code: its own, and those of structs with those of the
// types that they embed.
func methodSets(t *tree) (own, reached map[typeName]map[string]bool) {
	own, reached = map[typeName]map[string]bool{}, map[typeName]map[string]bool{}
	embedded := map[typeName][]typeName{}
	for _, f := range t.files {
		if !f.product() || f.generated {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				at := typeName{f.pkg, receiverName(fn.Recv.List[0].Type)}
				if own[at] == nil {
					own[at] = map[string]bool{}
				}
				own[at][fn.Name.Name] = true
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					embedded[typeName{f.pkg, spec.Name.Name}] = f.embeddedIn(s, t.module)
				}
			}
			return true
		})
	}
	for at := range embedded {
		reached[at] = map[string]bool{}
		seen := map[typeName]bool{at: true}
		for queue := []typeName{at}; len(queue) > 0; queue = queue[1:] {
			maps.Copy(reached[at], own[queue[0]])
			for _, next := range embedded[queue[0]] {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return own, reached
}

// embeddedIn returns the types of this repository that a struct embeds.
func (f *file) embeddedIn(s *ast.StructType, module string) []typeName {
	var out []typeName
	for _, field := range s.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		switch typ := typ.(type) {
		case *ast.Ident:
			out = append(out, typeName{f.pkg, typ.Name})
		case *ast.SelectorExpr:
			x, ok := typ.X.(*ast.Ident)
			for _, i := range f.imports {
				if pkg, ours := strings.CutPrefix(i.path, module+"/"); ok && ours && i.name == x.Name {
					out = append(out, typeName{pkg, typ.Sel.Name})
				}
			}
		}
	}
	return out
}
