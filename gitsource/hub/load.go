package hub

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/cache"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Limits limit what a repository may contain, and what loading it may cost.
type Limits = limit.Limits

// Options select the part of a repository that is the hub.
type Options struct {
	// Path is the directory that is read; empty means all. Kustomizations in it may refer to
	// files outside of it.
	Path string
	// Limits limit the repository; zero fields mean the defaults.
	Limits Limits
}

// Validate returns an error that names the invalid field.
func (o Options) Validate() error {
	if !fs.ValidPath(path.Clean("./"+o.Path)) || path.IsAbs(o.Path) {
		return fmt.Errorf("path %q: must be relative to the repository and stay in it", o.Path)
	}
	return nil
}

// A LoadError says that a commit is invalid. Other errors of Load mean that the commit could
// not be read.
type LoadError struct {
	// Problems are all problems, including warnings, in order.
	Problems problem.List
}

// Error lists the problems, one per line, and marks warnings.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Marked()
	}
	return strings.Join(lines, "\n")
}

// A Loader loads one commit after another and processes only what has changed. It caches what
// the last two loads used. It is safe for concurrent use; loads run one at a time.
type Loader struct {
	opts Options

	mu             sync.Mutex
	dirs           *cache.Cache[tree.Key, *tree.Listing]
	files          *cache.Cache[fileKey, *parsed]
	kustomizations *build.Cache
	builds         *cache.Cache[buildKey, *parsed]
	// interners has one interner for each processor; a goroutine takes one to parse.
	interners chan document.Interner
	// built counts the kustomizations that were built because they were not cached.
	built int
}

// A fileKey identifies the content of a file at a path. The path is part of the key because it
// is part of the origin of the objects.
type fileKey struct{ path, hash string }

type buildKey struct{ dir, fingerprint string }

// NewLoader returns a Loader with an empty cache. The options must be valid.
func NewLoader(opts Options) *Loader {
	opts.Path = path.Clean("./" + opts.Path)
	opts.Limits = opts.Limits.WithDefaults()
	l := &Loader{
		opts:           opts,
		dirs:           cache.New[tree.Key, *tree.Listing](),
		files:          cache.New[fileKey, *parsed](),
		kustomizations: build.NewCache(),
		builds:         cache.New[buildKey, *parsed](),
		interners:      make(chan document.Interner, runtime.GOMAXPROCS(0)),
	}
	for range cap(l.interners) {
		l.interners <- document.Interner{}
	}
	return l
}

// Load reads one commit. The error is a *LoadError if the commit is invalid, and any other error
// if it cannot be read. Objects, placements and everything else that has not changed since the
// last loads keep their pointers.
func (l *Loader) Load(commit Commit, fsys fs.FS) (*Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs.Next()
	l.files.Next()
	l.kustomizations.Next()
	l.builds.Next()
	l.trimCache()
	snapshot, err := l.read(commit, tree.New(fsys, l.opts.Limits.FileSize, l.dirs))
	if err != nil {
		return nil, fmt.Errorf("load commit %s: %w", commit.Hash, err)
	}
	return snapshot, nil
}

// trimCache drops the entries that only the load before the last one used, if the cache exceeds
// the memory limit of a commit.
func (l *Loader) trimCache() {
	var size int64
	for p := range l.files.Values() {
		size += p.size
	}
	for p := range l.builds.Values() {
		size += p.size
	}
	if size > l.opts.Limits.CommitSize {
		l.files.Forget(1)
		l.builds.Forget(1)
	}
}

func (l *Loader) read(commit Commit, t *tree.Tree) (*Snapshot, error) {
	w := &walk{tree: t, limits: l.opts.Limits}
	if err := w.from(l.opts.Path); err != nil {
		return nil, err
	}
	g, err := build.Read(t, w.kustomizations, l.kustomizations, l.opts.Limits)
	if err != nil {
		return nil, err
	}
	a := &assembly{limits: l.opts.Limits, sources: map[string][]string{}}
	a.problems = append(a.problems, w.problems...)
	if a.size = g.Size; a.size > a.limits.CommitSize {
		a.tooLarge(api.Origin{Path: g.Last})
		return nil, &LoadError{a.problems.Sort()}
	}
	if err := l.readFiles(t, w, g, a); err != nil {
		return nil, err
	}
	if err := l.build(g, a); err != nil {
		return nil, err
	}
	if a.full { // parts of the commit were not read, and the checks would report them as missing
		return nil, &LoadError{a.problems.Sort()}
	}
	if err := l.checkCustom(t, a); err != nil {
		return nil, err
	}
	a.problems = append(a.problems, g.Problems()...)
	return a.finish(commit)
}

// build builds the kustomizations that have no problems.
func (l *Loader) build(g *build.Graph, a *assembly) error {
	if n := l.opts.Limits.Builds; len(g.Roots) > n && !a.full {
		a.full = true
		a.problem(problem.Error, api.Origin{Path: g.Target(g.Roots[n]).File}, "", "the commit has more than %d kustomizations to build; split the repository, or raise limits.builds", n)
	}
	for _, dir := range g.Roots {
		if a.full {
			return nil
		}
		t := g.Target(dir)
		if !t.Valid() {
			continue
		}
		fingerprint, err := t.Fingerprint()
		if err != nil {
			return err
		}
		key := buildKey{dir, fingerprint}
		result, known := l.builds.Get(key)
		if !known {
			result = &parsed{}
			built, err := t.Build(&limit.Budget{Limit: l.opts.Limits.CommitSize - a.size}, func(r *document.Report, object any) {
				result.items = append(result.items, itemsOf(r, object)...)
			})
			if err != nil {
				return err
			}
			if built.Exceeded {
				result.items = nil // all objects of a build, or none
			}
			result.problems, result.size, result.end, result.cut = built.Problems, built.Size, built.End, built.Cut
			l.built++
			if !built.Transient && !built.Cut {
				l.builds.Put(key, result)
			}
		}
		a.addParsed(result)
		a.sources[t.File] = t.Sources()
	}
	return nil
}
