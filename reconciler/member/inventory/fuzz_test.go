package inventory

import (
	"io"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// Whatever a cluster has stored as an inventory, decoding it ends, and keeps no more than the limits allow.
func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{
		`{"placement":{"name":"web"},"revision":{"commit":"c0ffee"},"items":[{"v":"v1","k":"ConfigMap","ns":"web","n":"a","h":"1"}]}`,
		`{"items":[{"n":"a"},{"n":"a"}],"items":null,"other":[[[]]]}`, `{"items":{}}`, `[]`, `[{"placement":{"name":"web"},"serial":3,"items":[{"n":"a"}]},{}]`, ` {`, "",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, compressed bool) {
		raw := []byte(text)
		if compressed {
			var err error
			if raw, err = gzipped.Encode(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				t.Fatal(err)
			}
		}
		u := newUnpacking(t.Context())
		list, err := u.unpackList(raw)
		if err != nil {
			u = newUnpacking(t.Context())
			inv, err := u.unpack(raw)
			if err != nil {
				return
			}
			list = []*Inventory{inv}
		}
		items, kept := 0, 0
		for _, inv := range list {
			h := inv.header.Value()
			kept += h.text()
			for it := range inv.Items.All() {
				items, kept = items+1, kept+it.text()
			}
		}
		if u.bytes < 0 || items > connection.MaxKeptItems || kept > connection.MaxKeptText {
			t.Errorf("kept %d items with %d bytes, although %d bytes are left", items, kept, u.bytes)
		}
	})
}
