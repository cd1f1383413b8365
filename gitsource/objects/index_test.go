package objects

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Every index is read back as it was written, and the library reads the same entries from it.
func TestAnIndexKeepsItsEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var entries []indexed
		for range rapid.IntRange(0, 200).Draw(t, "entries") {
			e := indexed{crc: random.Uint32(), offset: random.Int64N(1 << rapid.IntRange(4, 40).Draw(t, "bits"))}
			for i := range e.hash {
				e.hash[i] = byte(random.IntN(256))
			}
			entries = append(entries, e)
		}
		raw := encodeIndex(entries, plumbing.Hash{1})
		x, err := parseIndex(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.entries()
		if err != nil || len(got) != len(entries) {
			t.Fatalf("%d entries, %v, want %d", len(got), err, len(entries))
		}
		theirs := idxfile.NewMemoryIndex()
		if err := idxfile.NewDecoder(bytes.NewReader(raw)).Decode(theirs); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(got, e) {
				t.Fatalf("entry %v is lost", e)
			}
			if crc, err := theirs.FindCRC32(e.hash); err != nil || crc != e.crc {
				t.Fatalf("the library finds checksum %x of %s, %v, want %x", crc, e.hash, err, e.crc)
			}
			if offset, ok := x.find(e.hash); !ok || offset != e.offset {
				t.Fatalf("%s is at %d, want %d", e.hash, offset, e.offset)
			}
			if offset, err := theirs.FindOffset(e.hash); err != nil || offset != e.offset {
				t.Fatalf("the library finds %s at %d, %v", e.hash, offset, err)
			}
		}
		if _, ok := x.find(plumbing.Hash{0xff, 0xff, 0xff}); ok {
			t.Fatal("something is found that is not there")
		}
	})
}

