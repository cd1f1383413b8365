// Package rollback finds the edit of the files in Git that undoes content which has failed, and says in a pull request what
// has failed.
//
// [Find] gets the files in which all changes between two commits are undone, and returns the fewest of them with which the
// content of the placement is the same. It finds them by loading trees of files as the daemon would, so that it does not
// matter whether a manifest, an override, a kustomization or a chart has made the content.
package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edited"
)

const (
	// maxLoads is the maximum number of trees that are loaded to find the files of one content.
	maxLoads = 60
	// maxConflicts is the maximum number of conflicts that are looked at.
	maxConflicts = 10
)

// An ImpossibleError is why no edit undoes the content.
type ImpossibleError struct{ why string }

func (e *ImpossibleError) Error() string { return e.why }

// Impossible makes an ImpossibleError of an error.
func Impossible(err error) error { return impossible("%v", err) }

func impossible(format string, args ...any) error {
	return &ImpossibleError{fmt.Sprintf(format, args...)}
}

// A Tree is the files of the commit in force, and the placement whose content is to be undone.
type Tree struct {
	Files     fs.FS
	Load      func(fs.FS) (*hub.Snapshot, error)
	Head      *hub.Snapshot
	Placement api.PlacementKey
}

// Find returns the files to change, of those in which everything is undone, sorted by path. Conflicts are the files in which it
// could not be undone. The error is an [*ImpossibleError], unless files cannot be read now.
func (t *Tree) Find(undone map[string][]byte, conflicts []string) (paths []string, err error) {
	f := &finder{Tree: t, undone: undone}
	head, known := plan.SourceOf(t.Head, t.Placement)
	if !known {
		return nil, impossible("the commit in force does not have the placement")
	}
	if err := f.checkConflicts(head, conflicts); err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(undone))
	after, err := f.load(all)
	near := filesOf(all, head, after)
	if broken(err) { // something else needs what would be undone with it
		all = near
		after, err = f.load(all)
	}
	switch {
	case broken(err):
		return nil, impossible("the files would not load: %v", err)
	case err != nil:
		return nil, err
	case after.Fingerprint == head.Fingerprint:
		return nil, impossible("undoing the commits does not change the content of the placement")
	}
	f.want = after.Fingerprint
	if len(near) < len(all) {
		switch same, err := f.suffices(near); {
		case err != nil:
			return nil, err
		case same:
			all = near
		}
	}
	return f.reduce(nil, all)
}

// filesOf returns those of some paths that have manifests and overrides of a placement, before or after.
func filesOf(paths []string, sources ...plan.PlacementSource) (out []string) {
	for _, path := range paths {
		if slices.ContainsFunc(sources, func(s plan.PlacementSource) bool { return isSource(s, path) }) {
			out = append(out, path)
		}
	}
	return out
}

func isSource(s plan.PlacementSource, path string) bool {
	return slices.ContainsFunc(s.Origins, func(o api.Origin) bool { return o.Path == path })
}

// broken reports whether an error is that of files which do not load, or do not have the placement.
func broken(err error) bool {
	_, refused := errors.AsType[*hub.LoadError](err)
	return refused || errors.Is(err, errNoPlacement)
}

var errNoPlacement = errors.New("the files would not have the placement")

// A finder finds the files.
type finder struct {
	*Tree
	undone map[string][]byte
	// want is the fingerprint of the content to return to, and loads is the number of trees that were loaded.
	want  string
	loads int
}

// load loads the files of the commit in force with some of them undone.
func (f *finder) load(paths []string) (plan.PlacementSource, error) {
	files := map[string][]byte{}
	for _, path := range paths {
		files[path] = f.undone[path]
	}
	return f.loadWith(files)
}

func (f *finder) loadWith(files map[string][]byte) (plan.PlacementSource, error) {
	if f.loads++; f.loads > maxLoads {
		return plan.PlacementSource{}, impossible("too many files were changed to find out which of the %d have made the content", len(f.undone))
	}
	snapshot, err := f.Load(edited.Tree(f.Files, files))
	if err != nil {
		return plan.PlacementSource{}, err
	}
	source, known := plan.SourceOf(snapshot, f.Placement)
	if !known {
		return plan.PlacementSource{}, errNoPlacement
	}
	return source, nil
}

// suffices reports whether undoing some files is enough.
func (f *finder) suffices(paths []string) (bool, error) {
	source, err := f.load(paths)
	if broken(err) {
		return false, nil
	}
	return source.Fingerprint == f.want, err
}

// reduce returns those of some files that are needed besides others.
func (f *finder) reduce(others, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	same, err := f.suffices(others)
	switch {
	case err != nil:
		return nil, err
	case same:
		return nil, nil
	case len(paths) == 1:
		return paths, nil
	}
	half := len(paths) / 2
	first, err := f.reduce(slices.Concat(others, paths[half:]), paths[:half])
	if err != nil {
		return nil, err
	}
	second, err := f.reduce(slices.Concat(others, first), paths[half:])
	return slices.Concat(first, second), err
}

// checkConflicts returns an error if the content needs a file in which the changes cannot be undone.
func (f *finder) checkConflicts(head plan.PlacementSource, conflicts []string) error {
	var needed []string
	for i, path := range conflicts {
		needs := i >= maxConflicts || isSource(head, path)
		if !needs {
			without, err := f.loadWith(map[string][]byte{path: nil})
			if err != nil && !broken(err) {
				return err
			}
			needs = err != nil || without.Fingerprint != head.Fingerprint
		}
		if needs {
			needed = append(needed, path)
		}
	}
	if len(needed) > 0 {
		return impossible("later commits have changed the same lines of %s", strings.Join(needed, ", "))
	}
	return nil
}
