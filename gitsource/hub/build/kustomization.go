package build

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// FileNames are the names of kustomization files. If there are several, kustomize reads the
// first one.
var FileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// A kustomization is one directory with a kustomization file, and its references. They are
// resolved in the commit before anything is built, so that a build never needs the network.
type kustomization struct {
	dir, file string
	spec      types.Kustomization
	// mentions are the references as they are written, and files and dirs what they refer to,
	// relative to the root of the repository.
	mentions []mention
	files    []reference
	dirs     []string
	// remotes are those of dirs that are in other repositories.
	remotes []remoteDir
	// charts are the entries of helmCharts, and those of generators that are charts, which inflators lists as they are written.
	charts    []*helmChart
	inflators []string
	// locked says that the lock file decides what some of them are.
	locked bool
	// generators are the positions of its generators, pluginObjects those of generators that are plugins, and variables the names in the
	// field vars.
	generators    []sourcePosition
	pluginObjects []pluginObject
	variables     []mention
	// targets are the positions of the targets of its patches.
	targets []mention
	// literals are the literal values of secret generators.
	literals []string
	// problems are those of the files, own of them, and those that follow from the other kustomizations.
	problems problem.List
	own      int
	// size is the approximate memory of the file, and of its files of plugins.
	size int64
	// generated says that the file does not exist.
	generated bool
}

// A pluginObject is an object that a plugin generates, at the position of the plugin.
type pluginObject struct {
	path string
	sourcePosition
}

// A reference is a file that a kustomization reads.
type reference struct {
	path string
	// data says that the file is copied and not parsed, schema that it has an OpenAPI schema, values that it has those of a chart, and
	// resource that its documents are objects of the build.
	data, schema, values, resource bool
}

// reads returns all files that a build reads for the kustomization. The kustomization file comes
// first, as data, since it was parsed before, unless it is generated.
func (k *kustomization) reads() []reference {
	if k.generated {
		return k.files
	}
	return append([]reference{{path: k.file, data: true}}, k.files...)
}

func (k *kustomization) add(severity problem.Severity, line int, field, format string, args ...any) {
	at := api.Origin{Path: k.file, Line: line}
	if k.generated {
		at, field = api.Origin{Path: k.dir}, ""
	}
	if len(k.problems) <= document.MaxProblems { // a list of files can be very long
		k.problems = append(k.problems, problem.Problem{
			Origin: at, Field: field, Severity: severity, Message: fmt.Sprintf(format, args...),
		})
	}
}

// fail reports a problem of a reference.
func (k *kustomization) fail(m mention, format string, args ...any) {
	k.add(problem.Error, m.line, m.field, format, args...)
}

// failAt reports a problem at the reference to a directory.
func (k *kustomization) failAt(dir, format string, args ...any) {
	i := slices.IndexFunc(k.mentions, func(m mention) bool { return path.Join(k.dir, m.value) == dir })
	k.fail(k.mentions[i], format, args...)
}

// read reads the kustomization in a directory, and resolves its references.
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
	read := func() error { return g.readFile(k, k.file, k.parse) }
	if k.file == "" {
		read = func() error { return g.generate(k) }
	}
	if err := read(); err != nil {
		return nil, err
	}
	for i := 0; i < len(k.mentions); i++ { // files of plugins have more
		if err := g.resolve(k, k.mentions[i]); err != nil {
			return nil, err
		}
	}
	if err := g.resolveCharts(k); err != nil {
		return nil, err
	}
	k.replaceRemotes()
	return k, nil
}

