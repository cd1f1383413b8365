package gitsource

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
)

// A store is a bare Git repository on disk whose objects live in packs only.
// Packs are added and joined, never taken away. The git program can read it.
//
//	StateDir/git/<hash of the address>.<generation>/
//
// A clone made anew is the next generation; it takes over once it holds an
// accepted commit, so there is no moment at which neither is whole.
type store struct {
	dir        string
	generation int

	// mu guards the packs: a packfile seeks, so even reading takes turns.
	mu    sync.Mutex
	fs    billy.Filesystem
	bases cache.Object
	packs []*pack
}

// baseCache bounds the objects kept to rebuild others from.
const baseCache = 16 * cache.MiByte

// openStore opens the newest generation that is whole and removes the others.
// If one had to go because it is damaged, dropped says why; what was accepted
// is remembered all the same.
func openStore(stateDir, address string) (s *store, dropped, err error) {
	parent := filepath.Join(stateDir, "git")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(address))
	name := hex.EncodeToString(sum[:8])
	generations, err := listGenerations(parent, name)
	if err != nil {
		return nil, nil, err
	}
	refs := map[string]plumbing.Hash{}
	for _, n := range slices.Backward(generations) {
		dir := generationDir(parent, name, n)
		if s == nil {
			loaded, err := loadStore(dir, n)
			switch {
			case err == nil && (loaded.accepted() || n == generations[0]):
				s = loaded
				continue
			case err == nil:
				if err := loaded.close(); err != nil {
					return nil, nil, err
				}
			case !isContent(err):
				return nil, nil, err // it may be fine, only not now
			default:
				dropped = err
				maps.Copy(refs, acceptedRefs(dir))
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, nil, err
		}
	}
	if s == nil {
		if s, err = makeStore(generationDir(parent, name, 1), 1); err != nil {
			return nil, nil, err
		}
	}
	return s, dropped, s.carry(refs)
}

// isContent tells a file that holds something wrong, or is not there, from one
// that cannot be read at the moment.
func isContent(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path) || errors.Is(err, fs.ErrNotExist)
}

// next makes the store that is to take over from s.
func (s *store) next() (*store, error) {
	base := strings.TrimSuffix(s.dir, fmt.Sprintf(".%d", s.generation))
	dir := fmt.Sprintf("%s.%d", base, s.generation+1)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return makeStore(dir, s.generation+1)
}

func generationDir(parent, name string, generation int) string {
	return filepath.Join(parent, fmt.Sprintf("%s.%d", name, generation))
}

func listGenerations(parent, name string) ([]int, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), name+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// makeStore writes what makes a directory a bare repository to other tools.
func makeStore(dir string, generation int) (*store, error) {
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
	return loadStore(dir, generation)
}

func loadStore(dir string, generation int) (*store, error) {
	s := &store{
		dir:        dir,
		generation: generation,
		fs:         osfs.New(filepath.Join(dir, "objects", "pack"), osfs.WithBoundOS()),
		bases:      cache.NewObjectLRU(baseCache),
	}
	names, err := sweepPacks(s.packDir())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := s.openPack(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("pack %s: %w", name, err), s.close())
		}
		s.packs = append(s.packs, p)
	}
	return s, nil
}

func (s *store) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.Close())
	}
	s.packs = nil
	return errors.Join(errs...)
}

// has tells whether there is such an object, from memory alone.
func (s *store) has(h plumbing.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(h) != nil
}

func (s *store) find(h plumbing.Hash) *pack {
	for _, p := range s.packs {
		if ok, err := p.Contains(h); ok && err == nil {
			return p
		}
	}
	return nil
}

// object reads one object of at most limit bytes. What it returns has the hash
// that was asked for: a damaged disk gives an error, not other content.
func (s *store) object(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(h)
	if p == nil {
		return nil, &damageError{h, errMissing}
	}
	content, err := p.read(t, h, limit)
	switch {
	case err == nil || errors.Is(err, ErrTooLarge):
		return content, err
	case errors.Is(err, errKind): // what refers to it is wrong, not the store
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	return nil, &damageError{h, err}
}

// size answers how long an object is without reading all of it.
func (s *store) size(h plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(h)
	if p == nil {
		return 0, &damageError{h, errMissing}
	}
	n, err := p.size(h)
	if err != nil {
		return 0, &damageError{h, err}
	}
	return n, nil
}

// peel follows tags to the commit behind them.
func (s *store) peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range 8 {
		raw, err := s.object(plumbing.TagObject, h, mib)
		if errors.Is(err, errKind) {
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

// refDir is where the commits last accepted are named, one file for each thing
// that is followed.
func refDir(dir string) string { return filepath.Join(dir, "refs", "heads", "accepted") }

// acceptedRef answers the commit last accepted for what is followed under key.
// It need not be in the store: it may have been in the one before.
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

// setAcceptedRef replaces it as one step.
func (s *store) setAcceptedRef(key string, h plumbing.Hash) error {
	path := filepath.Join(refDir(s.dir), key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeFile(path, []byte(h.String()+"\n"))
}

// acceptedRefs answers all of them in the store of a directory.
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

// carry takes over from another store what was accepted there.
func (s *store) carry(refs map[string]plumbing.Hash) error {
	for key, h := range refs {
		if err := s.setAcceptedRef(key, h); err != nil {
			return err
		}
	}
	return nil
}

// accepted tells whether any commit was ever accepted here.
func (s *store) accepted() bool { return len(acceptedRefs(s.dir)) > 0 }
