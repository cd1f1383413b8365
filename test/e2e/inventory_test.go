package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// An inventory that is too large for one object, even compressed, is split: the parts are read
// again after a restart without a write, each is restored when it is deleted, and those that
// are not needed any more are deleted.
func TestInventoryIsSplitOverConfigMaps(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := fleet.Namespace(t), api.PlacementKey{Name: "web"}, context.Background()
	ms := many(ns, 400, "a")
	noise := rand.NewChaCha8([32]byte{7})
	for _, m := range ms { // content that cannot be compressed
		raw := make([]byte, 3<<10)
		noise.Read(raw)
		m.Hash = fmt.Sprintf("%x", raw)
	}
	a.Set([]*work.Work{workOf("web", "1", ms...)})
	a.applied(key, "1")
	held := func() (size int, names []string) {
		for _, cm := range a.inventory() {
			for _, part := range cm.BinaryData {
				size += len(part)
			}
			names = append(names, cm.Name)
		}
		slices.Sort(names)
		return size, names
	}
	var names []string
	a.eventually("written in parts", func() (bool, error) {
		var size int
		size, names = held()
		return len(names) > 1 && size > 1<<20, fmt.Errorf("%d bytes in %v", size, names)
	})

	a.stop()
	a.start()
	a.Set([]*work.Work{workOf("web", "1", ms...)})
	a.applied(key, "1")
	if written := a.writes(); len(written) > 0 {
		t.Errorf("after a restart: %d writes", len(written))
	}
	for _, name := range names {
		if err := a.client.CoreV1().ConfigMaps(api.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.eventually(name+" is restored", func() (bool, error) {
			_, now := held()
			return slices.Equal(now, names), fmt.Errorf("%v", now)
		})
	}
	if objects, _ := split(a.writes()); len(objects) > 0 {
		t.Errorf("objects were written: %v", objects)
	}
	w := workOf("web", "2", ms[:200]...)
	w.AllowDelete = true
	a.Set([]*work.Work{w})
	a.eventually("in fewer parts", func() (bool, error) {
		size, now := held()
		return len(now) == 1 && size < 1<<20, fmt.Errorf("%d bytes in %v", size, now)
	})
}
