package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
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
	// Keys decrypt what SOPS has encrypted; nil if nothing is decrypted.
	Keys sops.Keys
	// Grants limit what files may produce, by their path; nil limits nothing.
	Grants grant.Set
	// Bases returns the files of a commit of another repository, for remote bases of kustomizations. It fetches nothing, and
	// its error says why they are not there; nil has none.
	Bases func(url, commit string) (fs.FS, error)
	// Charts returns the files of a chart of a registry or a chart repository, as Bases does for those of commits.
	Charts func(chart lockfile.Chart) (fs.FS, error)
	// Lock is used instead of the lock file of the commit; nil means that file.
	Lock *lockfile.File
	// GateServers are the servers that gates may ask; nil if they are not known.
	GateServers *GateServers
	// LogPanic logs that loading a commit panicked; if it is nil, the problem of the commit has the value of the panic.
	LogPanic func(commit Commit, value, stack string)
}

// Validate returns an error that names the invalid field.
func (o Options) Validate() error {
	if !fs.ValidPath(path.Clean("./"+o.Path)) || path.IsAbs(o.Path) {
		return fmt.Errorf("path %q: must be relative to the repository and stay in it", o.Path)
	}
	return nil
}

// A Loader loads one commit after another and processes only what has changed. It caches what
// the last two loads used. It is safe for concurrent use; loads run one at a time.
type Loader struct {
	opts Options

	mu       sync.Mutex
	cache    map[cacheKey]*parsed
	overlays map[*item]*knownOverlay
	plain    *plaintexts     // nil without keys
	schemas  *schema.Sharing // of the definitions that a load reads
	loads    int             // number of loads so far
	built    int             // number of kustomizations that were built because they were not cached

	chartSteps int64 // limit of the steps of the renderings of a commit
}

// NewLoader returns a Loader with an empty cache. The options must be valid.
func NewLoader(opts Options) *Loader {
	opts.Path = path.Clean("./" + opts.Path)
	opts.Limits = opts.Limits.WithDefaults()
	l := &Loader{opts: opts, cache: map[cacheKey]*parsed{}, overlays: map[*item]*knownOverlay{}, chartSteps: maxChartSteps}
	if opts.Keys != nil {
		l.plain = &plaintexts{keys: opts.Keys, files: map[string][]*decrypted{}, gone: map[string]int{}}
	}
	return l
}

// Load reads one commit. The error is a *LoadError if the commit is invalid, and any other error
// if it cannot be read. Objects, placements and everything else that has not changed since the
// last loads keep their pointers.
func (l *Loader) Load(commit Commit, fsys fs.FS) (s *Snapshot, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if fault := recover(); fault != nil {
			s, err = nil, fmt.Errorf("load commit %s: %w", commit.Hash, l.panicked(commit, fault))
		}
	}()
	l.schemas = &schema.Sharing{}
	defer func() { l.schemas = nil }()
	l.trimCache()
	t := tree.New(fsys, l.opts.Limits.FileSize)
	if l.plain != nil {
		l.plain.version = l.opts.Keys.Version()
		t = t.Decrypted(l.plain)
	}
	snapshot, err := l.read(commit, t)
	l.plain.forgetGone(t)
	if broken, ok := errors.AsType[*LoadError](err); ok {
		l.plain.mask(broken.Problems)
	}
	if err != nil {
		return nil, fmt.Errorf("load commit %s: %w", commit.Hash, err)
	}
	l.plain.mask(snapshot.Warnings)
	return snapshot, nil
}

// panicked returns the error for a commit whose loading panicked. It is refused, so that nobody who can push ends the daemon that
// way. The cache is emptied, because the load may have left it incomplete. Problems are published, also to pull requests, so that
// only a log gets the value of the panic if there is one.
func (l *Loader) panicked(commit Commit, fault any) *LoadError {
	l.cache, l.overlays = map[cacheKey]*parsed{}, map[*item]*knownOverlay{}
	value, message := l.plain.scrub(fmt.Sprint(fault)), "internal error of gitfleet; see its log, and revert the commit meanwhile"
	if l.opts.LogPanic != nil {
		l.opts.LogPanic(commit, value, string(debug.Stack()))
	} else {
		message = fmt.Sprintf("internal error of gitfleet: %s; report that, and revert the commit meanwhile", value)
	}
	return &LoadError{Internal: true, Problems: problem.List{{Severity: problem.Error, Message: message}}}
}

