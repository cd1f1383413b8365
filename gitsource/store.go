package gitsource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// A store is a bare Git repository on disk that has all objects in packs. Packs are added and
// joined, but objects are never deleted. The git program can read it.
type store struct {
	dir string
	// below, if set, is read for objects that this store does not have.
	below *store

	// mu guards the packs. It is held while one is read, so that it is not closed meanwhile.
	mu    sync.RWMutex
	packs []*pack
	bases *agingCache[baseKey, content]
}

// baseBytes limits the cache of objects that deltas are applied to.
const baseBytes = 32 * mib

// makeStore creates a store, with the files that Git expects in a bare repository.
func makeStore(dir string) (*store, error) {
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
	return loadStore(dir)
}

func loadStore(dir string) (*store, error) {
	s := &store{
		dir:   dir,
		bases: newAging[baseKey, content](baseBytes),
	}
	names, err := listPacks(s.packDir())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := openPack(s.packPath(name), name, s.bases)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("pack %s: %w", name, err), s.close())
		}
		s.packs = append(s.packs, p)
	}
	return s, nil
}

func (s *store) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

// packPath returns the path of a pack without .pack or .idx.
func (s *store) packPath(name string) string { return filepath.Join(s.packDir(), name) }

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.file.Close())
	}
	s.packs = nil
	return errors.Join(errs...)
}

// has reports whether the store has an object. It does not read the disk.
func (s *store) has(h plumbing.Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, _ := s.find(h)
	return p != nil || s.below != nil && s.below.has(h)
}

// find returns the pack of an object, or nil. The caller holds the lock.
func (s *store) find(h plumbing.Hash) (*pack, int64) {
	for _, p := range s.packs {
		if offset, ok := p.index.find(h); ok {
			return p, offset
		}
	}
	return nil, 0
}

// object reads an object of at most limit bytes. It verifies the hash, so that a damaged disk
// gives an error and not other content. It is safe for concurrent use.
func (s *store) object(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, _ := s.find(h)
	switch {
	case p == nil && s.below != nil:
		return s.below.object(t, h, limit)
	case p == nil:
		return nil, &damageError{h, errMissing}
	}
	content, err := p.read(t, h, limit)
	switch {
	case err == nil || errors.Is(err, ErrTooLarge):
		return content, err
	case errors.Is(err, errWrongType): // the reference to it is wrong, not the store
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	return nil, &damageError{h, err}
}

// size returns the size of an object without reading all of it.
func (s *store) size(h plumbing.Hash) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, offset := s.find(h)
	switch {
	case p == nil && s.below != nil:
		return s.below.size(h)
	case p == nil:
		return 0, &damageError{h, errMissing}
	}
	n, err := p.sizeAt(offset)
	if err != nil {
		return 0, &damageError{h, err}
	}
	return n, nil
}

// peel returns the commit that an annotated tag points to; a commit is returned unchanged.
func (s *store) peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range 8 {
		raw, err := s.object(plumbing.TagObject, h, mib)
		if errors.Is(err, errWrongType) {
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

// refDir is the directory of the commits accepted last, with one file for each tracked
// reference.
func refDir(dir string) string { return filepath.Join(dir, "refs", "heads", "accepted") }

// acceptedRef returns the commit accepted last for a reference, by the key of a Repo. The store
// may lack the commit, if it was accepted in the store before this one.
func (s *store) acceptedRef(key string) (plumbing.Hash, bool) {
	return readRef(filepath.Join(refDir(s.dir), key))
}

func readRef(path string) (plumbing.Hash, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	h, err := parseHash(strings.TrimSpace(string(content)))
	return h, err == nil
}

// setAcceptedRef replaces the commit accepted last, atomically.
func (s *store) setAcceptedRef(key string, h plumbing.Hash) error {
	path := filepath.Join(refDir(s.dir), key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeFile(path, []byte(h.String()+"\n"))
}

// acceptedRefs returns the accepted commits of the store in a directory, by key.
func acceptedRefs(dir string) map[string]plumbing.Hash {
	refs := map[string]plumbing.Hash{}
	entries, _ := os.ReadDir(refDir(dir)) // none if it cannot be read
	for _, e := range entries {
		if h, ok := readRef(filepath.Join(refDir(dir), e.Name())); ok {
			refs[e.Name()] = h
		}
	}
	return refs
}

// setAcceptedRefs records the commits that were accepted in another store.
func (s *store) setAcceptedRefs(refs map[string]plumbing.Hash) error {
	for key, h := range refs {
		if err := s.setAcceptedRef(key, h); err != nil {
			return err
		}
	}
	return nil
}

// accepted reports whether a commit was ever accepted into this store.
func (s *store) accepted() bool { return len(acceptedRefs(s.dir)) > 0 }
