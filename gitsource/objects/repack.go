package objects

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // the checksum of Git's pack format
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// JoinPacks joins small packs if there are more than limit. It keeps all objects and rebuilds
// none: the entries of a pack refer to each other by distance or by hash, so that they can be
// copied unchanged with adjusted offsets in the index. It changes nothing if ctx is done before the end.
func (s *Store) JoinPacks(ctx context.Context, limit int) error {
	if len(s.packs) <= limit {
		return nil
	}
	small := s.smallPacks()
	joined, err := s.addPack(func(f *os.File) ([]indexed, plumbing.Hash, error) { return concatenate(ctx, f, small) })
	if err != nil {
		return fmt.Errorf("join packs: %w", err)
	}
	// If all others are empty, the joined pack is one of the small ones.
	return s.removePacks(slices.DeleteFunc(small, func(p *pack) bool { return p.name == joined }))
}

// smallPacks returns the packs to join: the smallest ones, up to the last one that is at most
// twice as large as all smaller ones together. So each byte is copied only a few times.
func (s *Store) smallPacks() []*pack {
	sorted := slices.SortedFunc(slices.Values(s.packs), func(a, b *pack) int { return cmp.Compare(a.size, b.size) })
	var sum int64
	end := 0
	for i, p := range sorted {
		if i < 2 || p.size <= 2*sum {
			end = i + 1
		}
		sum += p.size
	}
	return sorted[:end]
}

// concatenate writes the packs as one, and returns the entries and checksum of the result.
func concatenate(ctx context.Context, f *os.File, packs []*pack) ([]indexed, plumbing.Hash, error) {
	var checksum plumbing.Hash
	count := 0
	for _, p := range packs {
		count += p.index.n
	}
	sum := sha1.New() //nolint:gosec // see the import
	buffered := bufio.NewWriterSize(f, 64*kib)
	w := &endingWriter{io.MultiWriter(buffered, sum), func() error { return context.Cause(ctx) }}
	header := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count)) //nolint:gosec // limits.objects is far below
	if _, err := w.Write(header); err != nil {
		return nil, checksum, err
	}
	at := int64(packHeader)
	var all []indexed
	for _, p := range packs {
		entries, err := p.copyBody(w, at)
		if err != nil {
			return nil, checksum, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, entries...)
		at += p.bodySize()
	}
	copy(checksum[:], sum.Sum(nil))
	if _, err := buffered.Write(checksum[:]); err != nil {
		return nil, checksum, err
	}
	return all, checksum, buffered.Flush()
}

// bodySize is the size of a pack without header and trailer.
func (p *pack) bodySize() int64 { return p.size - packHeader - packTrailer }

// copyBody writes the part of a pack between header and trailer, and returns its entries for a
// body that begins at the offset at. It verifies the checksum, so that no damage is copied.
func (p *pack) copyBody(w io.Writer, at int64) ([]indexed, error) {
	f := io.NewSectionReader(p.file, 0, p.size)
	sum := sha1.New() //nolint:gosec // see the import
	if _, err := io.CopyN(sum, f, packHeader); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.MultiWriter(w, sum), f, p.bodySize()); err != nil {
		return nil, err
	}
	var want plumbing.Hash
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return nil, err
	}
	if want != plumbing.Hash(sum.Sum(nil)) {
		return nil, errors.New("pack does not have its checksum")
	}
	entries, err := p.index.entries()
	for i := range entries {
		entries[i].offset += at - packHeader
	}
	return entries, err
}

// removePacks removes packs whose content is in another one.
func (s *Store) removePacks(packs []*pack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = slices.DeleteFunc(s.packs, func(p *pack) bool { return slices.Contains(packs, p) })
	var errs []error
	for _, p := range packs {
		// The index is removed first: a pack without one does not count.
		path := s.packPath(p.name)
		errs = append(errs, p.file.Close(), os.Remove(path+".idx"), os.Remove(path+".pack"))
	}
	return errors.Join(errs...)
}
