package ledger

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// A segment is a set of records, compressed and split into parts that an API server can store.
type segment struct {
	segmentID
	Parts int `json:"parts"`
	// Bytes is the uncompressed size of the records, and Sum the SHA-256 of the compressed
	// parts.
	Bytes int    `json:"bytes"`
	Sum   string `json:"sum"`
}

// largestPart keeps an object well below the 1 MiB that an API server accepts. Tests use
// smaller parts.
var largestPart = 640 << 10

// pack converts records into a segment. The value of a deleted record is nil.
func pack(id segmentID, records map[string][]byte) (segment, [][]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return segment{}, nil, err
	}
	var head []byte
	for _, key := range slices.Sorted(maps.Keys(records)) {
		value := records[key]
		head = binary.AppendUvarint(head[:0], uint64(len(key)))
		head = append(head, key...)
		if value == nil {
			head = binary.AppendUvarint(head, 0)
		} else {
			head = binary.AppendUvarint(head, uint64(len(value))+1)
		}
		w.Write(head) // writing to a buffer cannot fail
		w.Write(value)
	}
	if err := w.Close(); err != nil {
		return segment{}, nil, err
	}
	sum := sha256.Sum256(out.Bytes())
	parts := slices.Collect(slices.Chunk(out.Bytes(), largestPart))
	return segment{id, len(parts), sizeOf(records), hex.EncodeToString(sum[:])}, parts, nil
}

// sizeOf returns the uncompressed size of records.
func sizeOf(records map[string][]byte) int {
	n := 0
	for key, value := range records {
		n += len(key) + len(value)
	}
	return n
}

// readSegment returns the records of a segment. The value of a deleted record is nil.
func (s *Shared) readSegment(seg segment) (map[string][]byte, error) {
	var raw []byte
	for n := range seg.Parts {
		part, _, err := s.objects.Get(seg.part(n))
		if err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		raw = append(raw, part...)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != seg.Sum {
		return nil, damagedShared(seg.part(0) + " is not what was written")
	}
	records, err := unpack(raw)
	if err != nil {
		return nil, damagedShared(seg.part(0) + ": " + err.Error())
	}
	return records, nil
}

func unpack(raw []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	records := map[string][]byte{}
	for r := (cursor{rest: all}); len(r.rest) > 0; {
		key := r.take(r.number())
		size := r.number()
		switch {
		case r.torn:
			return nil, errors.New("a record is cut off")
		case size == 0:
			records[string(key)] = nil
			continue
		}
		value := r.take(size - 1)
		if r.torn {
			return nil, errors.New("a record is cut off")
		}
		records[string(key)] = value
	}
	return records, nil
}

// A cursor reads numbers and byte strings until the end.
type cursor struct {
	rest []byte
	torn bool
}

func (c *cursor) number() uint64 {
	n, used := binary.Uvarint(c.rest)
	if used <= 0 {
		c.torn = true
		return 0
	}
	c.rest = c.rest[used:]
	return n
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.torn, c.rest = true, nil
		return nil
	}
	out := c.rest[:n:n]
	c.rest = c.rest[n:]
	return out
}
