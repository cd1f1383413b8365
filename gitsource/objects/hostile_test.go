package objects

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the checksum of Git's pack format
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// hostilePack returns a small pack with a large base and n deltas that each make it anew, or, in a
// chain, lengthen the one before.
func hostilePack(size, n int, chain bool) []byte {
	var out bytes.Buffer
	out.WriteString("PACK")
	binary.Write(&out, binary.BigEndian, [2]uint32{2, uint32(n + 1)})
	entry := func(kind plumbing.ObjectType, base, content []byte) {
		length := len(content)
		next := byte(kind)<<4 | byte(length&15)
		for length >>= 4; length > 0; length >>= 7 {
			out.WriteByte(next | 0x80)
			next = byte(length & 0x7f)
		}
		out.WriteByte(next)
		out.Write(base)
		w := zlib.NewWriter(&out)
		w.Write(content)
		w.Close()
	}
	content := make([]byte, size)
	entry(plumbing.BlobObject, nil, content)
	base := hashOf(plumbing.BlobObject, content)
	for i := range n {
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(size+4))
		for at := 0; at < size; at += 0xffff {
			k := min(0xffff, size-at)
			delta = append(delta, 0xbf, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(k), byte(k>>8))
		}
		suffix := binary.BigEndian.AppendUint32(nil, uint32(i))
		entry(plumbing.REFDeltaObject, base[:], append(append(delta, 4), suffix...))
		if chain {
			content = append(content[:size], suffix...)
			size, base = len(content), hashOf(plumbing.BlobObject, content)
		}
	}
	sum := sha1.Sum(out.Bytes()) //nolint:gosec // see the import
	return append(out.Bytes(), sum[:]...)
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
