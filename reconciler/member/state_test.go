package member

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// stateWriters are the files that may write each map of the state that the parts of a session share.
var stateWriters = map[string][]string{
	"objects": {"record.go"}, "manifests": {"ownership.go", "record.go"},
	"Items": {"inventories.go", "ownership.go", "record.go"}, "inv": {"ownership.go"}, "owned": {"inventories.go", "record.go"},
	"braked": {"brake.go", "record.go"},
	"ended":  {"record.go"}, "fresh": {"record.go"}, "written": {"record.go"},
}

// stateOwners are the files that may replace what several parts read.
var stateOwners = map[string]string{"newOwners": "ownership.go", "inv": "ownership.go", "manifests": "ownership.go"}

// What observes, decides and acts returns outcomes, which are recorded in one place.
func TestOnlyTheRecorderWritesState(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			for _, state := range replaces(n) {
				if by, known := stateOwners[state]; known && by != f.Name() {
					t.Errorf("%s: %s is replaced by %s only: call a method there", set.Position(n.Pos()), state, by)
				}
			}
			for _, state := range writes(n) {
				if by, known := stateWriters[state]; known && !slices.Contains(by, f.Name()) {
					t.Errorf("%s: %s is written by %s only: return an outcome, or call a method there", set.Position(n.Pos()), state, strings.Join(by, " and "))
				}
			}
			return true
		})
	}
}

// replaces returns the names of the fields that a statement assigns.
func replaces(n ast.Node) (fields []string) {
	if n, ok := n.(*ast.AssignStmt); ok {
		for _, left := range n.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok {
				fields = append(fields, s.Sel.Name)
			}
		}
	}
	return fields
}

// writes returns the names of the fields whose maps, or objects, a statement or call changes.
func writes(n ast.Node) (fields []string) {
	field := func(e ast.Expr) {
		if s, ok := e.(*ast.SelectorExpr); ok {
			fields = append(fields, s.Sel.Name)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if at, ok := left.(*ast.IndexExpr); ok {
				field(at.X)
			}
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") {
			field(n.Args[0])
		}
		if fn, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Put", "Drop", "DropMissing", "put", "remove", "replace", "add", "take"}, fn.Sel.Name) {
			field(fn.X)
		}
	}
	return fields
}
