package objects

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
)

// AddPack stores a pack while it is received from a remote. After an error, or when ctx is done,
// nothing of the pack is stored. Only one goroutine may add or join packs.
func (s *Store) AddPack(ctx context.Context, r io.Reader, limits Limits) error {
	_, err := s.addPack(func(f *os.File) ([]indexed, plumbing.Hash, error) { return indexPack(ctx, f, r, limits) })
	return err
}

// addPack stores the pack that a function writes to a file, and returns its name.
func (s *Store) addPack(write func(*os.File) ([]indexed, plumbing.Hash, error)) (name string, err error) {
	f, err := os.CreateTemp(s.packDir(), "incoming-*")
	if err != nil {
		return "", atomicfile.NotCreated(err, s.packDir())
	}
	index := f.Name() + ".idx"
	defer func() { // also after a panic
		_ = f.Close() // nothing but a panic leaves it open
		err = atomicfile.About(errors.Join(err, os.RemoveAll(f.Name()), os.RemoveAll(index)), f.Name(), s.packDir())
	}()
	entries, checksum, err := write(f)
	err = errors.Join(err, f.Sync(), f.Close())
	name = "pack-" + checksum.String()
	if err == nil {
		err = writeFile(index, encodeIndex(entries, checksum))
	}
	if err == nil {
		err = s.install(f.Name(), index, name)
	}
	return name, err
}

// install moves a pack and its index into the store, unless it is there already.
func (s *Store) install(pack, index, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		if p.name == name {
			return nil
		}
	}
	target := s.packPath(name)
	if err := os.Rename(pack, target+".pack"); err != nil {
		return err
	}
	if err := os.Rename(index, target+".idx"); err != nil { // the last: a pack without an index does not count
		return err
	}
	p, err := openPack(target, name, s.bases)
	if err != nil {
		return err
	}
	s.packs = append(s.packs, p)
	return nil
}
