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

	"github.com/go-git/go-git/v5/plumbing"
)

// A place is where the stores of one address are, one after the other:
//
//	StateDir/git/<hash of the address>.<generation>/
//
// A clone made anew is the next generation; it takes over once it holds an
// accepted commit, so there is no moment at which neither is whole.
type place struct{ path string }

// locate answers the place of an address, whose directory exists then.
func locate(stateDir, address string) (place, error) {
	sum := sha256.Sum256([]byte(address))
	path := filepath.Join(stateDir, "git", hex.EncodeToString(sum[:8]))
	return place{path}, os.MkdirAll(filepath.Dir(path), 0o700)
}

func (p place) generation(n int) string { return fmt.Sprintf("%s.%d", p.path, n) }

// generations are those that exist, the oldest first.
func (p place) generations() ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(p.path))
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(p.path)+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// open opens the newest generation that is whole and removes the others. If
// one had to go because it is damaged, dropped says why; what was accepted is
// remembered all the same.
func (p place) open() (s *store, dropped, err error) {
	generations, err := p.generations()
	if err != nil {
		return nil, nil, err
	}
	refs := map[string]plumbing.Hash{}
	for _, n := range slices.Backward(generations) {
		dir := p.generation(n)
		if s == nil {
			loaded, err := loadStore(dir)
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
		if s, err = makeStore(p.generation(1)); err != nil {
			return nil, nil, err
		}
	}
	return s, dropped, s.carry(refs)
}

// next makes the store that is to take over from all there are.
func (p place) next() (*store, error) {
	generations, err := p.generations()
	if err != nil {
		return nil, err
	}
	return makeStore(p.generation(1 + generations[len(generations)-1]))
}

// isContent tells a file that holds something wrong, or is not there, from one
// that cannot be read at the moment.
func isContent(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path) || errors.Is(err, fs.ErrNotExist)
}
