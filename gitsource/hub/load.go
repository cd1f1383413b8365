package hub

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Options select what of a repository is the hub.
type Options struct {
	// Path is the directory that is read; empty means all. Kustomizations in it may refer to
	// files outside of it.
	Path string
	// Limits have their defaults where they are zero.
	Limits Limits
}

// Validate returns an error that names the invalid field.
func (o Options) Validate() error {
	if !fs.ValidPath(path.Clean("./"+o.Path)) || path.IsAbs(o.Path) {
		return fmt.Errorf("path %q: must be relative to the repository and stay in it", o.Path)
	}
	return o.Limits.Validate()
}

// Load reads one commit. It returns a *LoadError if the commit is invalid, and any other error
// if it cannot be read.
func Load(commit Commit, fsys fs.FS, opts Options) (*Snapshot, error) {
	return NewLoader(opts).Load(commit, fsys)
}

// A Loader loads one commit after another, and processes only what has changed. It caches what
// the last two loads used. It is safe for concurrent use; loads run one at a time.
type Loader struct {
	opts Options
	// invalid is the error of the options, returned by every load.
	invalid error

	mu             sync.Mutex
	load           int
	dirs           *cache[dirKey, *listing]
	files          *cache[fileKey, *parsed]
	kustomizations *cache[textKey, *kustomizationFile]
	builds         *cache[buildKey, *parsed]
	// words has one vocabulary for each processor: a goroutine needs one to parse.
	words chan vocabulary
	// sorted are the items of the load with number sortedLoad, by ID.
	sorted     []*item
	sortedLoad int
	// built counts the kustomizations that were built, not cached.
	built int
}

// A fileKey identifies one content of one file: the path is part of the origin of its objects.
type fileKey struct{ path, hash string }

type buildKey struct{ dir, fingerprint string }

// NewLoader returns a Loader with an empty cache.
func NewLoader(opts Options) *Loader {
	invalid := opts.Validate()
	opts.Path = path.Clean("./" + opts.Path)
	opts.Limits = opts.Limits.withDefaults()
	l := &Loader{
		opts:           opts,
		invalid:        invalid,
		sortedLoad:     -1,
		dirs:           newCache[dirKey, *listing](),
		files:          newCache[fileKey, *parsed](),
		kustomizations: newCache[textKey, *kustomizationFile](),
		builds:         newCache[buildKey, *parsed](),
		words:          make(chan vocabulary, runtime.GOMAXPROCS(0)),
	}
	for range cap(l.words) {
		l.words <- vocabulary{}
	}
	return l
}

// Load reads one commit like the function Load. Objects, placements and everything else that
// has not changed since the last loads have the same pointers.
func (l *Loader) Load(commit Commit, fsys fs.FS) (*Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.invalid != nil {
		return nil, fmt.Errorf("load: %w", l.invalid)
	}
	l.load++
	l.dirs.next()
	l.files.next()
	l.kustomizations.next()
	l.builds.next()
	l.trimCache()
	snapshot, err := l.read(commit, newTree(fsys, l.opts.Limits, l.dirs))
	if err != nil {
		return nil, fmt.Errorf("load commit %s: %w", commit.Hash, err)
	}
	return snapshot, nil
}

// trimCache drops what only the load before the last one used, if the cache takes more memory
// than a commit may.
func (l *Loader) trimCache() {
	var size int64
	for _, e := range l.files.entries {
		size += e.value.size
	}
	for _, e := range l.builds.entries {
		size += e.value.size
	}
	if size > l.opts.Limits.CommitSize {
		l.files.forget(1)
		l.builds.forget(1)
	}
}

func (l *Loader) read(commit Commit, t *tree) (*Snapshot, error) {
	w := &walk{tree: t, limits: l.opts.Limits}
	if err := w.from(l.opts.Path); err != nil {
		return nil, err
	}
	g, err := newGraph(t, w.kustomizations, l.kustomizations)
	if err != nil {
		return nil, err
	}
	a := &assembly{limits: l.opts.Limits, load: l.load, before: l.sorted, last: l.sortedLoad, sources: map[string][]string{}}
	a.problems = append(a.problems, w.problems...)
	if a.size = g.size; a.size > a.limits.CommitSize {
		a.tooLarge(api.Origin{Path: g.last})
		return nil, &LoadError{a.problems.sort()}
	}
	if err := l.readFiles(t, w, g, a); err != nil {
		return nil, err
	}
	if err := l.build(t, g, a); err != nil {
		return nil, err
	}
	if a.full { // parts of the commit are missing, and checks would report them
		return nil, &LoadError{a.problems.sort()}
	}
	if err := l.checkCustom(t, a); err != nil {
		return nil, err
	}
	a.problems = append(a.problems, g.problems()...)
	snapshot, err := a.finish(commit)
	l.sorted, l.sortedLoad = a.items, l.load
	return snapshot, err
}

// build builds the kustomizations without problems.
func (l *Loader) build(t *tree, g *graph, a *assembly) error {
	if n := l.opts.Limits.Builds; len(g.roots) > n && !a.full {
		a.full = true
		a.problem(Error, api.Origin{Path: g.nodes[g.roots[n]].file}, "", "the commit has more than %d kustomizations to build; split the repository, or raise limits.builds", n)
	}
	for _, dir := range g.roots {
		if a.full {
			return nil
		}
		parts := g.withBases(dir)
		if !buildable(parts) {
			continue
		}
		print, err := fingerprint(t, dir, parts)
		if err != nil {
			return err
		}
		key := buildKey{dir, print}
		result, known := l.builds.get(key)
		if !known {
			if result, err = build(t, dir, parts, g.nodes[dir].file, &budget{limit: l.opts.Limits.CommitSize - a.size}); err != nil {
				return err
			}
			l.built++
			if !result.transient && result.cut == (api.Origin{}) {
				l.builds.put(key, result)
			}
		}
		a.addParsed(result)
		a.sources[g.nodes[dir].file] = sourcesOf(parts)
	}
	return nil
}

// sourcesOf lists the files of a build.
func sourcesOf(parts []*kustomization) []string {
	var names []string
	for _, k := range parts {
		names = append(names, k.file)
		for _, f := range k.files {
			names = append(names, f.path)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
