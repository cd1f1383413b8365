package arch

import (
	"go/ast"
	"maps"
	"slices"
)

// maxLines is the maximum length of a Go file. Of product code, maxFiles is the maximum number of
// files of a package, and maxMethods the maximum number of methods of a type: more are usually several
// ideas in one name.
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
	files, methods := map[string]int{}, map[[2]string]int{} // methods by package and type
	for _, f := range t.files {
		if !f.product() || f.generated {
			continue
		}
		files[f.pkg]++
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[[2]string{f.pkg, receiverName(fn.Recv.List[0].Type)}]++
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		if n := files[pkg]; n > maxFiles {
			report(pkg, 0, "%d files; split the package, at most %d are allowed", n, maxFiles)
		}
	}
	for at, n := range methods {
		if n > maxMethods {
			report(at[0], 0, "type %s has %d methods; split it, at most %d are allowed", at[1], n, maxMethods)
		}
	}
}
