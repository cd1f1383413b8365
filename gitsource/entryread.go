package gitsource

import (
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// An entryHeader is what stands before the compressed part.
type entryHeader struct {
	kind plumbing.ObjectType
	size int64 // of what is compressed
	base int64 // where a difference's base begins
}

// An entryReader reads a pack from an offset on. They are kept for reuse: the
// decompressor is some 40 KiB.
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

// ReadByte implements io.ByteReader, so that the decompressor takes no more
// than it needs.
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

// header reads type, size and base.
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
			return h, errors.New("object has an absurd size")
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.kind {
	case plumbing.OFSDeltaObject:
		distance, err := r.distance()
		if h.base = offset - distance; err == nil && (distance <= 0 || h.base < packHeader) {
			err = errors.New("base is not before the difference to it")
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

// distance reads how far back a base is, in Git's own way to write numbers.
func (r *entryReader) distance() (int64, error) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if n > 1<<50 {
			return 0, errors.New("base is absurdly far away")
		}
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// inflate reads exactly so many bytes of what is compressed.
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
		return nil, errors.New("object is not as long as it says")
	}
	return raw, nil
}
