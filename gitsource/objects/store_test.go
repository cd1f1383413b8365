package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

var testLimits = Limits{Objects: 1000, ObjectBytes: mib, UnpackedBytes: 64 * mib}

// A source has objects in memory, from which packs are made.
type source struct {
	*memory.Storage
	t testing.TB
}

func newSource(t testing.TB) source { return source{memory.NewStorage(), t} }

func (s source) add(kind plumbing.ObjectType, content string) plumbing.Hash {
	s.t.Helper()
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, err := o.Write([]byte(content))
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := s.SetEncodedObject(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s source) blob(content string) plumbing.Hash { return s.add(plumbing.BlobObject, content) }

// tree adds a directory of entries such as those of entry, sorted by name.
func (s source) tree(entries ...string) plumbing.Hash {
	return s.add(plumbing.TreeObject, strings.Join(entries, ""))
}

func entry(mode, name string, h plumbing.Hash) string {
	return mode + " " + name + "\x00" + string(h[:])
}

// pack returns a pack of objects: deltas of a window, by hash or by distance.
func (s source) pack(window uint, byHash bool, hashes ...plumbing.Hash) []byte {
	s.t.Helper()
	var out bytes.Buffer
	if _, err := packfile.NewEncoder(&out, s, byHash).Encode(hashes, window); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

func create(t testing.TB) *Store {
	t.Helper()
	st, err := Create(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func addPack(t testing.TB, st *Store, pack []byte) {
	t.Helper()
	if err := st.AddPack(t.Context(), bytes.NewReader(pack), testLimits); err != nil {
		t.Fatal(err)
	}
}

func noise(seed uint64, n int) string {
	out := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(out)
	return string(out)
}

// Objects are read back, also after the store was opened again, however their deltas name the
// base.
func TestObjectsAreReadBack(t *testing.T) {
	for name, test := range map[string]struct {
		window uint
		byHash bool
	}{"whole": {0, false}, "deltas by distance": {10, false}, "deltas by hash": {10, true}} {
		t.Run(name, func(t *testing.T) {
			s, st := newSource(t), create(t)
			contents := map[plumbing.Hash]string{}
			text := noise(1, 5000)
			for i := range 8 {
				text = text[:1000] + fmt.Sprint(i) + text[1000:]
				contents[s.blob(text)] = text
			}
			var all []plumbing.Hash
			for h := range contents {
				all = append(all, h)
			}
			addPack(t, st, s.pack(test.window, test.byHash, all...))
			again, err := Load(st.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			for _, st := range []*Store{st, again} {
				for h, want := range contents {
					if got, err := st.Object(plumbing.BlobObject, h, int64(len(want))); err != nil || string(got) != want {
						t.Errorf("%s has %d bytes, %v", h, len(got), err)
					}
					if n, err := st.Size(h); err != nil || n != int64(len(want)) {
						t.Errorf("the size of %s is %d, %v", h, n, err)
					}
					if _, err := st.Object(plumbing.BlobObject, h, int64(len(want))-1); !errors.Is(err, ErrTooLarge) || IsDamage(err) {
						t.Errorf("%s beyond the limit: %v", h, err)
					}
					if _, err := st.Object(plumbing.TreeObject, h, mib); !errors.Is(err, ErrWrongType) || IsDamage(err) {
						t.Errorf("%s as a tree: %v", h, err)
					}
					if got := st.WithPrefix(h.String()[:20]); !slices.Equal(got, []plumbing.Hash{h}) {
						t.Errorf("%s begin with the digits of %s", got, h)
					}
				}
				missing := plumbing.NewHash(strings.Repeat("1", 40))
				_, err := st.Object(plumbing.BlobObject, missing, mib)
				_, sizeErr := st.Size(missing)
				if st.Has(missing) || !IsDamage(err) || !IsDamage(sizeErr) {
					t.Errorf("a missing object: %v, %v", err, sizeErr)
				}
				st.DropBases()
			}
		})
	}
}

// A store has the objects of the one below it, which it does not change.
func TestAStoreAboveAnother(t *testing.T) {
	s, below, above := newSource(t), create(t), create(t)
	one, two := s.blob("one"), s.blob("two")
	addPack(t, below, s.pack(0, false, one))
	addPack(t, above, s.pack(0, false, two))
	above.Below = below
	for _, h := range []plumbing.Hash{one, two} {
		content, err := above.Object(plumbing.BlobObject, h, 3)
		n, sizeErr := above.Size(h)
		if !above.Has(h) || err != nil || len(content) != 3 || sizeErr != nil || n != 3 {
			t.Errorf("%s: %q %d, %v, %v", h, content, n, err, sizeErr)
		}
	}
	if below.Has(two) {
		t.Error("the store below has the object of the one above")
	}
	if err := above.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(above.Dir); !errors.Is(err, fs.ErrNotExist) || !below.Has(one) {
		t.Errorf("after its removal: %v", err)
	}
}

// A small pack with a large object is stored, and neither that nor the refusal to read the object
// takes memory for it.
func TestALargeObjectIsNotHeldInMemory(t *testing.T) {
	s, st := newSource(t), create(t)
	large := s.blob(strings.Repeat("x", 16*mib))
	pack := s.pack(0, false, large)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	addPack(t, st, pack)
	_, err := st.Object(plumbing.BlobObject, large, mib)
	n, sizeErr := st.Size(large)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) || sizeErr != nil || n != 16*mib {
		t.Errorf("%v, %d bytes, %v", err, n, sizeErr)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4*mib {
		t.Errorf("%d bytes were allocated", got)
	}
}

// A pack beyond a limit is refused, and nothing of it is kept.
func TestPackLimits(t *testing.T) {
	s := newSource(t)
	base := noise(2, 4000)
	small, other := s.blob(base), s.blob(base+"more")
	delta := s.pack(10, false, small, other)
	tests := map[string]struct {
		limits Limits
		says   string
	}{
		"as many as allowed":  {Limits{Objects: 2, ObjectBytes: 4004, UnpackedBytes: mib}, ""},
		"too many objects":    {Limits{Objects: 1, ObjectBytes: 4004, UnpackedBytes: mib}, "2 objects, at most 1 (limits.fetchObjects)"},
		"too large a base":    {Limits{Objects: 2, ObjectBytes: 3999, UnpackedBytes: mib}, "at most 3999 (limits.objectBytes)"},
		"too much altogether": {Limits{Objects: 2, ObjectBytes: 4004, UnpackedBytes: 8000}, "take more than 8000 bytes when they are unpacked (limits.unpackedBytes)"},
		"too large a rebuild": {Limits{Objects: 2, ObjectBytes: 4003, UnpackedBytes: mib}, "4004 bytes to rebuild, at most 4003 (limits.objectBytes)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			st := create(t)
			err := st.AddPack(t.Context(), bytes.NewReader(delta), test.limits)
			files, globErr := filepath.Glob(filepath.Join(st.packDir(), "*"))
			if globErr != nil {
				t.Fatal(globErr)
			}
			if test.says == "" {
				if err != nil || len(files) != 2 {
					t.Errorf("%v, %q", err, files)
				}
				return
			}
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), test.says) || len(files) > 0 {
				t.Errorf("%v, want %q; left are %q", err, test.says, files)
			}
		})
	}
}

// The same pack is stored once. A pack that ends early, or about which the Git library panics, leaves nothing.
func TestAddPackKeepsWholePacksOnce(t *testing.T) {
	s, st := newSource(t), create(t)
	pack := s.pack(0, false, s.blob("one"))
	addPack(t, st, pack)
	addPack(t, st, pack)
	if err := st.AddPack(t.Context(), io.MultiReader(bytes.NewReader(pack[:len(pack)-5])), testLimits); err == nil {
		t.Error("a pack that ends early is stored")
	}
	var broken *os.File
	func() {
		defer func() { _ = recover() }()
		_, _ = st.addPack(func(f *os.File) ([]indexed, plumbing.Hash, error) { broken = f; panic("index out of range") })
	}()
	if err := broken.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file of a pack that causes a panic is open: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(st.packDir(), "*"))
	if err != nil || len(files) != 2 || len(st.packs) != 1 {
		t.Errorf("files are %q (%v), %d packs", files, err, len(st.packs))
	}
}

// Joined packs have all objects, also those that several packs have.
func TestJoinPacks(t *testing.T) {
	s, st := newSource(t), create(t)
	contents := map[plumbing.Hash]string{}
	shared := s.blob("shared")
	for i := range 6 {
		text := noise(uint64(i), 200)
		h, near := s.blob(text), s.blob(text+"near")
		contents[h], contents[near] = text, text+"near"
		addPack(t, st, s.pack(10, i%2 == 0, h, near, shared))
	}
	check := func(packs int, st *Store) {
		t.Helper()
		if len(st.packs) > packs {
			t.Errorf("%d packs, at most %d", len(st.packs), packs)
		}
		if files, err := filepath.Glob(filepath.Join(st.packDir(), "*")); err != nil || len(files) != 2*len(st.packs) {
			t.Errorf("files are %q (%v)", files, err)
		}
		for h, want := range contents {
			if got, err := st.Object(plumbing.BlobObject, h, mib); err != nil || string(got) != want {
				t.Errorf("%s: %d bytes, %v", h, len(got), err)
			}
		}
	}
	if err := st.JoinPacks(t.Context(), 6); err != nil || len(st.packs) != 6 {
		t.Errorf("joined although there are not too many: %d, %v", len(st.packs), err)
	}
	if err := st.JoinPacks(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	check(5, st)
	again, err := Load(st.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check(5, again)
}

// The packs of a joined store stay if one of them is damaged, and the error names it.
func TestDamageIsNotCopied(t *testing.T) {
	for name, at := range map[string]int{"header": 9, "entry": 70, "checksum": -1} {
		t.Run(name, func(t *testing.T) {
			s, st := newSource(t), create(t)
			for i := range 3 {
				addPack(t, st, s.pack(0, false, s.blob(noise(uint64(i), 100))))
			}
			damaged := st.packs[1].name
			path := st.packPath(damaged) + ".pack"
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			raw[(at+len(raw))%len(raw)] ^= 1
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			want := "join packs: " + damaged + ": pack does not have its checksum"
			if err := st.JoinPacks(t.Context(), 1); err == nil || err.Error() != want {
				t.Errorf("%v, want %q", err, want)
			}
			if files, err := filepath.Glob(filepath.Join(st.packDir(), "*")); err != nil || len(files) != 6 || len(st.packs) != 3 {
				t.Errorf("files are %q (%v), %d packs", files, err, len(st.packs))
			}
		})
	}
}

// Packs are joined until the context is done, and stay as they are then.
func TestJoiningEndsWithItsContext(t *testing.T) {
	s, st := newSource(t), create(t)
	for i := range 3 {
		addPack(t, st, s.pack(0, false, s.blob(noise(uint64(i), 100))))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := st.JoinPacks(ctx, 1); !errors.Is(err, context.Canceled) || len(st.packs) != 3 {
		t.Errorf("%d packs, %v", len(st.packs), err)
	}
}

// An empty pack that is joined with another one leaves that one.
func TestJoinAnEmptyPack(t *testing.T) {
	s, st := newSource(t), create(t)
	one := s.blob("one")
	addPack(t, st, s.pack(0, false))
	addPack(t, st, s.pack(0, false, one))
	if err := st.JoinPacks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	again, err := Load(st.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, st := range []*Store{st, again} {
		if got, err := st.Object(plumbing.BlobObject, one, 3); err != nil || string(got) != "one" || len(st.packs) != 1 {
			t.Errorf("%q, %v, %d packs", got, err, len(st.packs))
		}
	}
}

func TestSmallPacks(t *testing.T) {
	tests := map[string]struct {
		sizes []int64
		want  int
	}{
		"two of any size":     {[]int64{1, 1000}, 2},
		"alike":               {[]int64{5, 6, 4, 5}, 4},
		"one large":           {[]int64{1000, 1, 1, 1}, 3},
		"two large":           {[]int64{1000, 1, 1000, 1}, 4},
		"one of each size":    {[]int64{1, 10, 100, 1000}, 2},
		"many large":          {append(slices.Repeat([]int64{1000}, 49), 1, 1), 51},
		"just small enough":   {[]int64{1, 1, 4}, 3},
		"just too large":      {[]int64{1, 1, 5}, 2},
		"each twice the last": {[]int64{1, 2, 4, 8, 16}, 5},
	}
	for name, test := range tests {
		var st Store
		for _, n := range test.sizes {
			st.packs = append(st.packs, &pack{size: n})
		}
		if got := len(st.smallPacks()); got != test.want {
			t.Errorf("%s: %d are joined, want %d", name, got, test.want)
		}
	}
}
