package gitsource

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // Git's object names; collisions are detected when a pack arrives
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// A pack is one open pack file and its index.
type pack struct {
	*packfile.Packfile
	fs    billy.Filesystem
	name  string
	index *idxfile.MemoryIndex
}

// errKind says that an object is there and is of another type.
var errKind = errors.New("object is of another type")

func (s *store) openPack(name string) (*pack, error) {
	f, err := s.fs.Open(name + ".idx")
	if err != nil {
		return nil, err
	}
	index := idxfile.NewMemoryIndex()
	err = idxfile.NewDecoder(f).Decode(index)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	content, err := s.fs.Open(name + ".pack")
	if err != nil {
		return nil, err
	}
	// Without a file system the library reads objects whole and never opens
	// the pack a second time.
	p := packfile.NewPackfileWithCache(index, nil, content, s.bases, 0)
	return &pack{p, s.fs, name, index}, nil
}

// read answers an object's content and proves that it is the one asked for.
func (p *pack) read(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	size, err := p.size(h)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("object %s: %w: %d bytes, at most %d", h, ErrTooLarge, size, limit)
	}
	o, err := p.Get(h)
	if err != nil {
		return nil, err
	}
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, o.Size()+bytes.MinRead))
	_, err = content.ReadFrom(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if hashOf(o.Type(), content.Bytes()) != h {
		return nil, errors.New("content does not have the hash it is stored under")
	}
	if o.Type() != t {
		return nil, fmt.Errorf("%w: %s, not %s", errKind, o.Type(), t)
	}
	return content.Bytes(), nil
}

func (p *pack) size(h plumbing.Hash) (int64, error) {
	offset, err := p.FindOffset(h)
	if err != nil {
		return 0, err
	}
	return p.GetSizeByOffset(offset)
}

func hashOf(t plumbing.ObjectType, content []byte) (h plumbing.Hash) {
	sum := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(sum, "%s %d\x00", t, len(content))
	sum.Write(content)
	copy(h[:], sum.Sum(nil))
	return h
}

// add stores a pack as it comes from a remote. Either all of it is there
// afterwards, or nothing is.
func (s *store) add(r io.Reader, limits Limits) error {
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

// install makes a received pack part of the store. The index comes last: it is
// what makes a pack count. The caller holds the lock.
func (s *store) install(temp, name string) error {
	for _, p := range s.packs {
		if p.name == name {
			return removeAll(temp, temp+".idx")
		}
	}
	target := filepath.Join(s.packDir(), name)
	for _, suffix := range []string{".pack", ".idx"} {
		from := temp
		if suffix == ".idx" {
			from += suffix
		}
		if err := os.Rename(from, target+suffix); err != nil {
			return err
		}
	}
	p, err := s.openPack(name)
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
