package objects

import (
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// An entryHeader precedes the compressed content of an entry.
type entryHeader struct {
	kind plumbing.ObjectType
	size int64 // size of the content, uncompressed
	base int64 // offset of the base of a delta
}

// An entryReader reads one entry of a pack. Readers are pooled, since a decompressor takes some
// 40 KiB.
type entryReader struct {
	file *os.File
	at   int64
	end  int64
	buf  []byte
	rest []byte
	z    io.ReadCloser
}

var entryReaders = sync.Pool{New: func() any { return &entryReader{buf: make([]byte, 4*kib)} }}

func (p *pack) reader(offset int64) *entryReader {
	r := entryReaders.Get().(*entryReader)
	r.file, r.at, r.end, r.rest = p.file, offset, p.size-packTrailer, nil
	return r
}

func (r *entryReader) release() {
	r.file = nil
	entryReaders.Put(r)
}

func (r *entryReader) fill() error {
	if len(r.rest) > 0 {
		return nil
	}
	n := min(int64(len(r.buf)), r.end-r.at)
	if n <= 0 {
		return io.ErrUnexpectedEOF
	}
	if _, err := r.file.ReadAt(r.buf[:n], r.at); err != nil {
		return err
	}
	r.at += n
	r.rest = r.buf[:n]
	return nil
}

// Read implements io.Reader.
func (r *entryReader) Read(b []byte) (int, error) {
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// ReadByte implements io.ByteReader, which keeps the decompressor from reading ahead.
func (r *entryReader) ReadByte() (byte, error) {
	if err := r.fill(); err != nil {
		return 0, err
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b, nil
}

func (r *entryReader) zlib() (io.Reader, error) {
	if r.z == nil {
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, err
		}
		r.z = z
		return z, nil
	}
	return r.z, r.z.(zlib.Resetter).Reset(r, nil)
}

// header reads the header of the entry at an offset.
func (r *entryReader) header(p *pack, offset int64) (entryHeader, error) {
	var h entryHeader
	b, err := r.ReadByte()
	if err != nil {
		return h, err
	}
	h.kind, h.size = plumbing.ObjectType(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = r.ReadByte(); err != nil {
			return h, err
		}
		if shift > 50 {
			return h, errors.New("object size is out of range")
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.kind {
	case plumbing.OFSDeltaObject:
		distance, err := r.distance()
		if h.base = offset - distance; err == nil && (distance <= 0 || h.base < packHeader) {
			err = errors.New("base is not before its delta")
		}
		return h, err
	case plumbing.REFDeltaObject:
		var base plumbing.Hash
		if _, err := io.ReadFull(r, base[:]); err != nil {
			return h, err
		}
		var ok bool
		if h.base, ok = p.index.find(base); !ok {
			err = errMissing
		}
		return h, err
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return h, nil
	}
	return h, fmt.Errorf("object is of unknown type %d", h.kind)
}

// distance reads the distance from a delta back to its base, in Git's encoding of offsets.
func (r *entryReader) distance() (int64, error) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if n > 1<<50 {
			return 0, errors.New("distance of the base is out of range")
		}
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// inflate decompresses content of exactly size bytes.
func (r *entryReader) inflate(size int64) ([]byte, error) {
	z, err := r.zlib()
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 0, min(size, mib)+1)
	for int64(len(raw)) <= size {
		if len(raw) == cap(raw) {
			raw = append(raw, 0)[:len(raw)]
		}
		n, err := z.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(raw)) != size {
		return nil, errors.New("object does not have the size in its header")
	}
	return raw, nil
}
