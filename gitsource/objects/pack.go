package objects

import (
	"errors"
	"io"
	"os"
)

// AddPack stores a pack while it is received from a remote. After an error nothing of the pack
// is stored.
func (s *Store) AddPack(r io.Reader, limits Limits) error {
	f, err := os.CreateTemp(s.packDir(), "incoming-*")
	if err != nil {
		return err
	}
	entries, checksum, err := indexPack(f, r, limits)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = writeFile(f.Name()+".idx", encodeIndex(entries, checksum))
	}
	if err == nil {
		s.mu.Lock()
		err = s.install(f.Name(), "pack-"+checksum.String())
		s.mu.Unlock()
	}
	if err != nil {
		return errors.Join(err, removeAll(f.Name(), f.Name()+".idx"))
	}
	return nil
}

// install moves a received pack into the store. It renames the index last, since the store
// ignores a pack without an index. The caller holds the lock.
func (s *Store) install(temp, name string) error {
	for _, p := range s.packs {
		if p.name == name {
			return removeAll(temp, temp+".idx")
		}
	}
	target := s.packPath(name)
	for _, suffix := range []string{".pack", ".idx"} {
		from := temp
		if suffix == ".idx" {
			from += suffix
		}
		if err := os.Rename(from, target+suffix); err != nil {
			return err
		}
	}
	p, err := openPack(target, name, s.bases)
	if err != nil {
		return err
	}
	s.packs = append(s.packs, p)
	return nil
}

func removeAll(paths ...string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}
