package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A walk lists the files and kustomizations below the configured path.
type walk struct {
	tree   *tree
	limits Limits

	// manifests are the files that may have objects, in order.
	manifests []string
	// kustomizations are the directories with a kustomization file, in order.
	kustomizations []string
	problems       Problems

	files int
	names int // also those that are ignored
}

// ignoreFileSize limits an ignore file, since every name is compared with every pattern.
const ignoreFileSize = 64 * kib

var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (w *walk) problem(severity Severity, name, format string, args ...any) {
	w.problems = append(w.problems, Problem{Origin: api.Origin{Path: name}, Severity: severity, Message: fmt.Sprintf(format, args...)})
}

// errTooMany ends a walk that exceeds a limit.
var errTooMany = errors.New("too many files")

// from walks everything below root. The ignore files in the directories above it apply too.
func (w *walk) from(root string) error {
	mode, at, ok, err := w.tree.lookup(root)
	switch {
	case err != nil:
		return err
	case !ok || at == root && mode.IsRegular():
		w.problem(Error, root, "the commit has no such directory; correct the path in the configuration, or the repository")
		return nil
	case !mode.IsDir():
		w.irregular(at, mode)
		return nil
	}
	var ignored *ignorer
	if root != "." {
		for dir := range above(root) {
			if ignored, err = w.ignoreFile(dir, ignored); err != nil {
				return err
			}
		}
	}
	err = w.dir(root, ignored, 0)
	if errors.Is(err, errTooMany) {
		return nil
	}
	return err
}

// above iterates over the directories above name, from the root down.
func above(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(".") {
			return
		}
		for i, c := range name {
			if c == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

func (w *walk) ignoreFile(dir string, up *ignorer) (*ignorer, error) {
	l, err := w.tree.list(dir)
	if err != nil {
		return nil, err
	}
	name := path.Join(dir, IgnoreFile)
	e, there := l.find(IgnoreFile)
	if !there {
		return up, nil
	}
	if !e.mode.IsRegular() {
		w.irregular(name, e.mode)
		return up, nil
	}
	data, err := w.tree.read(name)
	if err == nil {
		data, err = plainText(data)
	}
	if err == nil && len(data) > ignoreFileSize {
		err = fmt.Errorf("it has more than %s of patterns; list directories instead of their files", bytesText(ignoreFileSize))
	}
	if broken := (*readError)(nil); errors.As(err, &broken) {
		return nil, err
	}
	if err != nil {
		w.problem(Error, name, "%v", err)
		return up, nil
	}
	return up.with(dir, string(data)), nil
}

func (w *walk) dir(dir string, ignored *ignorer, depth int) error {
	if depth > w.limits.Depth {
		w.problem(Error, dir, "directories are nested deeper than %d levels", w.limits.Depth)
		return nil
	}
	ignored, err := w.ignoreFile(dir, ignored)
	if err != nil {
		return err
	}
	l, err := w.tree.list(dir)
	if err != nil {
		return err
	}
	if chart, there := l.find("Chart.yaml"); there && chart.mode.IsRegular() && !ignored.ignores(path.Join(dir, "Chart.yaml"), false) {
		w.problem(Error, path.Join(dir, "Chart.yaml"), "this is a Helm chart, which is not rendered here; commit what helm template writes, or list the directory in %s", IgnoreFile)
		return nil
	}
	if w.names += len(l.entries); w.names > 10*w.limits.Files {
		return w.tooMany(dir)
	}
	w.kustomization(dir, l, ignored)
	for _, e := range l.entries {
		if strings.HasPrefix(e.name, ".") {
			continue
		}
		name := join(dir, e.name)
		isDir := e.mode.IsDir() || e.mode&fs.ModeIrregular != 0 // ignore patterns match a submodule like a directory
		if ignored != nil && ignored.ignores(name, isDir) {
			continue
		}
		if err := w.entry(name, e, ignored, depth); err != nil {
			return err
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

func (w *walk) entry(name string, e entry, ignored *ignorer, depth int) error {
	w.files++
	if w.files > w.limits.Files {
		return w.tooMany(name)
	}
	switch {
	case !utf8.ValidString(name) && (e.mode.IsDir() || isManifest(name)):
		w.problem(Error, strings.ToValidUTF8(name, "\ufffd"), "the name is not UTF-8; rename it, or list it in %s", IgnoreFile)
		return nil
	case e.mode.IsDir():
		return w.dir(name, ignored, depth+1)
	case !e.mode.IsRegular():
		w.irregular(name, e.mode)
		return nil
	}
	if isManifest(name) && !slices.Contains(kustomizationNames, e.name) {
		w.manifests = append(w.manifests, name)
	}
	return nil
}

// tooMany ends the walk. Directories and links count too, and ignored names count a little: a
// small repository can have any number of them, since Git stores equal directories once.
func (w *walk) tooMany(name string) error {
	w.problem(Error, name, "up to here the commit has more than %d files and directories; set a path, list what is not meant for the fleet in %s, or raise limits.files", w.limits.Files, IgnoreFile)
	return errTooMany
}

func (w *walk) kustomization(dir string, l *listing, ignored *ignorer) {
	var found []string
	for _, name := range kustomizationNames {
		e, there := l.find(name)
		if there && e.mode.IsRegular() && !ignored.ignores(join(dir, name), false) {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		w.problem(Error, join(dir, found[1]), "the directory has also %s; keep one of them", found[0])
	}
	if len(found) > 0 {
		w.kustomizations = append(w.kustomizations, dir)
	}
}

// irregular reports an entry that is neither a file nor a directory. A link that may stand for a
// manifest or a directory of manifests is an error, since their objects would be missing.
func (w *walk) irregular(name string, mode fs.FileMode) {
	severity := Warning
	if isManifest(name) || path.Ext(name) == "" {
		severity = Error
	}
	switch {
	case mode&fs.ModeSymlink != 0:
		w.problem(severity, name, "this is a symbolic link, which is never followed; commit the file itself, or list the link in %s", IgnoreFile)
	case mode&fs.ModeIrregular != 0:
		w.problem(Error, name, "this is a submodule, which is never entered; commit its files, or list it in %s", IgnoreFile)
	default:
		w.problem(Error, name, "this is neither a file nor a directory; list it in %s", IgnoreFile)
	}
}
