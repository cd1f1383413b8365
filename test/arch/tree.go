package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A tree is what the rules check.
type tree struct {
	// entries are the names at the top level.
	entries []string
	// module is the path of the main module.
	module string
	fset   *token.FileSet
	// files are the Go files of all modules, except those in testdata.
	files []*file
	// texts are all text files, including Go files.
	texts []text
	graph graph
}

// A file is one Go file.
type file struct {
	path string // relative to the root, with slashes
	pkg  string // its directory, relative to the root; "." is the root
	// main is true if the file belongs to the main module, not to one nested in it.
	main      bool
	test      bool // it is a _test.go file
	generated bool
	lines     int
	syntax    *ast.File
	imports   []imported
}

// An imported is one import of one file.
type imported struct {
	path  string
	name  string // its name in the file
	alias bool   // the import has an explicit name
	line  int
}

// A text is a file without NUL bytes.
type text struct {
	path    string
	content []byte
}

// skipped are the entries of a working tree that are not sources.
var skipped = map[string]bool{".git": true, "build": true}

// read reads the module at dir.
func read(dir string) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t.entries = append(t.entries, e.Name())
	}
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	if t.module = modulePath(gomod); t.module == "" {
		return nil, fmt.Errorf("%s: no module line", filepath.Join(dir, "go.mod"))
	}
	if err := t.walk(dir); err != nil {
		return nil, err
	}
	t.graph, err = importGraph(dir)
	return t, err
}

func (t *tree) walk(dir string) error {
	var nested []string // roots of the modules inside this one
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if skipped[rel] {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && rel != "." {
				nested = append(nested, rel)
			}
			return nil
		}
		if !e.Type().IsRegular() || skipped[rel] {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		t.texts = append(t.texts, text{rel, content})
		if path.Ext(rel) != ".go" || within(rel, "testdata") {
			return nil
		}
		f, err := t.parse(rel, content)
		if err != nil {
			return err
		}
		f.main = true
		for _, n := range nested {
			f.main = f.main && !strings.HasPrefix(rel, n+"/")
		}
		t.files = append(t.files, f)
		return nil
	})
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func (t *tree) parse(rel string, content []byte) (*file, error) {
	syntax, err := parser.ParseFile(t.fset, rel, content, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{
		path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
		generated: generatedLine.Match(content), lines: bytes.Count(content, []byte("\n")), syntax: syntax,
	}
	for _, spec := range syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rel, err)
		}
		i := imported{path: p, name: nameOf(p), line: t.line(spec)}
		if spec.Name != nil {
			i.name, i.alias = spec.Name.Name, true
		}
		f.imports = append(f.imports, i)
	}
	return f, nil
}

func (t *tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// within reports whether a file is in or below a directory of a given name.
func within(rel, dir string) bool {
	for _, part := range strings.Split(path.Dir(rel), "/") {
		if part == dir {
			return true
		}
	}
	return false
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)
	major      = regexp.MustCompile(`^v\d+$`)
)

func modulePath(gomod []byte) string {
	if m := moduleLine.FindSubmatch(gomod); m != nil {
		return string(m[1])
	}
	return ""
}

// nameOf guesses the name of a package from its import path.
func nameOf(importPath string) string {
	base := path.Base(importPath)
	if major.MatchString(base) {
		base = path.Base(path.Dir(importPath))
	}
	return base
}

// selectors calls found with each name of an imported package that a syntax tree uses.
func (f *file) selectors(n ast.Node, found func(importPath, name string, at ast.Node)) {
	paths := map[string]string{}
	for _, i := range f.imports {
		paths[i.name] = i.path
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && paths[x.Name] != "" {
				found(paths[x.Name], s.Sel.Name, s)
			}
		}
		return true
	})
}

// under reports whether a path equals one of the prefixes or is below one.
func under(p string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if p == prefix || strings.HasPrefix(p, prefix+"/") {
			return true
		}
	}
	return false
}
