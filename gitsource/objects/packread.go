package objects

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // Git's object names; collisions are detected when a pack arrives
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const (
	packHeader  = 12
	packTrailer = 20
)

// A pack is one open pack file. Unlike the library's, which seeks, it is safe for concurrent
// reads.
type pack struct {
	name  string
	file  *os.File
	size  int64
	index *index
	// bases caches the objects that deltas were applied to.
	bases *agingCache[baseKey, content]
}

type baseKey struct {
	pack   string
	offset int64
}

// A content is an object's type and bytes.
type content struct {
	kind  plumbing.ObjectType
	bytes []byte
}

// ErrWrongType is returned for an object that exists but is of another type.
var ErrWrongType = errors.New("object is of another type")

// openPack opens path.pack and path.idx.
func openPack(path, name string, bases *agingCache[baseKey, content]) (*pack, error) {
	index, err := openIndex(path + ".idx")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path + ".pack")
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &pack{name, f, info.Size(), index, bases}, nil
}

// read returns the content of an object after verifying its hash. The caller may change it.
func (p *pack) read(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	offset, ok := p.index.find(h)
	if !ok {
		return nil, errMissing
	}
	o, err := p.at(offset, limit)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	if hashOf(o.kind, o.bytes) != h {
		return nil, errors.New("content does not have the hash it is stored under")
	}
	if o.kind != t {
		return nil, fmt.Errorf("%w: %s, not %s", ErrWrongType, o.kind, t)
	}
	return o.bytes, nil
}

func hashOf(t plumbing.ObjectType, content []byte) plumbing.Hash {
	header := append(t.Bytes(), ' ')
	header = append(strconv.AppendInt(header, int64(len(content)), 10), 0)
	sum := sha1.New() //nolint:gosec // see the import
	sum.Write(header)
	sum.Write(content)
	return plumbing.Hash(sum.Sum(nil))
}

// maxChain is the maximum length of a chain of deltas in a pack that is received, as in Git.
const maxChain = 4095

// at rebuilds the object at an offset. It fails if the object exceeds limit bytes. Of a chain of deltas it has one in memory at a
// time, with the object before and the one after it.
func (p *pack) at(offset, limit int64) (content, error) {
	var deltas []int64             // the offsets of those to apply, the last one first
	for len(deltas) <= p.index.n { // in joined packs, a chain may go on in another pack
		if o, ok := p.bases.get(baseKey{p.name, offset}); ok {
			if len(deltas) == 0 {
				o.bytes = bytes.Clone(o.bytes)
				return o, fits(int64(len(o.bytes)), limit)
			}
			return p.apply(o, deltas)
		}
		h, raw, err := p.whole(offset, limit)
		if err != nil {
			return content{}, err
		}
		if !h.Type.IsDelta() {
			o := content{h.Type, raw}
			if len(deltas) > 0 {
				p.bases.put(baseKey{p.name, offset}, o, len(raw))
			}
			return p.apply(o, deltas)
		}
		if len(deltas) == 0 {
			size, err := p.sizeAt(offset)
			if err = errors.Join(err, fits(size, limit)); err != nil {
				return content{}, err
			}
			limit = math.MaxInt64 // a base may be larger than the object
		}
		deltas = append(deltas, offset)
		if offset, err = p.baseOf(h); err != nil {
			return content{}, err
		}
	}
	return content{}, errors.New("object is based on itself")
}

// apply applies the deltas at some offsets to a base, the last delta first, and caches the results that other
// objects may be based on.
func (p *pack) apply(o content, deltas []int64) (content, error) {
	for i, offset := range slices.Backward(deltas) {
		delta, err := p.delta(offset)
		if err != nil {
			return content{}, err
		}
		if o.bytes, err = packfile.PatchDelta(o.bytes, delta); err != nil {
			return content{}, err
		}
		if i > 0 {
			p.bases.put(baseKey{p.name, offset}, o, len(o.bytes))
		}
	}
	return o, nil
}

// scanners are pooled, since each has buffers of several KiB.
var scanners = sync.Pool{New: func() any { return packfile.NewScanner(nil) }}

// scanner returns a scanner of the pack, which the caller returns to scanners.
func (p *pack) scanner() *packfile.Scanner {
	s := scanners.Get().(*packfile.Scanner)
	s.Reset(io.NewSectionReader(p.file, 0, p.size-packTrailer))
	return s
}

// whole returns the header of the entry at an offset, and its content unless it is a delta. It fails if that exceeds limit bytes.
func (p *pack) whole(offset, limit int64) (*packfile.ObjectHeader, []byte, error) {
	s := p.scanner()
	defer scanners.Put(s)
	h, err := s.SeekObjectHeader(offset)
	if err != nil || h.Type.IsDelta() {
		return h, nil, err
	}
	if err := fits(h.Length, limit); err != nil {
		return nil, nil, err
	}
	raw, err := inflate(s, h)
	return h, raw, err
}

// delta returns the delta at an offset.
func (p *pack) delta(offset int64) ([]byte, error) {
	s := p.scanner()
	defer scanners.Put(s)
	h, err := s.SeekObjectHeader(offset)
	if err != nil {
		return nil, err
	}
	return inflate(s, h)
}

// inflate decompresses the entry whose header a scanner has read.
func inflate(s *packfile.Scanner, h *packfile.ObjectHeader) ([]byte, error) {
	var raw bytes.Buffer
	raw.Grow(int(min(h.Length, mib)))
	n, _, err := s.NextObject(&raw)
	if err == nil && n != h.Length {
		err = errors.New("object does not have the size in its header")
	}
	return raw.Bytes(), err
}

// baseOf returns the offset of the base of a delta.
func (p *pack) baseOf(h *packfile.ObjectHeader) (int64, error) {
	if h.Type == plumbing.OFSDeltaObject {
		return h.OffsetReference, nil
	}
	offset, ok := p.index.find(h.Reference)
	if !ok {
		return 0, errMissing
	}
	return offset, nil
}

// sizeAt returns the size of an object, reading only its beginning.
func (p *pack) sizeAt(offset int64) (int64, error) {
	s := p.scanner()
	defer scanners.Put(s)
	h, err := s.SeekObjectHeader(offset)
	if err != nil {
		return 0, err
	}
	if !h.Type.IsDelta() {
		return h.Length, nil
	}
	r, err := s.ReadObject()
	if err != nil {
		return 0, err
	}
	var head [2 * binary.MaxVarintLen64]byte
	n, err := io.ReadFull(r, head[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	return deltaResult(head[:n])
}

// deltaResult returns the size of the object that a delta results in.
func deltaResult(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta) // the size of the base
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, n := binary.Uvarint(delta[n:])
	if n <= 0 || size > 1<<62 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

func fits(size, limit int64) error {
	if size > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, limit)
	}
	return nil
}
