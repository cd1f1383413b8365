package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Bases are commits of other repositories, which kustomizations use as remote bases. They are cached below a directory,
// each under its hash, which processes may share. It is safe for concurrent use.
type Bases struct {
	cfg   Config
	dir   string
	hosts *hostlimit.Hosts

	mu     sync.Mutex
	stores baseStores
	failed map[string]error // the last attempts to fetch that have failed
	trees  *objects.TreeCache
}

// NewBases returns the bases that are cached below a directory, which need not exist. Its repositories are accessed with the
// limits, the CAs, the known hosts and the permissions of cfg, those on the host of cfg.URL with its credentials, and others
// with those of cfg.Hosts. Of cfg.Hooks only Fetching is called. hosts limits what fetches from them take, and may be shared with what else is fetched from there.
func NewBases(dir string, cfg Config, hosts *hostlimit.Hosts) *Bases {
	cfg = cfg.withDefaults()
	return &Bases{cfg: cfg, dir: dir, hosts: hosts, stores: newBaseStores(dir), failed: map[string]error{}, trees: objects.NewTreeCache(treeCache)}
}

// Files returns the files of a commit in the cache. It does not use the network.
func (b *Bases) Files(url, commit string) (fs.FS, error) {
	h, err := objects.ParseHash(commit)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	base, err := b.stores.open(h, time.Now())
	if failed := b.failed[url+"@"+commit]; err != nil && failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	b.stores.closeOthers(base, time.Now())
	c, err := readCommit(base.store, h)
	if err != nil {
		return nil, err
	}
	reader := baseReader{b, h}
	return &files{ctx: context.Background(), objects: reader, root: c.Tree, time: c.Time, commit: commit}, nil
}

// Fetch fetches a commit of a repository into the cache, unless it is there.
func (b *Bases) Fetch(ctx context.Context, url, commit string) error {
	h, err := objects.ParseHash(commit)
	if err != nil {
		return err
	}
	if _, err := b.Files(url, commit); err == nil {
		return nil
	}
	_, err = b.fetch(ctx, url, func(*packp.AdvRefs) (plumbing.Hash, error) { return h, nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.failed, url+"@"+commit); err != nil {
		b.failed[url+"@"+commit] = err
	}
	return err
}

// Lock finds the commit of a reference, and fetches it into the cache. An empty reference is the default branch; others are
// a branch, a tag or a whole hash.
func (b *Bases) Lock(ctx context.Context, url, ref string) (commit string, err error) {
	h, err := b.fetch(ctx, url, func(refs *packp.AdvRefs) (plumbing.Hash, error) { return tipOf(refs, ref) })
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// tipOf finds the object of a reference.
func tipOf(refs *packp.AdvRefs, ref string) (plumbing.Hash, error) {
	if ref == "" {
		if refs.Head == nil {
			return plumbing.ZeroHash, fmt.Errorf("the default branch: %w", ErrRefNotFound)
		}
		return *refs.Head, nil
	}
	for _, form := range append([]string{"%s"}, referenceForms[:3]...) {
		if h, ok := refs.References[fmt.Sprintf(form, ref)]; ok {
			return h, nil
		}
	}
	if h, err := objects.ParseHash(ref); err == nil {
		return h, nil
	}
	return plumbing.ZeroHash, fmt.Errorf("branch or tag %s: %w; a commit is named by its whole hash", ref, ErrRefNotFound)
}

// fetch fetches the object that find finds among the references of a repository, and returns its commit.
func (b *Bases) fetch(ctx context.Context, url string, find func(*packp.AdvRefs) (plumbing.Hash, error)) (plumbing.Hash, error) {
	h, err := b.fetchObject(ctx, url, find)
	if err != nil {
		return h, fmt.Errorf("fetch %s: %s", remote.Redact(url), remote.Redact(err.Error()))
	}
	return h, nil
}

func (b *Bases) fetchObject(ctx context.Context, url string, find func(*packp.AdvRefs) (plumbing.Hash, error)) (commit plumbing.Hash, err error) {
	where, err := remote.ParseLocation(url)
	if err != nil {
		return commit, err
	}
	err = b.hosts.Fetch(ctx, where.Host(), func(share *hostlimit.Share) (err error) {
		commit, err = b.fetchShare(ctx, where, find, share)
		return err
	})
	return commit, err
}

// fetchShare fetches an object within the share of a host, and returns its commit.
func (b *Bases) fetchShare(ctx context.Context, where remote.Location, find func(*packp.AdvRefs) (plumbing.Hash, error), share *hostlimit.Share) (commit plumbing.Hash, err error) {
	limits := b.cfg.Limits.ofBase(share)
	ctx, cancel := limits.withFetchTime(ctx)
	defer cancel()
	from, err := b.remote(where, limits)
	if err != nil {
		return commit, err
	}
	defer from.Close()
	s, err := from.Session(ctx)
	if err != nil {
		return commit, orCause(ctx, err)
	}
	defer func() {
		share.Add(s.Received())
		_ = s.Close() // nothing was written
	}()
	refs, err := b.list(ctx, s)
	if err != nil {
		return commit, orCause(ctx, err)
	}
	want, err := find(refs)
	if err != nil {
		return commit, err
	}
	end, err := b.cfg.Hooks.fetching(want)
	if err != nil {
		return commit, err
	}
	defer end()
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return commit, err
	}
	if err := b.prune(time.Now()); err != nil {
		return commit, err
	}
	dir, err := os.MkdirTemp(b.dir, ".fetching-")
	if err != nil {
		return commit, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if commit, err = receive(ctx, s, dir, refs, want, limits); err != nil {
		return commit, orCause(ctx, err)
	}
	if st, err := objects.Load(b.stores.path(commit)); err == nil {
		return commit, st.Close() // another process was faster
	}
	if err := b.makeRoom(dir); err != nil {
		return commit, err
	}
	return commit, errors.Join(os.RemoveAll(b.stores.path(commit)), os.Rename(dir, b.stores.path(commit)))
}

func (b *Bases) list(ctx context.Context, s remote.Session) (*packp.AdvRefs, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Limits.ListTime)
	defer cancel()
	refs, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list references: %w", err)
	}
	return refs, nil
}

