// Package charts keeps Helm charts of registries and of chart repositories in a cache on disk.
//
// Cache.Lock finds the newest chart of a range of versions and the digest of its archive, Cache.Fetch fetches an archive by its
// digest, and Cache.Files returns the files of one in the cache, without the network.
package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Config configures a cache.
type Config struct {
	// Dir is the directory of the cache, which is created if necessary.
	Dir string
	// Hosts are the credentials for servers.
	Hosts remote.Hosts
	// Getenv returns the environment variables that credentials name; nil refuses them.
	Getenv func(string) string
	// Limits limit what a server can cause.
	Limits Limits
}

// Limits limit one chart. All fields must be set.
type Limits struct {
	// ArchiveBytes limits a packed chart, and UnpackedBytes and Files what is in it.
	ArchiveBytes, UnpackedBytes int64
	Files                       int
	// Time limits all that is asked of servers for one chart.
	Time time.Duration
}

// A Cache has the charts in a directory, each under its digest, which processes may share. It is safe for concurrent use.
type Cache struct {
	cfg Config
	// fetching limits how many charts are in memory at the same time while they are fetched.
	fetching chan struct{}

	mu     sync.Mutex
	known  map[string]*listing // by digest
	failed map[string]error    // the last attempts to fetch that have failed, by digest
}

// New returns the cache in a directory.
func New(cfg Config) *Cache {
	return &Cache{cfg: cfg, fetching: make(chan struct{}, atOnce), known: map[string]*listing{}, failed: map[string]error{}}
}

// atOnce is how many charts are fetched at the same time.
const atOnce = 2

// begin waits until another chart may be fetched.
func (c *Cache) begin(ctx context.Context) (end func(), err error) {
	select {
	case c.fetching <- struct{}{}:
		return func() { <-c.fetching }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNotFetched is the reason why a chart is not in the cache if nothing is known about an attempt to fetch it.
var errNotFetched = errors.New("it was not fetched yet; gitfleet lock fetches what is missing here, and the daemon what it needs")

// Files returns the files of a chart in the cache. It does not use the network.
func (c *Cache) Files(chart lockfile.Chart) (fs.FS, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.path(chart.Digest)
	now := time.Now()
	if l := c.known[chart.Digest]; l != nil && os.Chtimes(name, now, now) == nil { // says that it is used; it is fetched again if it is removed
		return &files{listing: l, read: func() (map[string][]byte, error) { return c.content(chart.Digest) }}, nil
	}
	delete(c.known, chart.Digest)
	content, err := c.content(chart.Digest)
	if err != nil {
		if failed := c.failed[chart.Digest]; failed != nil {
			return nil, failed
		}
		return nil, errNotFetched
	}
	_ = os.Chtimes(name, now, now) // as above
	c.known[chart.Digest] = list(chart.Digest, content)
	return &files{listing: c.known[chart.Digest], content: content}, nil
}

// content reads and unpacks an archive in the cache. One that is damaged counts as missing.
func (c *Cache) content(digest string) (map[string][]byte, error) {
	packed, err := os.ReadFile(c.path(digest))
	if err != nil {
		return nil, err
	}
	if digestOf(packed) != digest {
		return nil, fmt.Errorf("%s is damaged", c.path(digest))
	}
	return unpack(packed, c.cfg.Limits)
}

func (c *Cache) path(digest string) string {
	return filepath.Join(c.cfg.Dir, strings.TrimPrefix(digest, "sha256:")+".tgz")
}

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fetch fetches a chart into the cache, unless it is there.
func (c *Cache) Fetch(ctx context.Context, chart lockfile.Chart) error {
	if _, err := c.Files(chart); err == nil {
		return nil
	}
	err := c.fetch(ctx, chart)
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.failed, chart.Digest); err != nil {
		c.failed[chart.Digest] = err
	}
	return err
}

func (c *Cache) fetch(ctx context.Context, chart lockfile.Chart) error {
	end, err := c.begin(ctx)
	if err != nil {
		return c.explain(ctx, chart.Request, nil, err)
	}
	defer end()
	ctx, cancel := c.withTime(ctx)
	defer cancel()
	s, err := c.source(chart.Repository)
	if err != nil {
		return c.explain(ctx, chart.Request, nil, err)
	}
	packed, err := s.archive(ctx, chart)
	if err == nil {
		err = c.store(chart.Digest, packed)
	}
	return c.explain(ctx, chart.Request, s, err)
}

// Lock finds the newest version of a chart that is asked for, and fetches it into the cache.
func (c *Cache) Lock(ctx context.Context, asked lockfile.Request) (chart lockfile.Chart, err error) {
	end, err := c.begin(ctx)
	if err != nil {
		return chart, c.explain(ctx, asked, nil, err)
	}
	defer end()
	ctx, cancel := c.withTime(ctx)
	defer cancel()
	s, err := c.source(asked.Repository)
	if err != nil {
		return chart, c.explain(ctx, asked, nil, err)
	}
	chart, packed, err := s.find(ctx, asked)
	if err == nil {
		err = c.store(chart.Digest, packed)
	}
	return chart, c.explain(ctx, asked, s, err)
}

// A source is a registry or a chart repository.
type source interface {
	// archive returns the archive of a chart that is locked.
	archive(ctx context.Context, chart lockfile.Chart) ([]byte, error)
	// find returns the newest version of a chart, and its archive.
	find(ctx context.Context, asked lockfile.Request) (lockfile.Chart, []byte, error)
	// mask removes credentials from an error.
	mask(err error) error
}

func (c *Cache) source(repository string) (source, error) {
	if rest, is := strings.CutPrefix(repository, "oci://"); is {
		return newRegistry(c.cfg, rest)
	}
	return newIndexed(c.cfg, repository)
}

func (c *Cache) withTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.cfg.Limits.Time, fmt.Errorf("it took longer than %s (limits.fetchTime)", c.cfg.Limits.Time))
}

// explain returns an error about a chart, without credentials.
func (c *Cache) explain(ctx context.Context, asked lockfile.Request, s source, err error) error {
	if err == nil {
		return nil
	}
	if s != nil {
		err = s.mask(err)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("fetch chart %s: %s", remote.Redact(asked.String()), remote.Redact(err.Error()))
}

// store adds an archive to the cache, if it is one.
func (c *Cache) store(digest string, packed []byte) error {
	if got := digestOf(packed); got != digest {
		return fmt.Errorf("what the server sent has the digest %s, and not %s, which is locked", got, digest)
	}
	if _, err := unpack(packed, c.cfg.Limits); err != nil {
		return err
	}
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.prune(time.Now()); err != nil {
		return err
	}
	return atomicfile.Write(c.path(digest), func(w io.Writer) error { _, err := w.Write(packed); return err })
}

// keepUnused is how long a chart stays in the cache that no process has read, and incomplete how long what a process that was
// killed has left behind.
const (
	keepUnused = 30 * 24 * time.Hour
	incomplete = time.Hour
)

// prune removes what no process has used for keepUnused.
func (c *Cache) prune(now time.Time) error {
	entries, err := os.ReadDir(c.cfg.Dir)
	for _, e := range entries {
		age := keepUnused
		if strings.HasPrefix(e.Name(), ".") {
			age = incomplete
		}
		if info, fault := e.Info(); fault == nil && info.ModTime().Before(now.Add(-age)) {
			err = errors.Join(err, os.Remove(filepath.Join(c.cfg.Dir, e.Name())))
		}
	}
	return err
}
