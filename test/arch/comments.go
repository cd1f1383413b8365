package arch

import (
	"go/ast"
	"slices"
)

// wellKnown are methods of well-known interfaces, which need no comment.
var wellKnown = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "Format",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"Len", "Less", "Swap", "Read", "Write", "Close", "ServeHTTP", "RoundTrip",
}

func comments(t *tree, report report) {
	first := map[string]*file{}
	hasComment := map[string]bool{}
	for _, f := range t.files {
		if f.test || f.generated {
			continue
		}
		if first[f.pkg] == nil {
			first[f.pkg] = f
		}
		hasComment[f.pkg] = hasComment[f.pkg] || f.syntax.Doc != nil
		for _, d := range f.syntax.Decls {
			f.undocumented(d, func(name string, at ast.Node) {
				report(f.path, t.line(at), "%s is exported and has no comment", name)
			})
		}
	}
	for pkg, f := range first {
		if !hasComment[pkg] {
			report(f.path, t.line(f.syntax.Name), "package %s has no comment", f.syntax.Name.Name)
		}
	}
}

// undocumented calls found with each exported name of a declaration that has no comment.
func (f *file) undocumented(d ast.Decl, found func(name string, at ast.Node)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name, exported := d.Name.Name, d.Name.IsExported()
		if d.Recv != nil {
			receiver := receiverName(d.Recv.List[0].Type)
			exported = exported && ast.IsExported(receiver) && !slices.Contains(wellKnown, name)
			name = receiver + "." + name
		}
		if exported && d.Doc == nil {
			found(name, d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			for _, name := range withoutComment(spec, d.Doc != nil) {
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

// withoutComment returns the exported names of a specification that has no comment of its own and
// is not in a group with a comment.
func withoutComment(spec ast.Spec, group bool) []*ast.Ident {
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
