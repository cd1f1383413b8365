package arch

import (
	"go/ast"
	"slices"
)

// obvious are methods whose promise is that of a well-known interface.
var obvious = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "Format",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"Len", "Less", "Swap", "Read", "Write", "Close", "ServeHTTP", "RoundTrip",
}

func comments(t *tree, report report) {
	first := map[string]*file{}
	told := map[string]bool{}
	for _, f := range t.files {
		if f.test || f.generated {
			continue
		}
		if first[f.room] == nil {
			first[f.room] = f
		}
		told[f.room] = told[f.room] || f.syntax.Doc != nil
		for _, d := range f.syntax.Decls {
			f.undocumented(d, func(name string, at ast.Node) {
				report(f.path, t.line(at), "%s is exported: say in a comment what it promises", name)
			})
		}
	}
	for room, f := range first {
		if !told[room] {
			report(f.path, t.line(f.syntax.Name), "package %s has no comment: say in a sentence what it is", f.syntax.Name.Name)
		}
	}
}

// undocumented calls found with each exported name of a declaration that has no
// comment.
func (f *file) undocumented(d ast.Decl, found func(name string, at ast.Node)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name, exported := d.Name.Name, d.Name.IsExported()
		if d.Recv != nil {
			receiver := receiverName(d.Recv.List[0].Type)
			exported = exported && ast.IsExported(receiver) && !slices.Contains(obvious, name)
			name = receiver + "." + name
		}
		if exported && d.Doc == nil {
			found(name, d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			for _, name := range bare(spec, d.Doc != nil) {
				found(name.Name, name)
			}
		}
	}
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// bare returns the exported names of a specification that no comment speaks of:
// neither its own, nor, for names that stand together, that of the group.
func bare(spec ast.Spec, group bool) []*ast.Ident {
	var all []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !group && s.Doc == nil && s.Comment == nil {
			all = []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if !group && s.Doc == nil && s.Comment == nil {
			all = s.Names
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(i *ast.Ident) bool { return !i.IsExported() })
}
