package objects

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// An indexer computes the index of a pack while the pack is received. The library's indexer
// decompresses every object twice and holds it in memory, however large a hostile remote makes
// it. This one streams objects once, and reads only deltas and their bases again.
type indexer struct {
	limits  Limits
	entries []indexed
	types   []plumbing.ObjectType
	// byOffset and byHash map a base object to its deltas, as indexes into entries.
	byOffset map[int64][]int
	byHash   map[plumbing.Hash][]int
	scan     *packfile.Scanner // reads the file again
	held     int64             // total size of the bases in memory
	unpacked int64             // total size of what was unpacked
	// done returns an error once the work has to end.
	done func() error
}

// indexPack copies a pack to f and returns its entries and checksum.
func indexPack(ctx context.Context, f *os.File, r io.Reader, limits Limits) ([]indexed, plumbing.Hash, error) {
	x := &indexer{limits: limits, done: func() error { return context.Cause(ctx) }, byOffset: map[int64][]int{}, byHash: map[plumbing.Hash][]int{}}
	w := bufio.NewWriterSize(f, 64*kib)
	checksum, end, err := x.scanPack(io.TeeReader(r, w))
	if err = errors.Join(err, w.Flush()); err != nil {
		return nil, checksum, err
	}
	if size, err := f.Seek(0, io.SeekCurrent); err != nil || size != end {
		return nil, checksum, errors.Join(err, errors.New("pack goes on after its end"))
	}
	x.scan = packfile.NewScanner(f)
	return x.entries, checksum, x.rebuild()
}

// scanPack reads the pack once, and returns its checksum and the offset of its end.
func (x *indexer) scanPack(r io.Reader) (checksum plumbing.Hash, end int64, err error) {
	s := packfile.NewScanner(r)
	_, n, err := s.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return checksum, 0, errors.New("remote sent no pack")
	}
	if err != nil {
		return checksum, 0, err
	}
	if int64(n) > int64(x.limits.Objects) {
		return checksum, 0, fmt.Errorf("%w: %d objects, at most %d (limits.fetchObjects)", ErrTooLarge, n, x.limits.Objects)
	}
	for range n {
		if err := x.object(s); err != nil {
			return checksum, 0, err
		}
	}
	if checksum, err = s.Checksum(); err != nil {
		return checksum, 0, err
	}
	end, _ = s.SeekFromStart(0) // a stream cannot seek, but this returns its offset
	_, err = io.Copy(io.Discard, r)
	return checksum, end, err
}

func (x *indexer) object(s *packfile.Scanner) error {
	h, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	i := len(x.entries)
	entry := indexed{offset: h.Offset}
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
	if err := x.unpack(h.Length); err != nil {
		return err
	}
	n, crc, err := s.NextObject(&endingWriter{sink, x.done})
	if err != nil {
		return err
	}
	if n != h.Length {
		return fmt.Errorf("object at %d is shorter than it says", h.Offset)
	}
	entry.crc = crc
	if !h.Type.IsDelta() {
		entry.hash = sum.Sum()
	}
	x.entries = append(x.entries, entry)
	x.types = append(x.types, h.Type)
	return nil
}

// rebuild computes the hashes of the objects that are stored as deltas.
func (x *indexer) rebuild() error {
	for i := range x.entries {
		if x.types[i].IsDelta() || !x.hasDependents(i) {
			continue
		}
		content, err := x.inflate(i)
		if err != nil {
			return err
		}
		if err := x.dependents(i, x.types[i], content, 1); err != nil {
			return err
		}
	}
	for i := range x.entries {
		if x.entries[i].hash.IsZero() {
			return fmt.Errorf("object at %d is a delta of one that is not in the pack", x.entries[i].offset)
		}
	}
	return nil
}

func (x *indexer) hasDependents(i int) bool {
	return len(x.byOffset[x.entries[i].offset]) > 0 || len(x.byHash[x.entries[i].hash]) > 0
}

// dependents rebuilds the objects whose delta is based on entry i, and recursively those based
// on them. The bases in memory and the deltas between them count against the limit together, so that it also limits what it
// takes to read an object. depth is the number of deltas to apply.
func (x *indexer) dependents(i int, t plumbing.ObjectType, base []byte, depth int) error {
	if depth > maxChain {
		return fmt.Errorf("object at %d is the base of a chain of more than %d deltas", x.entries[i].offset, maxChain)
	}
	x.held += int64(len(base))
	defer func() { x.held -= int64(len(base)) }()
	below := slices.Concat(x.byOffset[x.entries[i].offset], x.byHash[x.entries[i].hash])
	for _, j := range below {
		if !x.entries[j].hash.IsZero() {
			continue // a pack may contain a base twice
		}
		content, delta, err := x.patched(base, j)
		if err != nil {
			return err
		}
		x.entries[j].hash = plumbing.ComputeHash(t, content)
		if x.hasDependents(j) {
			x.held += delta
			if err := x.dependents(j, t, content, depth+1); err != nil {
				return err
			}
			x.held -= delta
		}
	}
	return nil
}

// patched applies the delta of entry i to its base, and returns also the size of the delta. It checks the size of the result before.
func (x *indexer) patched(base []byte, i int) (content []byte, delta int64, err error) {
	raw, err := x.inflate(i)
	if err != nil {
		return nil, 0, err
	}
	size, err := deltaResult(raw)
	if err == nil {
		err = x.fits(size, int64(len(raw)))
	}
	if err == nil {
		err = x.unpack(size)
	}
	if err == nil {
		content, err = packfile.PatchDelta(base, raw)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("object at %d: %w", x.entries[i].offset, err)
	}
	return content, int64(len(raw)), nil
}

// endingWriter fails once the work has to end.
type endingWriter struct {
	to   io.Writer
	done func() error
}

// Write implements io.Writer.
func (w *endingWriter) Write(p []byte) (int, error) {
	if err := w.done(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// unpack counts what is unpacked, and returns an error if it is too much or the work has to end.
func (x *indexer) unpack(size int64) error {
	if err := x.done(); err != nil {
		return err
	}
	if x.unpacked += size; size < 0 || x.unpacked > x.limits.UnpackedBytes {
		return fmt.Errorf("%w: its objects take more than %d bytes when they are unpacked (limits.unpackedBytes)", ErrTooLarge, x.limits.UnpackedBytes)
	}
	return nil
}

// fits returns an error if an object is too large, or with the bytes that are needed beside it what is in memory altogether.
func (x *indexer) fits(size, beside int64) error {
	if most := x.limits.ObjectBytes; size > most || x.held+size+beside > 4*most {
		return fmt.Errorf("%w: %d bytes to rebuild, at most %d (limits.objectBytes), and four times that along a chain of differences", ErrTooLarge, size, most)
	}
	return nil
}

// inflate reads an entry again, and returns the object or the delta.
func (x *indexer) inflate(i int) ([]byte, error) {
	h, err := x.scan.SeekObjectHeader(x.entries[i].offset)
	if err == nil {
		err = cmp.Or(x.fits(h.Length, 0), x.unpack(h.Length))
	}
	var raw []byte
	if err == nil {
		raw, err = inflate(x.scan, h)
	}
	if err != nil {
		return nil, fmt.Errorf("object at %d: %w", x.entries[i].offset, err)
	}
	return raw, nil
}
