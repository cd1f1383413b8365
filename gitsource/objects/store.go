// Package objects is the object store of a repository.
//
// A Store is a bare repository on disk with all objects in packs. AddPack indexes a pack while
// it is received, with limits against hostile remotes. Object reads one object of limited size
// and verifies its hash. Trees, commits and tags are parsed strictly: it is an error if
// programs could read one in two ways. A missing object is always an error, too.
//
// The filesystem storage of go-git has no such limits. For a pack of 400 KiB with one object of
// 400 MiB it needs 400 MiB of memory to index the pack, and 530 MiB to read the object; this
// package refuses the object without allocating it.
package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
)

// A Store is a bare Git repository on disk that has all objects in packs. Packs are added and
// joined, and no object is ever deleted. The git program can read it; its references are the
// accepted commits.
type Store struct {
	// Dir is the directory of the repository.
	Dir string
	// Below, if set, is the store in which objects are looked up that this one does not have.
	Below *Store

	// mu guards the packs. Readers hold it while they read a pack, so that it is not closed
	// meanwhile.
	mu    sync.RWMutex
	packs []*pack
	bases *agingCache[baseKey, content]
}

// baseBytes limits the cache of objects that deltas are applied to.
const baseBytes = 32 * mib

// Create creates a store with the files that Git expects in a bare repository. HEAD resolves to
// nothing, since refs/heads/accepted is a directory of references; Git only requires the file.
func Create(dir string) (*Store, error) {
	for _, d := range []string{"objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"HEAD":   "ref: refs/heads/accepted\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	} {
		if err := writeFile(filepath.Join(dir, name), []byte(content)); err != nil {
			return nil, err
		}
	}
	return Load(dir)
}

// DeltaBases is a cache of objects that deltas are applied to. It is safe for concurrent use.
type DeltaBases struct {
	cache *agingCache[baseKey, content]
}

// NewDeltaBases returns an empty cache of at most 32 MiB.
func NewDeltaBases() *DeltaBases { return &DeltaBases{newAging[baseKey, content](baseBytes)} }

// Load opens a store. An error about its content names the damaged pack.
func Load(dir string) (*Store, error) { return LoadSharing(dir, NewDeltaBases()) }

// LoadSharing is Load for a store that shares a cache with others.
func LoadSharing(dir string, bases *DeltaBases) (*Store, error) {
	s := &Store{Dir: dir, bases: bases.cache}
	names, err := listPacks(s.packDir())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := openPack(s.packPath(name), name, s.bases)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("pack %s: %w", name, err), s.Close())
		}
		s.packs = append(s.packs, p)
	}
	return s, nil
}

func (s *Store) packDir() string { return filepath.Join(s.Dir, "objects", "pack") }

// packPath returns the path of a pack without .pack or .idx.
func (s *Store) packPath(name string) string { return filepath.Join(s.packDir(), name) }

// Close closes the packs. The store cannot be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.file.Close())
	}
	s.packs = nil
	return errors.Join(errs...)
}

// Has reports whether the store has an object. It does not read the disk.
func (s *Store) Has(h plumbing.Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, _ := s.find(h)
	return p != nil || s.Below != nil && s.Below.Has(h)
}

// find returns the pack of an object, or nil. The caller holds the lock.
func (s *Store) find(h plumbing.Hash) (*pack, int64) {
	for _, p := range s.packs {
		if offset, ok := p.index.find(h); ok {
			return p, offset
		}
	}
	return nil, 0
}

// Object reads an object of at most limit bytes. It verifies the hash, so that a damaged disk
// causes an error instead of wrong content. It is safe for concurrent use.
func (s *Store) Object(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, _ := s.find(h)
	switch {
	case p == nil && s.Below != nil:
		return s.Below.Object(t, h, limit)
	case p == nil:
		return nil, &damageError{h, errMissing}
	}
	content, err := p.read(t, h, limit)
	switch {
	case err == nil || errors.Is(err, ErrTooLarge):
		return content, err
	case errors.Is(err, ErrWrongType): // the reference to the object is wrong, not the store
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	return nil, &damageError{h, err}
}

// Size returns the size of an object without reading all of it.
func (s *Store) Size(h plumbing.Hash) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, offset := s.find(h)
	switch {
	case p == nil && s.Below != nil:
		return s.Below.Size(h)
	case p == nil:
		return 0, &damageError{h, errMissing}
	}
	n, err := p.sizeAt(offset)
	if err != nil {
		return 0, &damageError{h, err}
	}
	return n, nil
}

