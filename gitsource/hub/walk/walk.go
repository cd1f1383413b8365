// Package walk finds the files of a hub.
//
// Below is the whole API: it lists the manifests and the directories with kustomizations, without reading them. What ignore files and the
// settings of the hub exclude is listed as well, with what decides that.
package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Files are what a hub consists of.
type Files struct {
	// Manifests are the files that may have objects, in order.
	Manifests []string
	// Kustomizations are the directories with a kustomization file, in order.
	Kustomizations []string
	// Excluded are directories and files that are not read, and why.
	Excluded []Exclusion
	Problems problem.List
}

// An Exclusion is a directory or a file of the commit that is no part of the hub.
type Exclusion struct {
	Path string
	// Why says what decides that; it continues a sentence about the path.
	Why string
}

// Options say what a walk may find.
type Options struct {
	Limits limit.Limits
	Grants grant.Set
	// LockFile is the path of the lock file, which is no manifest.
	LockFile string
}

// A walker walks through the directories of a hub.
type walker struct {
	tree *tree.Tree
	Options
	found Files

	files int
	names int // number of entries, including ignored ones
	// compared is the number of names, each as often as there are bytes of patterns with which it was compared.
	compared int64
}

// ignoreFileSize limits the size of an ignore file, since every name is compared with every
// pattern.
const ignoreFileSize = 64 << 10

func (w *walker) problem(severity problem.Severity, name, format string, args ...any) {
	w.found.Problems = append(w.found.Problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: severity, Message: fmt.Sprintf(format, args...)})
}

// longestPath is the longest path of a directory, as on Linux. Each of a commit's files may have one as long in memory.
const longestPath = 4096

// errTooMany ends a walk that exceeds a limit.
var errTooMany = errors.New("too many files")

// from lists everything below root. The ignore files in the directories above root apply too.
func (w *walker) from(root string) error {
	mode, at, ok, err := w.tree.Lookup(root)
	switch {
	case err != nil:
		return err
	case !ok || at == root && mode.IsRegular():
		w.problem(problem.Error, root, "the commit has no such directory; correct the path in the configuration, or the repository")
		return nil
	case !mode.IsDir():
		w.irregular(at, mode)
		return nil
	}
	var ignored *tree.Patterns
	if root != "." {
		parts := strings.Split(root, "/")
		for i := range parts {
			if ignored, err = w.ignoreFile(path.Clean(path.Join(parts[:i]...)), ignored); err != nil {
				return err
			}
		}
	}
	if err = w.dir(root, ignored, 0); errors.Is(err, errTooMany) {
		return nil
	}
	return err
}

func (w *walker) ignoreFile(dir string, up *tree.Patterns) (*tree.Patterns, error) {
	l, err := w.tree.List(dir)
	if err != nil {
		return nil, err
	}
	name := path.Join(dir, tree.IgnoreFile)
	e := l.Find(tree.IgnoreFile)
	if e == nil {
		return up, nil
	}
	if !e.Type().IsRegular() {
		if !up.Ignores(name, matchesAsDir(e.Type())) {
			w.irregular(name, e.Type())
		}
		return up, nil
	}
	data, fault, err := w.tree.Read(name)
	if err != nil {
		return nil, err
	}
	data, notText := document.PlainText(data)
	switch {
	case fault != "":
		w.problem(problem.Error, name, "%s", fault)
	case notText != nil:
		w.problem(problem.Error, name, "%v", notText)
	case len(data) > ignoreFileSize:
		w.problem(problem.Error, name, "it has more than %s of patterns; list directories instead of their files", limit.Size(ignoreFileSize))
	default:
		return up.With(dir, string(data)), nil
	}
	return up, nil
}

func (w *walker) dir(dir string, ignored *tree.Patterns, depth int) error {
	if depth > w.Limits.Depth {
		w.problem(problem.Error, dir, "directories are nested deeper than %d levels", w.Limits.Depth)
		return nil
	}
	if len(dir) > longestPath {
		w.problem(problem.Error, strings.ToValidUTF8(dir[:100], "")+"...", "the path of the directory has %d bytes, and no system can check out more than %d; shorten it", len(dir), longestPath)
		return nil
	}
	ignored, err := w.ignoreFile(dir, ignored)
	if err != nil {
		return err
	}
	l, err := w.tree.List(dir)
	if err != nil {
		return err
	}
	if isFile(l, dir, "Chart.yaml", ignored) {
		w.problem(problem.Error, path.Join(dir, "Chart.yaml"), "this is a Helm chart, which is rendered only if a HelmChart or a ClusterHelmChart refers to it; add one, or list the directory in %s", tree.IgnoreFile)
		return nil
	}
	if w.names += len(l); w.names > 10*w.Limits.Files {
		return w.tooMany(dir)
	}
	w.kustomization(dir, l, ignored)
	for _, e := range l {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := path.Join(dir, e.Name())
		if err := w.compare(name, ignored); err != nil {
			return err
		}
		skip, by := ignored.Decide(name, matchesAsDir(e.Type()))
		if by != "" {
			w.found.Problems = append(w.found.Problems, w.Grants.CheckRead(by, name)...)
		}
		if skip {
			if e.IsDir() || document.IsManifest(name) {
				w.found.Excluded = append(w.found.Excluded, Exclusion{name, by + " lists it"})
			}
			continue
		}
		if err := w.entry(name, e, ignored, depth); err != nil {
			return err
		}
	}
	return nil
}