func (l *Loader) read(commit Commit, t *tree.Tree) (*Snapshot, error) {
	lockFile := path.Join(l.opts.Path, lockfile.Name)
	found, err := walk.Below(t, l.opts.Path, walk.Options{Limits: l.opts.Limits, Grants: l.opts.Grants, LockFile: lockFile})
	if err != nil {
		return nil, err
	}
	lock, problems, err := l.lock(t, lockFile)
	if err != nil {
		return nil, err
	}
	found.Problems = append(found.Problems, problems...)
	remotes := build.Remotes{Lock: lock, LockFile: lockFile, Files: l.opts.Bases, Charts: l.opts.Charts}
	g, err := build.Read(t, found.Kustomizations, l.opts.Limits, remotes)
	if err != nil {
		return nil, err
	}
	o := newOverlays(l.opts.Path, remotes)
	s, err := l.readHub(commit, t, found, g, o)
	var bad *LoadError
	if errors.As(err, &bad) {
		bad.Bases, bad.Charts = g.Uses(), o.remoteUses(g)
	}
	if err != nil {
		return nil, err
	}
	s.Bases, s.Charts = g.Uses(), o.remoteUses(g)
	return s, nil
}

// lock reads the lock file, if there is one.
func (l *Loader) lock(t *tree.Tree, name string) (lockfile.File, problem.List, error) {
	if l.opts.Lock != nil {
		return *l.opts.Lock, nil, nil
	}
	if is, err := t.IsFile(name); err != nil || !is {
		return lockfile.File{}, nil, err
	}
	data, fault, err := t.Read(name)
	if err != nil {
		return lockfile.File{}, nil, err
	}
	if fault != "" {
		return lockfile.File{}, problem.List{{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: fault}}, nil
	}
	lock, problems := lockfile.Read(name, data, l.opts.Limits)
	return lock, problems, nil
}

// readHub reads the files of the hub.
func (l *Loader) readHub(commit Commit, t *tree.Tree, found *walk.Files, g *build.Graph, o *overlays) (*Snapshot, error) {
	a, err := l.assemble(t, found, g, o)
	if err != nil {
		return nil, err
	}
	if a.full { // parts of the commit were not read, and the checks would report them as missing
		return nil, &LoadError{Problems: a.problems.Sort()}
	}
	if err := a.checkCustom(t, a.definitions()); err != nil {
		return nil, err
	}
	if err := l.buildOverlays(t, g, a, o); err != nil {
		return nil, err
	}
	if err := l.renderCharts(t, g, a, o); err != nil {
		return nil, err
	}
	a.problems = o.withoutMeantCharts(a.problems)
	if a.full {
		return nil, &LoadError{Problems: a.problems.Sort()}
	}
	for _, r := range g.References() {
		a.problems = append(a.problems, a.grants.CheckReference(r)...)
	}
	for _, c := range g.Charts() {
		a.checkUnreadBy(c.Kustomization, c.Dir, c.File)
	}
	a.problems = append(a.problems, g.Problems()...)
	a.exclude(found.Excluded, o)
	return a.finish(commit, l.opts.GateServers)
}

// assemble reads the files and kustomizations of the hub. What its overlays build is no part of it, and which overlays
// there are is known only once it is read: it is read again without what they build, until nothing changes.
func (l *Loader) assemble(t *tree.Tree, found *walk.Files, g *build.Graph, o *overlays) (*assembly, error) {
	for {
		o.rendered = map[string]build.ChartUse{}
		for _, c := range slices.Backward(g.Charts()) { // the first of a directory
			o.rendered[c.Dir] = c
		}
		a := &assembly{limits: l.opts.Limits, grants: l.opts.Grants, lockFile: o.remotes.LockFile, scrub: l.plain.scrub, problems: o.problems(found.Problems), sources: map[string][]string{}, invalid: invalidObjects{}, objectFiles: map[string]bool{}, rendered: map[string]int64{}, size: g.Size}
		if a.size > a.limits.CommitSize {
			a.tooLarge(api.Origin{Path: g.Last})
			return a, nil
		}
		if err := l.readFiles(t, o.loose(found.Manifests), g, a); err != nil || a.full {
			return a, err
		}
		grown, err := o.find(t, a)
		if err != nil {
			return nil, err
		}
		if !grown {
			read := len(a.items)
			if err := l.build(g, a); err != nil || a.full {
				return a, err
			}
			if !slices.ContainsFunc(a.items[read:], func(it *item) bool { return it.cluster != nil || it.isBuilder() }) {
				return a, nil
			}
			if grown, err = o.find(t, a); err != nil || !grown {
				return a, err
			}
		}
		if err := g.Add(slices.Collect(maps.Keys(o.dirs))); err != nil {
			return nil, err
		}
		g.Arrange(slices.DeleteFunc(slices.Clone(found.Kustomizations), o.has), o.dirs)
	}
}