// Peel returns the commit that an annotated tag points to. A commit is returned unchanged.
func (s *Store) Peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range 8 {
		raw, err := s.Object(plumbing.TagObject, h, mib)
		if errors.Is(err, ErrWrongType) {
			return h, nil
		}
		if err != nil {
			return h, err
		}
		target, kind, err := parseTag(raw)
		if err != nil {
			return h, fmt.Errorf("tag %s: %w", h, err)
		}
		if kind != "tag" && kind != "commit" {
			return h, fmt.Errorf("tag %s points at a %s, not at a commit", h, kind)
		}
		h = target
	}
	return h, errTagDepth
}

// refDir is the directory of the accepted commits, with one file for each tracked reference.
func refDir(dir string) string { return filepath.Join(dir, "refs", "heads", "accepted") }

// AcceptedRef returns the last accepted commit of a reference, which is identified by the key
// of a Repo. The store may not have the commit itself, if it was accepted in an earlier store.
func (s *Store) AcceptedRef(key string) (plumbing.Hash, bool) {
	return readRef(filepath.Join(refDir(s.Dir), key))
}

func readRef(path string) (plumbing.Hash, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	h, err := ParseHash(strings.TrimSpace(string(content)))
	return h, err == nil
}

// SetAcceptedRef atomically replaces the last accepted commit.
func (s *Store) SetAcceptedRef(key string, h plumbing.Hash) error {
	path := filepath.Join(refDir(s.Dir), key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeFile(path, []byte(h.String()+"\n"))
}

// AcceptedRefs returns the accepted commits of the store in a directory, by key.
func AcceptedRefs(dir string) map[string]plumbing.Hash {
	refs := map[string]plumbing.Hash{}
	entries, _ := os.ReadDir(refDir(dir)) // no accepted commits if the directory cannot be read
	for _, e := range entries {
		if h, ok := readRef(filepath.Join(refDir(dir), e.Name())); ok {
			refs[e.Name()] = h
		}
	}
	return refs
}

// SetAcceptedRefs records commits that were accepted in another store.
func (s *Store) SetAcceptedRefs(refs map[string]plumbing.Hash) error {
	for key, h := range refs {
		if err := s.SetAcceptedRef(key, h); err != nil {
			return err
		}
	}
	return nil
}

// Remove closes a store, and deletes it.
func (s *Store) Remove() error { return errors.Join(s.Close(), os.RemoveAll(s.Dir)) }

// WithPrefix returns the objects whose hash begins with hexadecimal digits.
func (s *Store) WithPrefix(digits string) []plumbing.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []plumbing.Hash
	for _, p := range s.packs {
		all = append(all, p.index.withPrefix(digits)...)
	}
	return all
}

// IndexBytes returns how much memory the indexes of the packs take.
func (s *Store) IndexBytes() (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.packs {
		n += int64(len(p.index.names) + len(p.index.crcs) + len(p.index.offsets) + len(p.index.far))
	}
	return n
}

// DropBases frees the memory of the objects that deltas were applied to.
func (s *Store) DropBases() { s.bases.clear() }

// listPacks returns the sorted names of the packs that have an index, and removes the files of
// interrupted fetches.
func listPacks(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for _, e := range entries {
		present[e.Name()] = true
	}
	var names []string
	for _, e := range entries {
		name, isPack := strings.CutSuffix(e.Name(), ".pack")
		index, isIndex := strings.CutSuffix(e.Name(), ".idx")
		switch {
		case isPack && present[name+".idx"]:
			names = append(names, name)
		case isIndex && present[index+".pack"]:
		default:
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