// maxCompared limits the comparisons of a walk, which take some 10 s.
const maxCompared = 1 << 30

// errEnded says that the commit cannot be read any more.
var errEnded = errors.New("the commit is not needed any more")

// compare counts the comparisons of a name with the patterns of ignore files. It returns an error if they are too many, or the walk
// has to end.
func (w *walker) compare(name string, ignored *tree.Patterns) error {
	select {
	case <-w.tree.Done():
		return errEnded
	default:
	}
	if w.compared += ignored.Size(); w.compared > maxCompared {
		w.problem(problem.Error, name, "up to here comparing all names with the patterns of %s takes too long; write fewer patterns, or list directories instead of their files", tree.IgnoreFile)
		return errTooMany
	}
	return nil
}

// isFile reports whether a directory has a file with a name that is not ignored.
func isFile(l tree.Listing, dir, name string, ignored *tree.Patterns) bool {
	e := l.Find(name)
	return e != nil && e.Type().IsRegular() && !ignored.Ignores(path.Join(dir, name), false)
}

// matchesAsDir reports whether ignore patterns match an entry as a directory. A submodule is one.
func matchesAsDir(mode fs.FileMode) bool { return mode.IsDir() || mode&fs.ModeIrregular != 0 }

func (w *walker) entry(name string, e fs.DirEntry, ignored *tree.Patterns, depth int) error {
	if w.files++; w.files > w.Limits.Files {
		return w.tooMany(name)
	}
	switch {
	case !utf8.ValidString(name) && (e.Type().IsDir() || document.IsManifest(name)):
		w.problem(problem.Error, strings.ToValidUTF8(name, "\ufffd"), "the name is not UTF-8; rename it, or list it in %s", tree.IgnoreFile)
	case e.Type().IsDir():
		return w.dir(name, ignored, depth+1)
	case !e.Type().IsRegular():
		w.irregular(name, e.Type())
	case document.IsManifest(name) && !slices.Contains(build.FileNames, e.Name()) && name != w.LockFile:
		w.found.Manifests = append(w.found.Manifests, name)
	}
	return nil
}

// tooMany ends the walk if it exceeds the limit. Directories and links count as files do, and
// ignored names count a little: even a small repository can have any number of them, since Git
// stores equal directories once.
func (w *walker) tooMany(name string) error {
	w.problem(problem.Error, name, "up to here the commit has more than %d files and directories; set a path, list what is not meant for the fleet in %s, or raise limits.files", w.Limits.Files, tree.IgnoreFile)
	return errTooMany
}

func (w *walker) kustomization(dir string, l tree.Listing, ignored *tree.Patterns) {
	var found []string
	for _, name := range build.FileNames {
		if isFile(l, dir, name, ignored) {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		w.problem(problem.Error, path.Join(dir, found[1]), "the directory has also %s; keep one of them", found[0])
	}
	if len(found) > 0 {
		w.found.Kustomizations = append(w.found.Kustomizations, dir)
	}
}

// irregular reports an entry that is neither a file nor a directory. A link that may point to a
// manifest or a directory of manifests is an error, since the objects would be missing. So is an
// ignore file, since files would be read that are not meant for the fleet. That of the root cannot
// be ignored itself.
func (w *walker) irregular(name string, mode fs.FileMode) {
	severity := problem.Warning
	if document.IsManifest(name) || path.Ext(name) == "" || path.Base(name) == tree.IgnoreFile {
		severity = problem.Error
	}
	switch {
	case mode&fs.ModeSymlink != 0 && name == tree.IgnoreFile:
		w.problem(severity, name, "this is a symbolic link, which is never followed; commit the file itself")
	case mode&fs.ModeSymlink != 0:
		w.problem(severity, name, "this is a symbolic link, which is never followed; commit the file itself, or list the link in %s", tree.IgnoreFile)
	case path.Base(name) == tree.IgnoreFile:
		w.problem(severity, name, "an ignore file must be a regular file; rename it, or commit a file")
	case mode&fs.ModeIrregular != 0:
		w.problem(problem.Error, name, "this is a submodule, which is never entered; commit its files, or list it in %s", tree.IgnoreFile)
	default:
		w.problem(problem.Error, name, "this is neither a file nor a directory; list it in %s", tree.IgnoreFile)
	}
}