// receive fetches an object into a new store, and returns its commit, which is complete.
func receive(ctx context.Context, s remote.Session, dir string, refs *packp.AdvRefs, want plumbing.Hash, limits Limits) (commit plumbing.Hash, err error) {
	st, err := objects.Create(dir)
	if err != nil {
		return commit, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	wants := fetchTargets(refs, want).wants
	pack, err := s.Fetch(ctx, remote.FetchRequest{Wants: wants, Has: st.Has, Shallow: len(wants) == 1 && wants[0] == want})
	if err != nil {
		return commit, err
	}
	if err := errors.Join(st.AddPack(ctx, pack, limits.pack()), pack.Close()); err != nil {
		return commit, err
	}
	if !st.Has(want) {
		return commit, fmt.Errorf("commit %s: %w", want, ErrRefNotFound)
	}
	if commit, err = st.Peel(want); err != nil {
		return commit, err
	}
	c, err := readCommit(st, commit)
	if err != nil {
		return commit, err
	}
	return commit, objects.Complete(ctx, st, c.Tree, noneKnown)
}

// remote returns a repository. The credentials of the source are sent to its host only, and those of other hosts to these.
func (b *Bases) remote(where remote.Location, limits Limits) (remote.Remote, error) {
	cfg := b.cfg
	cfg.Limits = limits
	host, known := cfg.Hosts.Of(where.Server())
	switch {
	case known:
		cfg.Auth, cfg.AllowHTTP = host.Auth.Or(cfg.Auth), cfg.AllowHTTP || host.PlainHTTP
	case !where.SameServer(cfg.URL):
		cfg.Auth = cfg.Auth.Anonymous()
	}
	if err := cfg.validateScheme(where.Scheme); err != nil {
		return nil, err
	}
	if where.Scheme == "ssh" && (cfg.Auth.SSH.Key.IsZero() || cfg.Auth.SSH.KnownHosts == "") {
		return nil, errors.New("a repository over SSH needs sshKeyFile and sshKnownHosts in the configuration, of source or of an entry of hosts; set them, or use https://")
	}
	return remote.New(cfg.remote(), where)
}

const (
	// cacheFetches says how many times as much as one fetch all commits in the cache may take.
	cacheFetches = 8
	// baseObjects, baseObject and baseUnpacked limit one fetch, like Limits.Objects, ObjectBytes and UnpackedBytes.
	baseObjects  = 500_000
	baseObject   = 32 * mib
	baseUnpacked = 4 << 30
)

// ofBase lowers the limits of a fetch to those of bases, and of the share of a host.
func (l Limits) ofBase(share *hostlimit.Share) Limits {
	l.FetchTime, l.FetchBytes = min(l.FetchTime, share.Time), min(l.FetchBytes, share.Bytes)
	l.Objects, l.ObjectBytes, l.UnpackedBytes = min(l.Objects, baseObjects), min(l.ObjectBytes, baseObject), min(l.UnpackedBytes, baseUnpacked)
	return l
}

// keepUnused is how long a commit stays in the cache that no process has opened.
const keepUnused = 30 * 24 * time.Hour

// prune removes incomplete fetches of processes that were killed, and commits that no process has used for keepUnused.
func (b *Bases) prune(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		age := keepUnused
		if strings.HasPrefix(e.Name(), ".") {
			age = 2 * b.cfg.Limits.FetchTime
		}
		h, _ := objects.ParseHash(e.Name()) // zero for what is incomplete
		info, fault := e.Info()
		if fault == nil && b.stores.used[h] == nil && info.ModTime().Before(now.Add(-age)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, e.Name())))
		}
	}
	return err
}

