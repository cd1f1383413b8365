// Package segment packs records into compressed parts that an API server can store, and unpacks them.
package segment

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

	"github.com/gitfleet/gitfleet/reconciler/gzipped"
)

// Prefix is that with which the names of all parts begin.
const Prefix = "segment-"

// An ID is different for every segment, including those that a deposed replica has written without effect.
type ID struct {
	Term   int `json:"term"`
	Number int `json:"number"`
}

// Part returns the name of a part, which are counted from 0.
func (id ID) Part(n int) string {
	return fmt.Sprintf("%s%d-%d-%d", Prefix, id.Term, id.Number, n)
}

// TermOf returns the term in the name of a part, and whether it is one.
func TermOf(name string) (term int, ok bool) {
	_, err := fmt.Sscanf(name, Prefix+"%d-", &term)
	return term, err == nil
}

// A Segment is a set of records, compressed and split into parts.
type Segment struct {
	ID
	Parts int    `json:"parts"`
	Bytes int    `json:"bytes"` // uncompressed size of the records
	Sum   string `json:"sum"`   // SHA-256 of the compressed parts
}

// Names returns the names of the parts.
func (s Segment) Names() []string {
	names := make([]string, s.Parts)
	for n := range names {
		names[n] = s.Part(n)
	}
	return names
}

// largestPart keeps an object well below the 1 MiB that an API server accepts.
const largestPart = 640 << 10

// Pack converts records into a segment, and returns it with its parts. The value of a deleted record is nil.
func Pack(id ID, records map[string][]byte) (Segment, [][]byte, error) {
	packed, err := gzipped.Encode(func(w io.Writer) error {
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
		return nil
	})
	if err != nil {
		return Segment{}, nil, err
	}
	sum := sha256.Sum256(packed)
	parts := slices.Collect(slices.Chunk(packed, largestPart))
	return Segment{id, len(parts), Size(records), hex.EncodeToString(sum[:])}, parts, nil
}

// Size returns the uncompressed size of records.
func Size(records map[string][]byte) int {
	n := 0
	for key, value := range records {
		n += len(key) + len(value)
	}
	return n
}

// Unpack returns the records in the joined parts of the segment. The value of a deleted record is nil.
func (s Segment) Unpack(joined []byte) (map[string][]byte, error) {
	if sum := sha256.Sum256(joined); hex.EncodeToString(sum[:]) != s.Sum {
		return nil, errors.New(s.Part(0) + " is not what was written")
	}
	records, err := unpack(joined, s.plain())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Part(0), err)
	}
	return records, nil
}

// largestSegment is the maximum uncompressed size of a segment, which is far above that of any fleet.
const largestSegment = 2 << 30

// plain is the maximum size of what the segment decompresses to: its records, and the sizes of keys and
// values, which for the smallest records are two bytes for one.
func (s Segment) plain() int64 {
	if s.Bytes < 0 || s.Bytes > largestSegment/3 {
		return largestSegment
	}
	return 3*int64(s.Bytes) + 64
}

// unpack returns the records in the compressed parts, without copying the values. It refuses parts that
// decompress to more than most bytes.
func unpack(raw []byte, most int64) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(z, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(all)) > most {
		return nil, fmt.Errorf("it decompresses to more than %d bytes", most)
	}
	in, records := bytes.NewBuffer(all), map[string][]byte{}
	for {
		size, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		key, err := take(in, size, err)
		if err == nil {
			size, err = binary.ReadUvarint(in)
		}
		if err == nil && size == 0 {
			records[string(key)] = nil
			continue
		}
		if records[string(key)], err = take(in, size-1, err); err != nil {
			return nil, fmt.Errorf("a record is cut off: %w", err)
		}
	}
}

// take returns the next n bytes without copying them, unless there was an error before.
func take(in *bytes.Buffer, n uint64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if n > uint64(in.Len()) {
		return nil, io.ErrUnexpectedEOF
	}
	return slices.Clip(in.Next(int(n))), nil
}
