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

	"github.com/gitfleet/gitfleet/reconciler/gzipped"
)

// A segmentID is different for every segment, including those that a deposed replica has
// written without effect.
type segmentID struct {
	Term   int `json:"term"`
	Number int `json:"number"`
}

func (s segmentID) part(n int) string {
	return fmt.Sprintf("%s%d-%d-%d", segmentPrefix, s.Term, s.Number, n)
}

// termOf returns the term in the name of a part, and whether it is one.
func termOf(name string) (term int, ok bool) {
	_, err := fmt.Sscanf(name, segmentPrefix+"%d-", &term)
	return term, err == nil
}

// A segment is a set of records, compressed and split into parts that an API server can store.
type segment struct {
	segmentID
	Parts int    `json:"parts"`
	Bytes int    `json:"bytes"` // uncompressed size of the records
	Sum   string `json:"sum"`   // SHA-256 of the compressed parts
}

// parts are the names of the objects of the segment.
func (s segment) parts() []string {
	names := make([]string, s.Parts)
	for n := range names {
		names[n] = s.part(n)
	}
	return names
}

// largestPart keeps an object well below the 1 MiB that an API server accepts.
const largestPart = 640 << 10

// pack converts records into a segment. The value of a deleted record is nil.
func pack(id segmentID, records map[string][]byte) (segment, [][]byte, error) {
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
		return segment{}, nil, err
	}
	sum := sha256.Sum256(packed)
	parts := slices.Collect(slices.Chunk(packed, largestPart))
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
	for _, name := range seg.parts() {
		part, _, err := s.objects.Get(name)
		if err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		raw = append(raw, part...)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != seg.Sum {
		return nil, damagedShared(seg.part(0) + " is not what was written")
	}
	records, err := unpack(raw, seg.plain())
	if err != nil {
		return nil, damagedShared(seg.part(0) + ": " + err.Error())
	}
	return records, nil
}

// largestSegment is the maximum uncompressed size of a segment, which is far above that of any fleet.
const largestSegment = 2 << 30

// plain is the maximum size of what the segment decompresses to: its records, and the sizes of keys and
// values, which for the smallest records are two bytes for one.
func (s segment) plain() int64 {
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
