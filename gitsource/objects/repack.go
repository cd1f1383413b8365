package objects

import (
	"bytes"
	"cmp"
	"crypto/sha1" //nolint:gosec // the checksum of Git's pack format
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// JoinPacks joins small packs if there are more than limit. It keeps all objects: the entries of
// a pack refer to each other by distance or by hash, so that they are copied unchanged.
func (s *Store) JoinPacks(limit int) error {
	if len(s.packs) <= limit {
		return nil
	}
	small := s.smallPacks()
	joined, err := concatenate(small)
	if err == nil {
		err = s.AddPack(joined, Limits{Objects: math.MaxInt, ObjectBytes: math.MaxInt64 / 8})
	}
	if err != nil {
		return fmt.Errorf("join packs: %w", err)
	}
	return s.removePacks(small)
}

// smallPacks returns the packs to join: the two smallest, and more up to the first that is larger
// than twice all smaller ones together. So each byte is copied only a few times.
func (s *Store) smallPacks() []*pack {
	sorted := slices.SortedFunc(slices.Values(s.packs), func(a, b *pack) int { return cmp.Compare(a.size, b.size) })
	var sum int64
	for i, p := range sorted {
		if i >= 2 && p.size > 2*sum {
			return sorted[:i]
		}
		sum += p.size
	}
	return sorted
}

const (
	packHeader  = 12
	packTrailer = 20
)

// concatenate returns a pack with the entries of several packs.
func concatenate(packs []*pack) (io.Reader, error) {
	count := 0
	for _, p := range packs {
		count += p.index.n
	}
	header := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count)) //nolint:gosec // limits.objects is far below
	content := func() io.Reader {
		parts := []io.Reader{bytes.NewReader(header)}
		for _, p := range packs {
			parts = append(parts, io.NewSectionReader(p.file, packHeader, p.size-packHeader-packTrailer))
		}
		return io.MultiReader(parts...)
	}
	sum := sha1.New() //nolint:gosec // see the import
	if _, err := io.Copy(sum, content()); err != nil {
		return nil, err
	}
	return io.MultiReader(content(), bytes.NewReader(sum.Sum(nil))), nil
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
