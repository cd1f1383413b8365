package objects

import (
	"bytes"
	"cmp"
	"crypto/sha1" //nolint:gosec // the checksum of Git's index format
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// An index maps the objects of a pack to their offsets. It is the content of the index file, 28
// bytes per object. It is safe for concurrent use.
type index struct {
	n       int
	names   []byte // n hashes, sorted
	crcs    []byte
	offsets []byte
	far     []byte // offsets beyond 2 GiB
}

// An indexed is an entry of a pack with its hash.
type indexed struct {
	hash   plumbing.Hash
	crc    uint32
	offset int64
}

const (
	indexHeader = 8
	fanoutBytes = 4 * 256
	hashBytes   = 20
)

var indexMagic = []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}

var errIndex = errors.New("index is damaged")

func openIndex(path string) (*index, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseIndex(raw)
}

// parseIndex verifies the checksum and the size of the file.
func parseIndex(raw []byte) (*index, error) {
	if len(raw) < indexHeader+fanoutBytes+2*hashBytes || !bytes.HasPrefix(raw, indexMagic) {
		return nil, errIndex
	}
	body, sum := raw[:len(raw)-hashBytes], raw[len(raw)-hashBytes:]
	if got := sha1.Sum(body); !bytes.Equal(got[:], sum) { //nolint:gosec // see the import
		return nil, errIndex
	}
	x := &index{n: int(binary.BigEndian.Uint32(body[indexHeader+fanoutBytes-4:]))}
	rest := body[indexHeader+fanoutBytes : len(body)-hashBytes]
	if len(rest) < x.n*(hashBytes+8) {
		return nil, errIndex
	}
	x.names, rest = rest[:x.n*hashBytes], rest[x.n*hashBytes:]
	x.crcs, rest = rest[:x.n*4], rest[x.n*4:]
	x.offsets, x.far = rest[:x.n*4], rest[x.n*4:]
	return x, nil
}

// name returns the hash of an object as bytes.
func (x *index) name(i int) []byte { return x.names[i*hashBytes : (i+1)*hashBytes] }

// find returns the offset of an object.
func (x *index) find(h plumbing.Hash) (offset int64, ok bool) {
	i, ok := sort.Find(x.n, func(i int) int { return bytes.Compare(h[:], x.name(i)) })
	if !ok {
		return 0, false
	}
	return x.offset(i)
}

func (x *index) offset(i int) (int64, bool) {
	short := binary.BigEndian.Uint32(x.offsets[4*i:])
	if short&(1<<31) == 0 {
		return int64(short), true
	}
	at := int(short&^(1<<31)) * 8
	if at+8 > len(x.far) {
		return 0, false
	}
	long := binary.BigEndian.Uint64(x.far[at:])
	return int64(long), long <= math.MaxInt64 //nolint:gosec // just compared
}

// entries returns all objects, sorted by hash.
func (x *index) entries() ([]indexed, error) {
	all := make([]indexed, x.n)
	for i := range all {
		offset, ok := x.offset(i)
		if !ok {
			return nil, errIndex
		}
		all[i] = indexed{plumbing.Hash(x.name(i)), binary.BigEndian.Uint32(x.crcs[4*i:]), offset}
	}
	return all, nil
}

// encodeIndex encodes the entries in version 2 of Git's index format. Unlike the library's
// encoder it keeps duplicate hashes, so that the index has as many entries as the pack. The one
// with the smallest offset is found, so that no two deltas by hash in joined packs have each other
// as base.
func encodeIndex(entries []indexed, checksum plumbing.Hash) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b indexed) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.offset, b.offset))
	})
	out := make([]byte, 0, indexHeader+fanoutBytes+(hashBytes+8)*len(entries)+2*hashBytes)
	out = append(out, indexMagic...)
	next := 0
	for fan := range 256 {
		for next < len(entries) && int(entries[next].hash[0]) == fan {
			next++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(next)) //nolint:gosec // limits.objects is far below
	}
	for _, e := range entries {
		out = append(out, e.hash[:]...)
	}
	for _, e := range entries {
		out = binary.BigEndian.AppendUint32(out, e.crc)
	}
	var far []byte
	for _, e := range entries {
		short := uint32(e.offset) //nolint:gosec // replaced if it does not fit
		if e.offset > math.MaxInt32 {
			short = 1<<31 | uint32(len(far)/8)                         //nolint:gosec // as above
			far = binary.BigEndian.AppendUint64(far, uint64(e.offset)) //nolint:gosec // not negative
		}
		out = binary.BigEndian.AppendUint32(out, short)
	}
	out = append(out, far...)
	out = append(out, checksum[:]...)
	sum := sha1.Sum(out) //nolint:gosec // see the import
	return append(out, sum[:]...)
}

// withPrefix returns the hashes that begin with hexadecimal digits.
func (x *index) withPrefix(digits string) []plumbing.Hash {
	if len(digits) > 2*hashBytes {
		return nil
	}
	low, err := hex.DecodeString(digits + strings.Repeat("0", 2*hashBytes-len(digits)))
	if err != nil {
		return nil
	}
	var all []plumbing.Hash
	for i := sort.Search(x.n, func(i int) bool { return bytes.Compare(x.name(i), low) >= 0 }); i < x.n; i++ {
		h := plumbing.Hash(x.name(i))
		if !strings.HasPrefix(h.String(), digits) {
			break
		}
		all = append(all, h)
	}
	return all
}
