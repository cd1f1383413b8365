package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A start uses the newest store that has an accepted commit. A damaged one is replaced, and what
// was accepted in it is not forgotten.
func TestStorePathOpen(t *testing.T) {
	accepted := plumbing.NewHash(strings.Repeat("a", 40))
	generation := func(t *testing.T, p StorePath, n int, accept, damage bool) {
		t.Helper()
		st, err := Create(p.generation(n))
		if err != nil {
			t.Fatal(err)
		}
		if accept {
			err = st.SetAcceptedRefs(map[string]plumbing.Hash{"main": accepted})
		}
		if damage {
			for _, suffix := range []string{".pack", ".idx"} {
				err = errors.Join(err, os.WriteFile(st.packPath("pack-1")+suffix, []byte("damage"), 0o600))
			}
		}
		if err = errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		prepare func(t *testing.T, p StorePath)
		opened  int
		dropped bool
		has     bool
	}{
		"first start":        {func(*testing.T, StorePath) {}, 1, false, false},
		"no commit yet":      {func(t *testing.T, p StorePath) { generation(t, p, 3, false, false) }, 3, false, false},
		"newest":             {func(t *testing.T, p StorePath) { generation(t, p, 1, true, false); generation(t, p, 10, true, false) }, 10, false, true},
		"interrupted clone":  {func(t *testing.T, p StorePath) { generation(t, p, 1, true, false); generation(t, p, 2, false, false) }, 1, false, true},
		"damaged":            {func(t *testing.T, p StorePath) { generation(t, p, 4, true, true) }, 1, true, true},
		"damaged, and older": {func(t *testing.T, p StorePath) { generation(t, p, 1, true, false); generation(t, p, 2, true, true) }, 1, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := StorePathOf(t.TempDir(), "https://example.com/hub")
			if err != nil {
				t.Fatal(err)
			}
			test.prepare(t, p)
			st, dropped, err := p.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if st.Dir != p.generation(test.opened) || (dropped != nil) != test.dropped {
				t.Errorf("opened %s, dropped %v", st.Dir, dropped)
			}
			if h, ok := st.AcceptedRef("main"); ok != test.has || ok && h != accepted {
				t.Errorf("accepted is %s, %t", h, ok)
			}
			if left, err := filepath.Glob(p.Prefix + "*"); err != nil || len(left) != 1 {
				t.Errorf("stores are %q, %v", left, err)
			}
			next, err := p.Next()
			if err != nil || next.Dir != p.generation(test.opened+1) {
				t.Fatalf("the next is %v, %v", next, err)
			}
			if err := next.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}
