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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// A Cache has the charts in a directory, each under its digest, which processes may share. It is safe for concurrent use.
type Cache struct {
	cfg Config
	// checking limits how many charts are in memory at the same time while they are checked.
	checking chan struct{}

	mu     sync.Mutex
	known  map[string]*listing // by digest
	failed map[string]error    // the last attempts to fetch that have failed, by digest
}

// New returns the cache in a directory.
func New(cfg Config) *Cache {
	return &Cache{cfg: cfg, checking: make(chan struct{}, atOnce), known: map[string]*listing{}, failed: map[string]error{}}
}

// atOnce is how many charts are checked at the same time.
const atOnce = 2

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
	s, err := c.source(chart.Repository)
	if err != nil {
		return explain(chart.Request, err)
	}
	packed, err := s.archive(ctx, chart)
	if err == nil {
		err = c.store(ctx, chart.Digest, packed)
	}
	return explain(chart.Request, err)
}

// Lock finds the newest version of a chart that is asked for, and fetches it into the cache.
func (c *Cache) Lock(ctx context.Context, asked lockfile.Request) (chart lockfile.Chart, err error) {
	s, err := c.source(asked.Repository)
	if err != nil {
		return chart, explain(asked, err)
	}
	chart, packed, err := s.find(ctx, asked)
	if err == nil {
		err = c.store(ctx, chart.Digest, packed)
	}
	return chart, explain(asked, err)
}

func (c *Cache) source(repository string) (source, error) {
	if rest, is := strings.CutPrefix(repository, "oci://"); is {
		return newRegistry(c.cfg, rest), nil
	}
	return newIndexed(c.cfg, repository)
}

// explain returns an error about a chart.
func explain(asked lockfile.Request, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fetch chart %s: %s", remote.Redact(asked.String()), remote.Redact(err.Error()))
}

// store moves an archive into the cache, if it is a chart, and otherwise removes it.
func (c *Cache) store(ctx context.Context, digest string, packed archive) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(packed.path))
		}
	}()
	if packed.digest != digest {
		return fmt.Errorf("what the server sent has the digest %s, and not %s, which is locked", packed.digest, digest)
	}
	if err := c.check(ctx, packed.path); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.prune(time.Now()), c.makeRoom(packed.path, time.Now())); err != nil {
		return err
	}
	return os.Rename(packed.path, c.path(digest))
}

// check returns an error if a file is no chart.
func (c *Cache) check(ctx context.Context, name string) error {
	select {
	case c.checking <- struct{}{}:
		defer func() { <-c.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	packed, err := os.ReadFile(name)
	if err == nil {
		_, err = unpack(packed, c.cfg.Limits)
	}
	return err
}

// keepUnused is how long a chart stays in the cache that no process has read, keepUsed how long one stays in any case, and
// incomplete how long what a process that was killed has left behind.
const (
	keepUnused = 30 * 24 * time.Hour
	keepUsed   = time.Hour
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

// makeRoom removes charts, those first that were not used for longest, until there is room for an archive.
func (c *Cache) makeRoom(packed string, now time.Time) error {
	added, err := os.Stat(packed)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		return err
	}
	sum := added.Size()
	var unused []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), ".") { // one that another process has removed, or is receiving
			continue
		}
		if sum += info.Size(); now.Sub(info.ModTime()) > keepUsed {
			unused = append(unused, info)
		}
	}
	slices.SortFunc(unused, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range unused {
		if sum <= c.cfg.Limits.CacheBytes {
			return nil
		}
		if err := os.Remove(filepath.Join(c.cfg.Dir, info.Name())); err != nil {
			return err
		}
		sum -= info.Size()
	}
	if sum > c.cfg.Limits.CacheBytes {
		return fmt.Errorf("all charts that were used within %s take more than %s", keepUsed, limit.Size(c.cfg.Limits.CacheBytes))
	}
	return nil
}
