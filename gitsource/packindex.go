package gitsource

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the checksum of Git's index format
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// An indexer finds out what a pack from a remote contains. The library's own
// inflates everything twice and holds each object in memory, however large a
// hostile remote makes it; this one streams whole objects once, while they
// arrive, and goes back only to those that others are rebuilt from.
type indexer struct {
	limits  Limits
	entries []idxfile.Entry
	types   []plumbing.ObjectType
	// byOffset and byHash name what is rebuilt from an object.
	byOffset map[int64][]int
	byHash   map[plumbing.Hash][]int
	scan     *packfile.Scanner // of the file, for going back
	held     int64
}

// indexPack copies a pack to f and answers its entries and checksum.
func indexPack(f *os.File, r io.Reader, limits Limits) ([]idxfile.Entry, plumbing.Hash, error) {
	x := &indexer{limits: limits, byOffset: map[int64][]int{}, byHash: map[plumbing.Hash][]int{}}
	w := bufio.NewWriterSize(f, 64*kib)
	checksum, err := x.arrive(io.TeeReader(r, w))
	if err = errors.Join(err, w.Flush()); err != nil {
		return nil, checksum, err
	}
	x.scan = packfile.NewScanner(f)
	return x.entries, checksum, x.rebuild()
}

// arrive reads the pack once from its beginning to its end.
func (x *indexer) arrive(r io.Reader) (plumbing.Hash, error) {
	s := packfile.NewScanner(r)
	_, n, err := s.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return plumbing.ZeroHash, errors.New("remote sent no pack")
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if int64(n) > int64(x.limits.Objects) {
		return plumbing.ZeroHash, fmt.Errorf("%w: %d objects, at most %d (limits.objects)", ErrTooLarge, n, x.limits.Objects)
	}
	for range n {
		if err := x.object(s); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	checksum, err := s.Checksum()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	// What follows the end would follow it in the file too.
	if n, err := io.Copy(io.Discard, r); err != nil || n > 0 {
		return plumbing.ZeroHash, errors.Join(err, errors.New("pack goes on after its end"))
	}
	return checksum, nil
}

func (x *indexer) object(s *packfile.Scanner) error {
	h, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	i := len(x.entries)
	entry := idxfile.Entry{Offset: uint64(h.Offset)} //nolint:gosec // offsets are not negative
	var sink io.Writer
	var sum plumbing.Hasher
	switch h.Type {
	case plumbing.OFSDeltaObject:
		x.byOffset[h.OffsetReference] = append(x.byOffset[h.OffsetReference], i)
		sink = io.Discard
	case plumbing.REFDeltaObject:
		x.byHash[h.Reference] = append(x.byHash[h.Reference], i)
		sink = io.Discard
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		sum = plumbing.NewHasher(h.Type, h.Length)
		sink = sum
	default:
		return fmt.Errorf("object at %d is of unknown type %d", h.Offset, h.Type)
	}
	n, crc, err := s.NextObject(sink)
	if err != nil {
		return err
	}
	if n != h.Length {
		return fmt.Errorf("object at %d is shorter than it says", h.Offset)
	}
	entry.CRC32 = crc
	if !h.Type.IsDelta() {
		entry.Hash = sum.Sum()
	}
	x.entries = append(x.entries, entry)
	x.types = append(x.types, h.Type)
	return nil
}

// rebuild finds the hashes of objects that are stored as a difference.
func (x *indexer) rebuild() error {
	for i := range x.entries {
		if x.types[i].IsDelta() || !x.hasDependents(i) {
			continue
		}
		content, err := x.inflate(i)
		if err != nil {
			return err
		}
		if err := x.dependents(i, x.types[i], content); err != nil {
			return err
		}
	}
	for i := range x.entries {
		if x.entries[i].Hash.IsZero() {
			return fmt.Errorf("object at %d is a difference to one that is not in the pack", x.entries[i].Offset)
		}
	}
	return nil
}

func (x *indexer) hasDependents(i int) bool {
	return len(x.byOffset[int64(x.entries[i].Offset)]) > 0 || len(x.byHash[x.entries[i].Hash]) > 0 //nolint:gosec // see above
}

// dependents rebuilds what is stored as a difference to entry i. The objects
// it came through are held, so that all together are bounded.
func (x *indexer) dependents(i int, t plumbing.ObjectType, base []byte) error {
	x.held += int64(len(base))
	defer func() { x.held -= int64(len(base)) }()
	below := slices.Concat(x.byOffset[int64(x.entries[i].Offset)], x.byHash[x.entries[i].Hash]) //nolint:gosec // see above
	for _, j := range below {
		if !x.entries[j].Hash.IsZero() {
			continue // a pack may hold one base twice
		}
		delta, err := x.inflate(j)
		if err != nil {
			return err
		}
		if err := x.admit(delta); err != nil {
			return fmt.Errorf("object at %d: %w", x.entries[j].Offset, err)
		}
		content, err := packfile.PatchDelta(base, delta)
		if err != nil {
			return fmt.Errorf("object at %d: %w", x.entries[j].Offset, err)
		}
		x.entries[j].Hash = plumbing.ComputeHash(t, content)
		if x.hasDependents(j) {
			if err := x.dependents(j, t, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// admit looks at the size a difference says its result has, before it is made.
func (x *indexer) admit(delta []byte) error {
	_, n := binary.Uvarint(delta) // of the base
	if n <= 0 {
		return packfile.ErrInvalidDelta
	}
	size, n := binary.Uvarint(delta[n:])
	if n <= 0 || size > math.MaxInt64 {
		return packfile.ErrInvalidDelta
	}
	return x.fits(int64(size))
}

func (x *indexer) fits(size int64) error {
	if most := x.limits.ObjectBytes; size > most || x.held+size > 4*most {
		return fmt.Errorf("%w: %d bytes to rebuild, at most %d (limits.objectBytes)", ErrTooLarge, size, most)
	}
	return nil
}

// inflate goes back to an entry and reads what is stored there.
func (x *indexer) inflate(i int) ([]byte, error) {
	h, err := x.scan.SeekObjectHeader(int64(x.entries[i].Offset)) //nolint:gosec // see above
	if err != nil {
		return nil, err
	}
	if err := x.fits(h.Length); err != nil {
		return nil, fmt.Errorf("object at %d: %w", h.Offset, err)
	}
	var b bytes.Buffer
	b.Grow(int(h.Length))
	_, _, err = x.scan.NextObject(&b)
	return b.Bytes(), err
}

// encodeIndex writes the entries in Git's second index format. Unlike the
// library's writer it keeps entries of equal hash, so that the count agrees
// with the pack's.
func encodeIndex(entries []idxfile.Entry, checksum plumbing.Hash) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b idxfile.Entry) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	out := make([]byte, 0, 8+4*256+28*len(entries)+40)
	out = append(out, 0xff, 't', 'O', 'c', 0, 0, 0, 2)
	next := 0
	for fan := range 256 {
		for next < len(entries) && int(entries[next].Hash[0]) == fan {
			next++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(next)) //nolint:gosec // limits.objects is far below
	}
	for _, e := range entries {
		out = append(out, e.Hash[:]...)
	}
	for _, e := range entries {
		out = binary.BigEndian.AppendUint32(out, e.CRC32)
	}
	var far []byte
	for _, e := range entries {
		short := uint32(e.Offset) //nolint:gosec // replaced if it does not fit
		if e.Offset > math.MaxInt32 {
			short = 1<<31 | uint32(len(far)/8) //nolint:gosec // as above
			far = binary.BigEndian.AppendUint64(far, e.Offset)
		}
		out = binary.BigEndian.AppendUint32(out, short)
	}
	out = append(out, far...)
	out = append(out, checksum[:]...)
	sum := sha1.Sum(out) //nolint:gosec // see the import
	return append(out, sum[:]...)
}
