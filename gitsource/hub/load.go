package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
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

// A LoadError says that a commit is invalid. Other errors of Load mean that the commit could
// not be read.
type LoadError struct {
	// Problems are all problems, including warnings, in order.
	Problems problem.List
	// Bases are the remote bases of the kustomizations that were read.
	Bases []RemoteBase
	// Charts are the charts of registries and chart repositories that objects ask for.
	Charts []RemoteChart
	// Internal says that loading the commit panicked.
	Internal bool
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

	mu       sync.Mutex
	cache    map[cacheKey]*parsed
	overlays map[*item]*knownOverlay
	plain    *plaintexts     // nil without keys
	schemas  *schema.Sharing // of the definitions that a load reads
	loads    int             // number of loads so far
	built    int             // number of kustomizations that were built because they were not cached

	chartSteps int64 // limit of the steps of the renderings of a commit
}

// A cacheKey identifies a file by its path, which is the origin of its objects, and the hash of
// its content; or a build by its kustomization file and all that it reads, and the namespace of
// objects without one if it is for an overlay.
type cacheKey struct {
	path, hash string
	build      bool
	overlay    string
}

// A parsed has the items of one file or one build.
type parsed struct {
	document.File
	items []*item
	// invalid are the objects that have problems of their own, so that they are not among the items.
	invalid []api.ID
	uses    []listitem.Use
	used    int // number of the last load that used it
	// unreadable are the documents of which nothing says which objects they have. forClusters says that a build is for clusters, and
	// fails as a whole if it has such a document.
	unreadable  []api.Origin
	forClusters bool
	objects     bool             // a document says that it is an object, which may be invalid
	steps       int64            // those of a rendering
	charts      map[string]int64 // the steps of the charts of a kustomization, by what identifies a rendering
	transient   bool             // a build that failed for a reason that may be gone at the next load
	templates   []template       // objects with variables that are replaced for each cluster
	names       []string         // those of the variables; nil until they are needed
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

// trimCache keeps what the last two loads used, so that alternating between two commits is cheap,
// or what the last one used, if both exceed the memory limit of a commit.
func (l *Loader) trimCache() {
	l.loads++
	maps.DeleteFunc(l.overlays, func(_ *item, known *knownOverlay) bool { return known.used < l.loads-2 })
	keep := func(loads int) (size int64) {
		for key, p := range l.cache {
			if p.used < l.loads-loads {
				delete(l.cache, key)
			}
			size += p.Size
		}
		return size
	}
	if keep(2) > l.opts.Limits.CommitSize {
		keep(1)
	}
}

// keep records that this load uses a result, and caches it unless it is incomplete.
func (l *Loader) keep(key cacheKey, p *parsed) {
	if p.used == 0 {
		p.share(l.schemas)
	}
	p.used = l.loads
	if !p.Cut && !p.transient {
		l.cache[key] = p
	}
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
	return a.finish(commit)
}

// assemble reads the files and kustomizations of the hub. What its overlays build is no part of it, and which overlays
// there are is known only once it is read: it is read again without what they build, until nothing changes.
func (l *Loader) assemble(t *tree.Tree, found *walk.Files, g *build.Graph, o *overlays) (*assembly, error) {
	for {
		o.rendered = map[string]build.ChartUse{}
		for _, c := range slices.Backward(g.Charts()) { // the first of a directory
			o.rendered[c.Dir] = c
		}
		a := &assembly{limits: l.opts.Limits, grants: l.opts.Grants, gateServers: l.opts.GateServers, lockFile: o.remotes.LockFile, scrub: l.plain.scrub, problems: o.problems(found.Problems), sources: map[string][]string{}, invalid: invalidObjects{}, objectFiles: map[string]bool{}, rendered: map[string]int64{}, size: g.Size}
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

// parseFile parses a file and validates each object in it.
func parseFile(name string, data []byte, limits Limits, maxSize int64) *parsed {
	out := &parsed{}
	out.File = document.Read(name, data, limits, maxSize, out.addItems)
	return out
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
		if a.grants.Shared(t.File) {
			t.Drop("it is a shared base, which is deployed only by kustomizations that refer to it")
			continue
		}
		p, err := l.buildTarget(t, a, "")
		if err != nil || a.full {
			return err
		}
		if !t.Valid() || p.Problems.HasErrors() {
			base, err := t.IsOnlyBase()
			if err != nil {
				return err
			}
			if base {
				t.Drop("by itself it cannot be built, since its objects have no namespace")
				a.addUnused(p)
				continue
			}
			t.Hint()
		}
		if a.add(p); t.Valid() {
			a.sources[t.File] = t.Sources()
		}
	}
	a.unused = g.Unused()
	return nil
}

// buildTarget builds a kustomization, unless the result is cached. The result is empty if the
// kustomization has problems. For an overlay, namespace is that of objects without one, after a slash, and a dollar sign follows if
// variables are replaced in what is built.
func (l *Loader) buildTarget(t build.Target, a *assembly, overlay string) (*parsed, error) {
	if !t.Valid() {
		return &parsed{}, nil
	}
	fingerprint, err := t.Fingerprint()
	if err != nil {
		return nil, err
	}
	key := cacheKey{t.File, fingerprint, true, overlay}
	p := l.cache[key]
	if p == nil {
		l.built++
		p = &parsed{}
		visit := p.addItems
		if namespace, is := strings.CutPrefix(overlay, "/"); is {
			p.forClusters, visit = true, p.addItemsIn(namespace)
			if namespace, is := strings.CutSuffix(namespace, "$"); is {
				visit = p.addTemplatesIn(namespace)
			}
		}
		var built build.Built
		built, p.transient, err = t.Build(a.rest(), visit)
		if errors.Is(err, build.ErrBusy) && a.timedOut {
			a.full = true // the build that timed out, for which the commit is refused, still runs
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		p.File, p.uses, p.charts = built.File, built.Uses, built.Charts
		l.plain.markSecrets(p, t.File, t.Sources()...)
	}
	a.timedOut = a.timedOut || p.transient
	l.keep(key, p)
	l.countCharts(a, t, p)
	return p, nil
}
