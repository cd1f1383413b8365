package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// repairs measures how long an object that somebody changed or deleted on a member stays wrong:
// from the response to the foreign write to the response to gitfleet's. Each object is changed
// once, so that none becomes contested.
func repairs(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	const times = 40
	f, err := b.clusters(ctx, false)
	if err != nil {
		return nil, err
	}
	m, namespace := f.Members()[0], fresh("repair")
	list := slices.DeleteFunc(mix(namespace, 2*times), func(o object) bool { return o.kind != "ConfigMap" })
	h, release, err := settled(ctx, []fleet.Member{m}, namespace, 2*times)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	floor, err := newFloor(ctx, m)
	if err != nil {
		return nil, err
	}
	took := map[string][]float64{}
	var patch, writes []float64
	for i := range times {
		o := list[i]
		what, method, contentType, body := "edit", http.MethodPatch, "application/merge-patch+json", `{"data":{"version":"tampered"}}`
		if i%2 == 1 {
			what, method, contentType, body = "delete", http.MethodDelete, "", ""
		}
		time.Sleep(30 * time.Millisecond)
		h.sent.reset()
		if err := floor.client.send(ctx, method, o.path, contentType, []byte(body)); err != nil {
			return nil, err
		}
		at := time.Now()
		repaired, err := h.repaired(ctx, o)
		if err != nil {
			return nil, err
		}
		took[what] = append(took[what], max(0, milliseconds(repaired.Sub(at))))
		time.Sleep(30 * time.Millisecond)
		writes = append(writes, float64(h.sent.tally().objectWrites))
		t, err := floor.patch(ctx)
		if err != nil {
			return nil, err
		}
		patch = append(patch, milliseconds(t))
	}
	return map[string]float64{
		"edit ms": median(took["edit"]), "delete ms": median(took["delete"]),
		"bare patch ms": median(patch), "object writes": slices.Max(writes),
	}, nil
}

// repaired waits until an object was applied, and returns when.
func (h *instance) repaired(ctx context.Context, o object) (time.Time, error) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		if at, ok := h.sent.answered(http.MethodPatch, o.path); ok {
			return at, nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return time.Time{}, fmt.Errorf("%s %s was not put back", o.kind, o.name)
		}
		time.Sleep(time.Millisecond)
	}
}
