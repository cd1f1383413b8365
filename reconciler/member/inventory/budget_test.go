package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// An inventory is limited in what it becomes: neither its text nor its items may fill the memory.
func TestInflatedInventoriesAreRefused(t *testing.T) {
	kinds := strings.Builder{}
	for n := range connection.MaxKinds {
		fmt.Fprintf(&kinds, `,{"k":"Kind%d"}`, n)
	}
	many := strings.Builder{}
	for n := range connection.MaxPlacements {
		fmt.Fprintf(&many, `,{"placement":{"name":"p%d"}}`, n)
	}
	tests := map[string]string{
		"spaces":   `{"items":[` + strings.Repeat(" ", 80<<20) + "]}",
		"one item": `{"items":[{"n":"` + strings.Repeat("x", 2<<20) + `"}]}`,
		"names":    `{"items":[{}` + strings.Repeat(`,{"n":"`+strings.Repeat("x", 1<<19)+`"}`, 200) + "]}",
		"kinds":    `{"items":[{}` + kinds.String() + "]}",
		"items":    `{"items":[{}` + strings.Repeat(",{}", 1<<18) + "]}",
	}
	tests["a placement"] = `{"placement":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`
	tests["its name"] = `{"placement":{"name":"` + strings.Repeat("x", connection.MaxName+1) + `"}}`
	tests["its commit"] = `{"revision":{"commit":"` + strings.Repeat("c", connection.MaxName+1) + `"}}`
	labelled := `{"revision":{"labels":"` + strings.Repeat("x", 1<<19) + `"}}`
	lists := map[string]string{
		"inventories": "[{}" + strings.Repeat(",{}", connection.MaxKeptItems) + "]",
		"placements":  "[{}" + many.String() + "]",
		"labels":      "[" + labelled + strings.Repeat(","+labelled, connection.MaxKeptText>>19) + "]",
	}
	maps.Copy(tests, lists)
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := gzipped.Encode(func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			unpack := func(u *unpacking) (err error) { _, err = u.unpack(raw); return err }
			if lists[name] != "" {
				unpack = func(u *unpacking) (err error) { _, err = u.unpackList(raw); return err }
			}
			if err := unpack(newUnpacking(t.Context())); !connection.IsExceeded(err) {
				t.Errorf("%d bytes: %v", len(raw), err)
			}
		})
	}
}

// The inventories of a cluster with nearly as many objects as a cluster may have are read.
func TestInventoriesOfManyObjectsAreRead(t *testing.T) {
	inv := New(api.PlacementKey{Name: "web"}, placement.Revision{})
	for n := range connection.MaxKeptItems {
		inv.Items.Put(Item{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: fmt.Sprintf("team-%05d", n/100), Name: fmt.Sprintf("an-application-with-a-name-%06d", n),
			Hash: fmt.Sprintf("%064x", n), Managed: fmt.Sprintf("%016x", n), UID: types.UID(fmt.Sprintf("0b5f9a3e-1c2d-4e5f-8a9b-%012x", n)), Commit: strings.Repeat("c", 40),
		})
	}
	raw, _, err := inv.pack()
	if err != nil {
		t.Fatal(err)
	}
	got, err := newUnpacking(t.Context()).unpack(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got.Items.Len() != connection.MaxKeptItems || got.Placement() != inv.Placement() {
		t.Errorf("read %d of %d objects of %s", got.Items.Len(), connection.MaxKeptItems, got.Placement())
	}
}

// A daemon that stops does not decompress inventories to their end, and takes none of them for damaged.
func TestUnpackingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	raw, _, err := held(10).pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newUnpacking(ctx).unpack(raw); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it to end with its context", err)
	}
}
