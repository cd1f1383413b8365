package build

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/cache"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// FileNames are the names of kustomization files. If there are several, kustomize reads the
// first one.
var FileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// A kustomization is one directory with a kustomization file, and its references. They are
// resolved in the commit before anything is built, so that a build never needs the network.
type kustomization struct {
	dir, file string
	// files and dirs are the references, relative to the root of the repository.
	files []reference
	dirs  []string
	// literals are the literal values of secret generators.
	literals []string
	problems problem.List

	content *kustomizationFile
}

// A reference is a file that a kustomization reads.
type reference struct {
	path string
	// data says that the file is copied and not parsed.
	data bool
}

// reads returns all files that a build reads for the kustomization. The kustomization file comes
// first, as data, since it was parsed before.
func (k *kustomization) reads() []reference {
	return append([]reference{{k.file, true}}, k.files...)
}

func (k *kustomization) add(severity problem.Severity, line int, field, format string, args ...any) {
	if len(k.problems) > document.MaxProblems {
		return // enough problems; a list of files can be very long
	}
	k.problems = append(k.problems, problem.Problem{
		Origin: api.Origin{Path: k.file, Line: line}, Field: field, Severity: severity, Message: fmt.Sprintf(format, args...),
	})
}

func (k *kustomization) fail(line int, field, format string, args ...any) {
	k.add(problem.Error, line, field, format, args...)
}

func (k *kustomization) warn(line int, field, format string, args ...any) {
	k.add(problem.Warning, line, field, format, args...)
}

// failAt reports a problem at the reference to a directory.
func (k *kustomization) failAt(dir, format string, args ...any) {
	for _, m := range k.content.mentions {
		if path.Join(k.dir, m.value) == dir {
			k.fail(m.line, m.field, format, args...)
			return
		}
	}
	k.fail(0, "", format, args...)
}

// read reads the kustomization in a directory.
func (g *Graph) read(dir string) (*kustomization, error) {
	k := &kustomization{dir: dir}
	for _, name := range FileNames {
		if ok, err := g.tree.IsFile(path.Join(dir, name)); err != nil {
			return nil, err
		} else if ok {
			k.file = path.Join(dir, name)
			break
		}
	}
	var err error
	if k.content, err = g.readContent(k.file, false); err != nil {
		return nil, err
	}
	return k, g.resolveAll(k, k.content)
}

// resolveAll resolves all references of a file.
func (g *Graph) resolveAll(k *kustomization, text *kustomizationFile) error {
	k.problems = append(k.problems, text.problems...)
	k.literals = append(k.literals, text.secrets...)
	for _, m := range text.mentions {
		before := len(k.files)
		if err := k.resolve(g.tree, m); err != nil {
			return err
		}
		if m.kind != pluginFile || len(k.files) == before {
			continue
		}
		plugins, err := g.readContent(k.files[before].path, true)
		if err != nil {
			return err
		}
		if err := g.resolveAll(k, plugins); err != nil {
			return err
		}
	}
	return nil
}

// A contentKey identifies a parsed file. The same file may be read as a kustomization and as a
// plugin configuration.
type contentKey struct {
	path, hash string
	plugins    bool
}

// A Cache has the kustomization files that the last two loads used.
type Cache struct {
	*cache.Cache[contentKey, *kustomizationFile]
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{cache.New[contentKey, *kustomizationFile]()}
}

// readContent reads a file, or returns it from the cache.
func (g *Graph) readContent(name string, plugins bool) (*kustomizationFile, error) {
	hash, err := g.tree.Hash(name)
	if err != nil {
		return nil, err
	}
	key, parse := contentKey{name, hash, plugins}, parseKustomization
	if plugins {
		parse = parsePlugins
	}
	if text, ok := g.cache.Get(key); ok {
		return text, nil
	}
	data, fault, err := g.tree.Read(name)
	if err != nil {
		return nil, err
	}
	var text *kustomizationFile
	if fault != "" {
		text = &kustomizationFile{problems: problem.List{{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: fault}}}
	} else {
		text = parse(name, data, g.limits)
	}
	g.cache.Put(key, text)
	return text, nil
}

