package objects

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

	"github.com/go-git/go-git/v5/plumbing"
)

// A StorePath is the path of the stores of one address, which are numbered by generation:
//
//	DIR/git/<hash of the address>.<generation>/
//
// A new clone becomes the next generation. It is used once it has an accepted commit, so that
// there is always a complete store.
type StorePath struct {
	// Prefix is the path without the generation.
	Prefix string
}

// StorePathOf returns the store path of an address below dir, and creates its parent directory.
func StorePathOf(dir, address string) (StorePath, error) {
	sum := sha256.Sum256([]byte(address))
	path := filepath.Join(dir, "git", hex.EncodeToString(sum[:8]))
	return StorePath{path}, os.MkdirAll(filepath.Dir(path), 0o700)
}

func (p StorePath) generation(n int) string { return fmt.Sprintf("%s.%d", p.Prefix, n) }

// generations returns the existing generations, the oldest first.
func (p StorePath) generations() ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(p.Prefix))
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(p.Prefix)+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Open opens the newest complete generation and removes the others. If a damaged one was
// removed, dropped is the reason; its accepted commits are copied to the new store.
func (p StorePath) Open() (s *Store, dropped, err error) {
	generations, err := p.generations()
	if err != nil {
		return nil, nil, err
	}
	refs := map[string]plumbing.Hash{}
	for _, n := range slices.Backward(generations) {
		dir := p.generation(n)
		if s == nil {
			loaded, err := Load(dir)
			switch {
			case err == nil && (len(AcceptedRefs(dir)) > 0 || n == generations[0]):
				s = loaded
				continue
			case err == nil:
				if err := loaded.Close(); err != nil {
					return nil, nil, err
				}
			case !isContent(err):
				return nil, nil, err // it may become readable later
			default:
				dropped = err
				maps.Copy(refs, AcceptedRefs(dir))
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, nil, err
		}
	}
	if s == nil {
		if s, err = Create(p.generation(1)); err != nil {
			return nil, nil, err
		}
	}
	return s, dropped, s.SetAcceptedRefs(refs)
}

// Next creates the store of the next generation.
func (p StorePath) Next() (*Store, error) {
	generations, err := p.generations()
	if err != nil {
		return nil, err
	}
	return Create(p.generation(1 + generations[len(generations)-1]))
}

// isContent distinguishes a missing file, or one with invalid content, from one that cannot be
// read at the moment.
func isContent(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path) || errors.Is(err, fs.ErrNotExist)
}
