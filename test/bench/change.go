package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// oneChange measures commits that change one object on each of four members, from when they are
// detected to when they are applied, compared with a bare client that changes one field on the four
// members at the same time.
func oneChange(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	const commits = 30
	f, err := b.clusters(ctx, false)
	if err != nil {
		return nil, err
	}
	namespace := fresh("change")
	h, release, err := settled(ctx, f.Members(), namespace, syncObjects)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	var floors []*floor
	for _, m := range f.Members() {
		floor, err := newFloor(ctx, m)
		if err != nil {
			return nil, err
		}
		floors = append(floors, floor)
	}
	var took, written, saving, saves, patch, objects, inventories []float64
	for i := range commits {
		o := configMap(namespace, 1+i%8, fmt.Sprintf("commit %d", i))
		time.Sleep(50 * time.Millisecond) // late reports of the previous commit must not count for this one
		h.sent.reset()
		h.store.reset()
		hash, err := h.change(map[string]string{o.file: o.yaml})
		if err != nil {
			return nil, err
		}
		t, err := h.applied(ctx, hash)
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(t))
		n, slow := h.store.reset()
		saves, saving = append(saves, float64(n)), append(saving, milliseconds(slow))
		written = append(written, milliseconds(h.sent.last(o.path).Sub(h.seenAt(hash))))
		time.Sleep(50 * time.Millisecond) // late writes count, too
		counted := h.sent.tally()
		objects, inventories = append(objects, float64(counted.objectWrites)), append(inventories, float64(counted.inventoryWrites))
		began := time.Now()
		if err := each(floors, func(f *floor) error { _, err := f.patch(ctx); return err }); err != nil {
			return nil, err
		}
		patch = append(patch, milliseconds(time.Since(began)))
	}
	return map[string]float64{
		"ms": median(took), "ms to last object write": median(written),
		"ledger saves": median(saves), "ledger saves ms": median(saving),
		"bare patches ms": median(patch), "budget ms": 3*median(patch) + 50,
		"object writes": slices.Max(objects), "inventory writes": slices.Max(inventories),
	}, nil
}
