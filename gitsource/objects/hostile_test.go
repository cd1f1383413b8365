package objects

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the checksum of Git's pack format
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A packWriter writes a pack entry by entry.
type packWriter struct {
	bytes.Buffer
	deflate *zlib.Writer // used again, since a new one takes most of a megabyte
}

func newPack(entries int) *packWriter {
	w := &packWriter{deflate: zlib.NewWriter(io.Discard)}
	w.WriteString("PACK")
	binary.Write(w, binary.BigEndian, [2]uint32{2, uint32(entries)})
	return w
}

func (w *packWriter) entry(kind plumbing.ObjectType, base, content []byte) {
	length := len(content)
	next := byte(kind)<<4 | byte(length&15)
	for length >>= 4; length > 0; length >>= 7 {
		w.WriteByte(next | 0x80)
		next = byte(length & 0x7f)
	}
	w.WriteByte(next)
	w.Write(base)
	w.deflate.Reset(&w.Buffer)
	w.deflate.Write(content)
	w.deflate.Close()
}

// end returns the pack with its checksum.
func (w *packWriter) end() []byte {
	sum := sha1.Sum(w.Bytes()) //nolint:gosec // see the import
	return append(w.Bytes(), sum[:]...)
}

// hostilePack returns a small pack with a large base and n deltas that each make it anew with four other bytes at its end, or, in a
// chain, change these of the one before.
func hostilePack(size, n int, chain bool) []byte {
	out := newPack(n + 1)
	content := make([]byte, size)
	out.entry(plumbing.BlobObject, nil, content)
	base := hashOf(plumbing.BlobObject, content)
	for i := range n {
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(content))), uint64(size+4))
		for at := 0; at < size; at += 0xffff {
			k := min(0xffff, size-at)
			delta = append(delta, 0xbf, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(k), byte(k>>8))
		}
		suffix := binary.BigEndian.AppendUint32(nil, uint32(i))
		out.entry(plumbing.REFDeltaObject, base[:], append(append(delta, 4), suffix...))
		if chain {
			content = append(content[:size], suffix...)
			base = hashOf(plumbing.BlobObject, content)
		}
	}
	return out.end()
}

// longDeltas returns a pack of a chain of n objects of size bytes, whose deltas are nine times as large.
func longDeltas(size, n int) []byte {
	out := newPack(n + 1)
	content := make([]byte, size)
	out.entry(plumbing.BlobObject, nil, content)
	for i := range n {
		base := hashOf(plumbing.BlobObject, content)
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(size))
		for range size - 1 {
			delta = append(delta, 0xff, 0, 0, 0, 0, 1, 0, 0) // a copy of the first byte
		}
		content = append(make([]byte, size-1), byte(i+1))
		out.entry(plumbing.REFDeltaObject, base[:], append(delta, 1, byte(i+1)))
	}
	return out.end()
}

// The deltas of a chain count like its objects.
func TestLargeDeltasOfAChainAreRefused(t *testing.T) {
	limits := Limits{Objects: 100, ObjectBytes: 10_000, UnpackedBytes: mib}
	if err := indexOf(t, t.Context(), longDeltas(1000, 4), limits); err != nil {
		t.Errorf("a short chain: %v", err)
	}
	if err := indexOf(t, t.Context(), longDeltas(1000, 5), limits); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "four times that along a chain") {
		t.Errorf("a longer one: %v", err)
	}
}

// However large the deltas of a chain are, its objects are read back.
func TestLargeDeltasAreReadBack(t *testing.T) {
	const size, n = 2000, 40
	st := create(t)
	addPack(t, st, longDeltas(size, n))
	for _, p := range []*pack{st.packs[0], {file: st.packs[0].file, size: st.packs[0].size, index: st.packs[0].index, bases: newAging[baseKey, content](0)}} {
		for i := range n {
			want := append(make([]byte, size-1), byte(i+1))
			if got, err := p.read(plumbing.BlobObject, hashOf(plumbing.BlobObject, want), size); err != nil || !bytes.Equal(got, want) {
				t.Errorf("object %d: %d bytes, %v", i, len(got), err)
			}
		}
	}
}

// A small pack can take minutes to unpack. It is bounded by the sum, and ends with its context.
func TestHostilePackEnds(t *testing.T) {
	pack := hostilePack(8*mib, 200, false)
	if len(pack) > 400*kib {
		t.Fatalf("the pack has %d bytes", len(pack))
	}
	index := func(ctx context.Context, limits Limits) error { return indexOf(t, ctx, pack, limits) }
	limits := Limits{Objects: 1000, ObjectBytes: 16 * mib, UnpackedBytes: 100 * mib}
	if err := index(t.Context(), limits); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the sum: %v", err)
	}
	limits.UnpackedBytes = 1 << 40
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := index(ctx, limits); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("after its context: %v, %s", err, time.Since(start))
	}
}

// A chain of deltas that is too long to be read is refused before it takes much memory.
func TestLongChainIsRefused(t *testing.T) {
	limits := Limits{Objects: 10_000, ObjectBytes: 128 * mib, UnpackedBytes: 1 << 40}
	if err := indexOf(t, t.Context(), hostilePack(100, maxChain, true), limits); err != nil {
		t.Errorf("the longest chain: %v", err)
	}
	if err := indexOf(t, t.Context(), hostilePack(100, maxChain+1, true), limits); err == nil || !strings.Contains(err.Error(), "more than 4095 deltas") {
		t.Errorf("a longer chain: %v", err)
	}
}

// An object is read although its base is at the end of a long chain of another pack, since both were joined.
func TestChainsOfJoinedPacksAreRead(t *testing.T) {
	st := create(t)
	limits := Limits{Objects: 10_000, ObjectBytes: 128 * mib, UnpackedBytes: 1 << 40}
	add := func(pack []byte) {
		t.Helper()
		if err := st.AddPack(t.Context(), bytes.NewReader(pack), limits); err != nil {
			t.Fatal(err)
		}
	}
	add(hostilePack(100, maxChain, true))
	last := binary.BigEndian.AppendUint32(make([]byte, 100), maxChain-1)
	base := hashOf(plumbing.BlobObject, last)
	out := newPack(3)
	out.entry(plumbing.BlobObject, nil, last)
	out.entry(plumbing.REFDeltaObject, base[:], append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(last))), 2), 2, 'h', 'i'))
	out.entry(plumbing.BlobObject, nil, []byte(noise(1, 4*mib))) // the larger pack comes last
	add(out.end())
	if _, ok := st.packs[0].index.find(base); !ok {
		t.Fatal("the chain does not end as expected")
	}
	if err := st.JoinPacks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Object(plumbing.BlobObject, hashOf(plumbing.BlobObject, []byte("hi")), 2); err != nil || string(got) != "hi" {
		t.Errorf("%q, %v", got, err)
	}
}

func indexOf(t *testing.T, ctx context.Context, pack []byte, limits Limits) error {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "pack"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, _, err = indexPack(ctx, f, bytes.NewReader(pack), limits)
	return err
}
