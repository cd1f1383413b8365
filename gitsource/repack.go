package gitsource

import (
	"bufio"
	"cmp"
	"crypto/sha1" //nolint:gosec // the checksum of Git's pack format
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// join puts small packs together if there are more than limit. Nothing is
// dropped or rebuilt: the entries of a pack refer to each other by distance,
// so they can be copied as they are, and the index is moved along.
func (s *store) join(limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.packs) <= limit {
		return nil
	}
	small, err := s.small()
	if err != nil || len(small) < 2 {
		return err
	}
	f, err := os.CreateTemp(s.packDir(), "incoming-*")
	if err != nil {
		return err
	}
	entries, checksum, err := concatenate(f, small)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = writeFile(f.Name()+".idx", encodeIndex(entries, checksum))
	}
	if err == nil {
		err = s.install(f.Name(), "pack-"+checksum.String())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("join packs: %w", err), removeAll(f.Name(), f.Name()+".idx"))
	}
	return s.drop(small)
}

// small answers the packs worth joining: from the smallest on, as long as one
// is not larger than twice all before it, so that a byte is copied only a few
// times in its life, however long that is.
func (s *store) small() ([]*pack, error) {
	sizes := map[*pack]int64{}
	for _, p := range s.packs {
		info, err := s.fs.Stat(p.name + ".pack")
		if err != nil {
			return nil, err
		}
		sizes[p] = info.Size()
	}
	sorted := slices.SortedFunc(slices.Values(s.packs), func(a, b *pack) int { return cmp.Compare(sizes[a], sizes[b]) })
	var sum int64
	end := 0
	for i, p := range sorted {
		if i < 2 || sizes[p] <= 2*sum {
			end = i + 1
		}
		sum += sizes[p]
	}
	return sorted[:end], nil
}

const (
	packHeader  = 12
	packTrailer = 20
)

// concatenate writes the packs as one and answers its entries and checksum.
func concatenate(f *os.File, packs []*pack) ([]idxfile.Entry, plumbing.Hash, error) {
	var checksum plumbing.Hash
	count := int64(0)
	for _, p := range packs {
		n, err := p.index.Count()
		if err != nil {
			return nil, checksum, err
		}
		count += n
	}
	sum := sha1.New() //nolint:gosec // see the import
	buffered := bufio.NewWriterSize(f, 64*kib)
	w := io.MultiWriter(buffered, sum)
	header := append([]byte("PACK"), 0, 0, 0, 2)
	if _, err := w.Write(binary.BigEndian.AppendUint32(header, uint32(count))); err != nil { //nolint:gosec // limits.objects is far below
		return nil, checksum, err
	}
	at := int64(packHeader)
	var all []idxfile.Entry
	for _, p := range packs {
		entries, n, err := p.copyBody(w, at)
		if err != nil {
			return nil, checksum, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, entries...)
		at += n
	}
	copy(checksum[:], sum.Sum(nil))
	if _, err := buffered.Write(checksum[:]); err != nil {
		return nil, checksum, err
	}
	return all, checksum, buffered.Flush()
}

// copyBody writes what is between header and trailer and answers the entries
// as they are when the body begins at the given offset. The old checksum is
// verified on the way: damage is not copied.
func (p *pack) copyBody(w io.Writer, at int64) ([]idxfile.Entry, int64, error) {
	f, err := p.fs.Open(p.name + ".pack")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := p.fs.Stat(p.name + ".pack")
	if err != nil {
		return nil, 0, err
	}
	n := info.Size() - packHeader - packTrailer
	sum := sha1.New() //nolint:gosec // see the import
	if _, err := io.CopyN(sum, f, packHeader); err != nil {
		return nil, 0, err
	}
	if _, err := io.CopyN(io.MultiWriter(w, sum), f, n); err != nil {
		return nil, 0, err
	}
	var want plumbing.Hash
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return nil, 0, err
	}
	if want != plumbing.Hash(sum.Sum(nil)) {
		return nil, 0, &damageError{want, errors.New("pack does not have its checksum")}
	}
	iter, err := p.index.Entries()
	if err != nil {
		return nil, 0, err
	}
	var entries []idxfile.Entry
	for {
		e, err := iter.Next()
		if err == io.EOF {
			return entries, n, nil
		}
		if err != nil {
			return nil, 0, err
		}
		e.Offset += uint64(at - packHeader) //nolint:gosec // not negative
		entries = append(entries, *e)
	}
}

// drop forgets packs whose content is in another one.
func (s *store) drop(packs []*pack) error {
	s.packs = slices.DeleteFunc(s.packs, func(p *pack) bool { return slices.Contains(packs, p) })
	var errs []error
	for _, p := range packs {
		// Without its index a pack no longer counts, so that goes first.
		errs = append(errs, p.Close(), s.fs.Remove(p.name+".idx"), s.fs.Remove(p.name+".pack"))
	}
	return errors.Join(errs...)
}
