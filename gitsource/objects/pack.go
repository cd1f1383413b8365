package objects

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
)

// Limits limit a pack.
type Limits struct {
	// Objects is the maximum number of objects in the pack.
	Objects int
	// ObjectBytes is the maximum size of an object that is rebuilt from a delta.
	ObjectBytes int64
	// UnpackedBytes is the maximum size of all objects together, where bases that have to be
	// unpacked again count again. It limits the time that a small pack can take.
	UnpackedBytes int64
}

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
	entries, checksum, err := write(f)
	err = errors.Join(err, f.Sync(), f.Close())
	index := f.Name() + ".idx"
	name = "pack-" + checksum.String()
	if err == nil {
		err = writeFile(index, encodeIndex(entries, checksum))
	}
	if err == nil {
		err = s.install(f.Name(), index, name)
	}
	return name, atomicfile.About(errors.Join(err, os.RemoveAll(f.Name()), os.RemoveAll(index)), f.Name(), s.packDir())
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
