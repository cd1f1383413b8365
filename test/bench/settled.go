package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// settled returns an instance whose members have all objects. release closes it and clears the
// members.
func settled(ctx context.Context, members []fleet.Member, namespace string, n int) (*instance, func() error, error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, nil, err
	}
	h, err := newInstance(dir, members, files(namespace, names(members), mix(namespace, n)))
	if err != nil {
		remove()
		return nil, nil, err
	}
	release := func() error {
		defer remove()
		return errors.Join(h.close(), clearAll(ctx, members, namespace))
	}
	head, err := h.repo.Head("main")
	if err == nil {
		h.run(namespace)
		_, err = h.applied(ctx, head)
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return h, release, nil
}

// A floor is the fastest possible change on a member: a bare client applies one ConfigMap again
// and again, each time with another value.
type floor struct {
	client    *bare
	namespace string
	round     int
}

func newFloor(ctx context.Context, m fleet.Member) (*floor, error) {
	client, err := newBare(m.Config)
	if err != nil {
		return nil, err
	}
	f := &floor{client: client, namespace: fresh("floor")}
	return f, client.applyAll(ctx, mix(f.namespace, 2))
}

func (f *floor) patch(ctx context.Context) (time.Duration, error) {
	f.round++
	return f.client.patchTime(ctx, configMap(f.namespace, 1, fmt.Sprintf("round %d", f.round)))
}