// readFile reads a file of a kustomization. It calls parse with its documents if it has no errors.
func (g *Graph) readFile(k *kustomization, name string, parse func(data []byte, documents []*document.Report)) error {
	data, fault, err := g.tree.Read(name)
	if err != nil {
		return err
	}
	if fault != "" {
		k.problems = append(k.problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: fault})
		return nil
	}
	var documents []*document.Report
	file := document.Read(name, data, g.limits, g.limits.BuildInput, func(r *document.Report, _ any) { documents = append(documents, r) })
	k.problems = append(k.problems, file.Problems...)
	k.size += file.Size
	if file.Cut {
		k.problems = append(k.problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: inputExceeded(g.limits)})
	} else if !file.Problems.HasErrors() {
		parse(data, documents)
	}
	return nil
}

func inputExceeded(limits limit.Limits) string {
	return fmt.Sprintf("the build reads more than %s, each file counted as often as it is read; refer to each base fewer times, write fewer YAML aliases, or raise limits.buildInput", limit.Size(limits.BuildInput))
}

// A mention is a reference in a kustomization file that is not resolved yet.
type mention struct {
	field string
	line  int
	value string
	kind  mentionKind // what it may refer to
}

type mentionKind int

const (
	fileOrDirectory mentionKind = iota
	componentDirectory
	textFile   // a file that kustomize parses
	dataFile   // a file that kustomize copies
	pluginFile // a file with generators or transformers
	schemaFile // a file with an OpenAPI schema
	valuesFile // a file with values of a chart
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
	switch m.kind {
	case textFile, dataFile, schemaFile, valuesFile:
		return false
	}
	lower := strings.ToLower(strings.TrimSpace(m.value))
	return strings.HasPrefix(lower, "github.com") || user.MatchString(lower)
}

// resolve finds the file or directory of the commit that a mention refers to.
func (g *Graph) resolve(k *kustomization, m mention) error {
	name := path.Join(k.dir, m.value)
	switch {
	case m.value == "":
		k.fail(m, "is empty; name a file, or remove the entry")
		return nil
	case isRemote(m.value) || m.isRepository():
		return g.resolveRemote(k, m)
	case g.tree.MountOf(name) != g.tree.MountOf(k.dir):
		k.fail(m, "%q is outside of the repository of this kustomization", m.value)
		return nil
	case path.IsAbs(m.value), name == "..", strings.HasPrefix(name, "../"):
		k.fail(m, "%q is outside of the repository; write a relative path to something in it", m.value)
		return nil
	}
	mode, at, ok, err := g.tree.Lookup(name)
	if err != nil {
		return err
	}
	switch {
	case !ok:
		k.fail(m, "the commit has no %s; correct the name, or add the file", name)
	case mode.IsDir():
		return g.resolveDir(k, m, name)
	case !mode.IsRegular():
		k.fail(m, "%s is %s, which is never followed; commit the file itself", at, modeText(mode))
	case m.kind == componentDirectory:
		k.fail(m, "%s is a file; a component is a directory with a kustomization of kind Component", name)
	case !isBelow(k.dir, name):
		k.fail(m, "%s is not in or below %s, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file", name, k.dir)
	default:
		k.files = append(k.files, reference{name, m.kind == dataFile || m.kind == valuesFile, m.kind == schemaFile, m.kind == valuesFile, m.kind == fileOrDirectory})
		if m.kind == pluginFile {
			return g.readFile(k, name, func(_ []byte, documents []*document.Report) { k.parsePlugins(m, documents) })
		}
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

func (g *Graph) resolveDir(k *kustomization, m mention, name string) error {
	if m.kind != fileOrDirectory && m.kind != componentDirectory {
		k.fail(m, "%s is a directory; name a file", name)
		return nil
	}
	if name == k.dir || isBelow(name, k.dir) {
		k.fail(m, "%s contains this kustomization, so they would refer to each other in a cycle; remove the reference", name)
		return nil
	}
	for _, file := range FileNames {
		if ok, err := g.tree.IsFile(path.Join(name, file)); err != nil || ok {
			k.dirs = append(k.dirs, name)
			return err
		}
	}
	k.fail(m, "the directory %s has no %s; add one, or list its files", name, FileNames[0])
	return nil
}
