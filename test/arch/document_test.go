package arch

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// goNames matches names of Go declarations in backticks, such as `rollout.Plan.Follow` or `Loader.Load(commit)`, and those of files.
var goNames = regexp.MustCompile("`(?:api\\.)?([A-Za-z]\\w*(?:\\.\\w+)+)(?:`|\\()")

// The types, members, functions and files that docs/architecture.md names exist. Settings, whose names are in lower case, are not checked.
func TestDocumentNamesWhatExists(t *testing.T) {
	raw, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	known := declaredPairs(source(t))
	names := goNames.FindAllStringSubmatch(string(raw), -1)
	for _, m := range names {
		parts := strings.Split(m[1], ".")
		for i, name := range parts[1:] {
			pair := parts[i] + "." + name
			isGo := name == "go" || ast.IsExported(name) || ast.IsExported(parts[i]) && parts[i] != strings.ToUpper(parts[i])
			if isGo && !known[pair] {
				t.Errorf("docs/architecture.md: there is no %s (in %s)", pair, m[1])
			}
		}
	}
	if len(names) < 100 {
		t.Errorf("docs/architecture.md has %d names of Go declarations", len(names))
	}
}

// declaredPairs returns the declarations as PACKAGE.NAME and TYPE.MEMBER, and the names of files.
func declaredPairs(src *tree) map[string]bool {
	known := map[string]bool{"fs.FS": true}
	own, reached := methodSets(src)
	for _, sets := range []map[typeName]map[string]bool{own, reached} {
		for at, methods := range sets {
			for name := range methods {
				known[at.name+"."+name] = true
			}
		}
	}
	for _, f := range src.files {
		known[path.Base(f.path)] = true
		declare := func(name string) { known[f.syntax.Name.Name+"."+name] = true }
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					declare(n.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					declare(name.Name)
				}
			case *ast.TypeSpec:
				declare(n.Name.Name)
				for _, field := range fieldsOf(n.Type) {
					for _, name := range field.Names {
						known[n.Name.Name+"."+name.Name] = true
					}
				}
			}
			return true
		})
	}
	return known
}