// A mention is a reference in a kustomization file that is not resolved yet.
type mention struct {
	field string
	line  int
	value string
	// what it may refer to
	kind mentionKind
}

type mentionKind int

const (
	fileOrDirectory mentionKind = iota
	componentDirectory
	textFile   // a file that kustomize parses
	dataFile   // a file that kustomize copies
	pluginFile // a file with generators or transformers
)

// scheme matches the beginning of a URL, and user the beginning of an SSH address.
var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	user   = regexp.MustCompile(`^[A-Za-z0-9._-]+@`)
)

// isRemote reports whether kustomize might treat a reference as the URL of a file. It errs
// towards true.
func isRemote(s string) bool {
	s = strings.TrimSpace(s)
	return strings.Contains(s, "://") || scheme.MatchString(s)
}

// isRepository reports whether kustomize might treat a reference as a repository to clone.
func (m mention) isRepository() bool {
	if m.kind == textFile || m.kind == dataFile {
		return false
	}
	lower := strings.ToLower(strings.TrimSpace(m.value))
	return strings.HasPrefix(lower, "github.com") || user.MatchString(lower)
}

// resolve finds the file or directory of the commit that a mention refers to.
func (k *kustomization) resolve(t *tree.Tree, m mention) error {
	name := path.Join(k.dir, m.value)
	switch {
	case m.value == "":
		k.fail(m.line, m.field, "is empty; name a file, or remove the entry")
		return nil
	case isRemote(m.value) || m.isRepository():
		k.fail(m.line, m.field, "%q is remote, and nothing is downloaded while a commit is read; copy its content into the repository", m.value)
		return nil
	case path.IsAbs(m.value), name == "..", strings.HasPrefix(name, "../"):
		k.fail(m.line, m.field, "%q is outside of the repository; write a relative path to something in it", m.value)
		return nil
	}
	mode, at, ok, err := t.Lookup(name)
	if err != nil {
		return err
	}
	switch {
	case !ok:
		k.fail(m.line, m.field, "the commit has no %s; correct the name, or add the file", name)
	case mode.IsDir():
		return k.resolveDir(t, m, name)
	case !mode.IsRegular():
		k.fail(m.line, m.field, "%s is %s, which is never followed; commit the file itself", at, modeText(mode))
	case m.kind == componentDirectory:
		k.fail(m.line, m.field, "%s is a file; a component is a directory with a kustomization of kind Component", name)
	case !isBelow(k.dir, name):
		k.fail(m.line, m.field, "%s is not in or below %s, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file", name, k.dir)
	default:
		k.files = append(k.files, reference{name, m.kind == dataFile})
	}
	return nil
}

func modeText(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeIrregular != 0:
		return "a submodule"
	}
	return "neither a file nor a directory"
}

func isBelow(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

func (k *kustomization) resolveDir(t *tree.Tree, m mention, name string) error {
	if m.kind != fileOrDirectory && m.kind != componentDirectory {
		k.fail(m.line, m.field, "%s is a directory; name a file", name)
		return nil
	}
	if name == k.dir || isBelow(name, k.dir) {
		k.fail(m.line, m.field, "%s contains this kustomization, so they would refer to each other in a cycle; remove the reference", name)
		return nil
	}
	for _, file := range FileNames {
		if ok, err := t.IsFile(path.Join(name, file)); err != nil || ok {
			k.dirs = append(k.dirs, name)
			return err
		}
	}
	k.fail(m.line, m.field, "the directory %s has no %s; add one, or list its files", name, FileNames[0])
	return nil
}

// parseBounded is document.Parse with the budget of one build.
func parseBounded(name string, data []byte, limits limit.Limits) *document.Syntax {
	budget := &limit.Budget{Limit: limits.BuildInput}
	out := document.Parse(name, data, limits, budget)
	if budget.Exceeded() {
		out.Problems = append(out.Problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: inputExceeded(limits)})
	}
	return out
}

func inputExceeded(limits limit.Limits) string {
	return fmt.Sprintf("the build reads more than %s, each file counted as often as it is read; refer to each base fewer times, write fewer YAML aliases, or raise limits.buildInput", limit.Size(limits.BuildInput))
}