// A file is a manifest that belongs to no kustomization.
type file struct {
	key    cacheKey
	data   []byte
	parsed *parsed // nil if the file is not parsed yet
}

const (
	batchFiles = 16
	// smallFile is the size in bytes up to which files are parsed concurrently: while a file is
	// parsed, it takes much more memory than its text.
	smallFile = 64 << 10
)

// readFiles reads the manifests that belong to no kustomization. Parsing takes most of the time of
// a load. Therefore the small files of a batch are parsed concurrently, each within a share of the
// memory that is left. A large file, and one that needs more than its share, is parsed alone.
func (l *Loader) readFiles(t *tree.Tree, names []string, g *build.Graph, a *assembly) error {
	for batch := range slices.Chunk(names, batchFiles) {
		files, err := l.readBatch(t, batch, g, a)
		if err != nil {
			return err
		}
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		share := a.rest() / batchFiles
		for _, f := range files {
			if f.parsed == nil && len(f.data) <= smallFile {
				group.Go(func() error {
					f.parsed = parseFile(f.key.path, f.data, l.opts.Limits, share)
					return nil
				})
			}
		}
		_ = group.Wait() // parseFile returns no error
		for _, f := range files {
			if f.parsed == nil || f.parsed.Cut {
				f.parsed = parseFile(f.key.path, f.data, l.opts.Limits, a.rest())
			}
			if f.data != nil {
				l.plain.markSecrets(f.parsed, "", f.key.path)
			}
			l.keep(f.key, f.parsed)
			a.objectFiles[f.key.path] = f.parsed.objects
			a.unread = a.unread || slices.ContainsFunc(f.parsed.Problems, func(p problem.Problem) bool { return p.Severity == problem.Error && p.Field == "" })
			if a.add(f.parsed); a.full {
				return nil
			}
		}
	}
	return nil
}

// readBatch returns the files of a batch that belong to no kustomization. Files that are not in the
// cache are read.
func (l *Loader) readBatch(t *tree.Tree, names []string, g *build.Graph, a *assembly) ([]*file, error) {
	var files []*file
	for _, name := range names {
		if owner, listed := g.Owner(name); owner != "" {
			if !listed {
				a.problems = append(a.problems, a.grants.CheckRead(owner, name)...)
				a.excluded = append(a.excluded, Exclusion{Path: name, Why: owner + " is the kustomization of its directory and does not list it"})
				if !g.IsUnread(owner) {
					a.problem(problem.Warning, api.Origin{Path: name}, "", "not read, since %s is the kustomization of this directory and does not list it; add it there, or list it in %s", owner, tree.IgnoreFile)
				}
			}
			continue
		}
		if a.grants.Shared(name) {
			a.problem(problem.Warning, api.Origin{Path: name}, "", "not read, since it is in a shared base, which is deployed only by kustomizations that refer to it")
			continue
		}
		hash, err := t.Hash(name)
		if err != nil {
			return nil, err
		}
		f := &file{key: cacheKey{path: name, hash: hash}}
		if f.parsed = l.cache[f.key]; f.parsed == nil {
			var fault string
			if f.data, fault, err = t.Read(name); err != nil {
				return nil, err
			}
			if fault != "" {
				f.parsed = &parsed{}
				f.parsed.Problems = problem.List{{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: fault}}
			}
		}
		files = append(files, f)
	}
	return files, nil
}