// makeRoom removes commits that this process does not use now, those first that were not used for longest, until there is room
// for what was fetched into a directory.
func (b *Bases) makeRoom(fetched string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	type commit struct {
		hash  plumbing.Hash
		bytes int64
		last  time.Time
	}
	var unused []commit
	sum, now := sizeOf(fetched), time.Now()
	for _, e := range entries {
		h, err := objects.ParseHash(e.Name())
		if err != nil {
			continue
		}
		c := commit{hash: h, bytes: sizeOf(b.stores.path(h))}
		sum += c.bytes
		info, err := e.Info()
		base := b.stores.used[h]
		if err != nil || base != nil && !base.idle(now) {
			continue
		}
		if c.last = info.ModTime(); base != nil {
			c.last = base.last
		}
		unused = append(unused, c)
	}
	slices.SortFunc(unused, func(x, y commit) int { return x.last.Compare(y.last) })
	most := cacheFetches * b.cfg.Limits.FetchBytes
	for _, c := range unused {
		if sum <= most {
			return nil
		}
		if err := b.stores.remove(c.hash); err != nil {
			return err
		}
		sum -= c.bytes
	}
	if sum > most {
		return fmt.Errorf("%w: all remote bases in use take more than %d MiB (%d times limits.fetchBytes)", ErrTooLarge, most>>20, cacheFetches)
	}
	return nil
}

// sizeOf returns the size of the files in a directory. What cannot be read counts nothing.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// A baseReader reads the objects of one commit in the cache.
type baseReader struct {
	bases  *Bases
	commit plumbing.Hash
}

// read calls f with the store, which is not closed meanwhile.
func (r baseReader) read(f func(*objects.Store) error) error {
	r.bases.mu.Lock()
	base, err := r.bases.stores.open(r.commit, time.Now())
	if err != nil {
		r.bases.mu.Unlock()
		return err
	}
	base.reading.RLock()
	defer base.reading.RUnlock()
	r.bases.mu.Unlock()
	return f(base.store)
}

func (r baseReader) object(t plumbing.ObjectType, h plumbing.Hash) (content []byte, err error) {
	err = r.read(func(st *objects.Store) error {
		content, err = st.Object(t, h, r.bases.cfg.Limits.FileBytes)
		return err
	})
	return content, err
}

func (r baseReader) size(h plumbing.Hash) (n int64, err error) {
	err = r.read(func(st *objects.Store) error {
		n, err = st.Size(h)
		return err
	})
	return n, err
}

func (r baseReader) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	return r.bases.trees.Read(h, r.readTree)
}

func (r baseReader) entry(dir plumbing.Hash, name string) (object.TreeEntry, bool, error) {
	return r.bases.trees.Find(dir, name, r.readTree)
}

func (r baseReader) readTree(h plumbing.Hash) (entries []object.TreeEntry, err error) {
	err = r.read(func(st *objects.Store) error {
		entries, err = st.Tree(h)
		return err
	})
	return entries, err
}