// Of an object that a pack has several times, the first is found.
func TestAnIndexFindsTheFirstOfSeveral(t *testing.T) {
	var entries []indexed
	for i := range 100 {
		entries = append(entries, indexed{hash: plumbing.Hash{byte(i % 3)}, offset: int64(100 - i)})
	}
	x, err := parseIndex(encodeIndex(entries, plumbing.Hash{1}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 3, 2} {
		if offset, ok := x.find(plumbing.Hash{byte(i)}); !ok || offset != want {
			t.Errorf("object %d is found at %d, want %d", i, offset, want)
		}
	}
}

// The index of a pack is byte for byte the one that git creates, including objects stored as
// chains of deltas and deltas whose base is given by hash.
func TestAnIndexIsWhatGitMakes(t *testing.T) {
	g := gitrepo.New(t)
	big := gitrepo.Noise(30_000)
	for i := range 8 {
		big = big[:10_000] + gitrepo.Noise(i+1) + big[10_000:]
		g.Commit("change", map[string]string{"big": big, "dir/small": gitrepo.Noise(i + 10)})
	}
	all := g.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)") + "\n"
	for name, args := range map[string][]string{
		"differences by distance": {"--delta-base-offset"},
		"differences to hashes":   {"--no-delta-base-offset"},
		"no differences":          {"--window=0"},
	} {
		t.Run(name, func(t *testing.T) {
			pack := g.Output(all, append([]string{"pack-objects", "-q", "--stdout"}, args...)...)
			dir := t.TempDir()
			path := filepath.Join(dir, "theirs.pack")
			if err := os.WriteFile(path, []byte(pack), 0o600); err != nil {
				t.Fatal(err)
			}
			g.Git("index-pack", path)
			want, err := os.ReadFile(filepath.Join(dir, "theirs.idx"))
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(filepath.Join(dir, "ours.pack"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			entries, checksum, err := indexPack(t.Context(), f, bytes.NewReader([]byte(pack)), Limits{Objects: 1000, ObjectBytes: mib, UnpackedBytes: mib})
			if err != nil {
				t.Fatal(err)
			}
			if got := encodeIndex(entries, checksum); !bytes.Equal(got, want) {
				t.Errorf("our index of %d bytes is not git's of %d", len(got), len(want))
			}
			if got, err := os.ReadFile(f.Name()); err != nil || string(got) != pack {
				t.Error("the pack was not kept as it came")
			}
		})
	}
}

// A pack that is truncated, changed or followed by more data is refused, wherever the damage
// is.
func TestADamagedPackIsRefused(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": gitrepo.Noise(300), "b": gitrepo.Noise(299)})
	all := g.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)") + "\n"
	pack := []byte(g.Output(all, "pack-objects", "-q", "--stdout"))
	limits := Limits{Objects: 5_000_000, ObjectBytes: 128 * mib, UnpackedBytes: 128 * mib}
	try := func(pack []byte) error {
		f, err := os.Create(filepath.Join(t.TempDir(), "pack"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, _, err = indexPack(t.Context(), f, bytes.NewReader(pack), limits)
		return err
	}
	if err := try(pack); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(pack); n += 7 {
		if try(pack[:n]) == nil {
			t.Errorf("cut at %d of %d", n, len(pack))
		}
		changed := bytes.Clone(pack)
		changed[n] ^= 0x10
		if try(changed) == nil {
			t.Errorf("changed at %d of %d", n, len(pack))
		}
	}
	if err := try(append(bytes.Clone(pack), 'x')); err == nil || !strings.Contains(err.Error(), "goes on after its end") {
		t.Errorf("a pack that goes on: %v", err)
	}
	if err := try(nil); err == nil || !strings.Contains(err.Error(), "remote sent no pack") {
		t.Errorf("no pack: %v", err)
	}
}

// No pack makes the indexer panic, or accept objects that cannot be read back.
func FuzzIndexPack(f *testing.F) {
	g := gitrepo.New(f)
	g.Commit("first", map[string]string{"a": gitrepo.Noise(100)})
	g.Commit("second", map[string]string{"a": gitrepo.Noise(100) + "x"})
	all := g.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)") + "\n"
	f.Add([]byte(g.Output(all, "pack-objects", "-q", "--stdout", "--window=10")))
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	limits := Limits{Objects: 5_000_000, ObjectBytes: 128 * mib, UnpackedBytes: 128 * mib}
	limits.ObjectBytes = mib
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := os.CreateTemp(dir, "pack")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file.Name())
		defer file.Close()
		entries, checksum, err := indexPack(t.Context(), file, bytes.NewReader(raw), limits)
		if err != nil {
			return
		}
		x, err := parseIndex(encodeIndex(entries, checksum))
		if err != nil {
			t.Fatal(err)
		}
		p := &pack{name: "p", file: file, size: int64(len(raw)), index: x, bases: newAging[baseKey, content](mib)}
		for _, e := range entries {
			if _, err := p.at(e.offset, mib); err != nil {
				t.Errorf("%s cannot be read back: %v", e.hash, err)
			}
		}
	})
}

// No index file causes a panic.
func FuzzParseIndex(f *testing.F) {
	f.Add(encodeIndex([]indexed{{hash: plumbing.Hash{1}, offset: 1 << 40}, {hash: plumbing.Hash{2}, offset: 12}}, plumbing.Hash{}), []byte{1})
	f.Fuzz(func(_ *testing.T, raw, name []byte) {
		x, err := parseIndex(raw)
		if err != nil {
			return
		}
		var h plumbing.Hash
		copy(h[:], name)
		x.find(h)
		_, _ = x.entries()
	})
}

// An agingCache never exceeds its limit, always has the value that was put last, and only
// returns values that were put.
func TestAnAgingCacheIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 100
		c := newAging[int, int](limit)
		truth := map[int]int{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			k := rapid.IntRange(0, 20).Draw(t, "key")
			if rapid.Bool().Draw(t, "put") {
				v, weight := rapid.Int().Draw(t, "value"), rapid.IntRange(1, 80).Draw(t, "weight")
				c.put(k, v, weight)
				if weight <= limit/2 {
					truth[k] = v
					if got, ok := c.get(k); !ok || got != v {
						t.Fatal("forgot what was just put")
					}
				}
			} else if got, ok := c.get(k); ok && got != truth[k] {
				t.Fatalf("answers %d, was put %d", got, truth[k])
			}
			total := 0
			for _, generation := range []map[int]weighed[int]{c.young, c.old} {
				for _, w := range generation {
					total += w.weight
				}
			}
			if total > limit {
				t.Fatalf("holds %d, at most %d", total, limit)
			}
		}
	})
}
