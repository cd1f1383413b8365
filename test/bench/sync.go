package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// syncObjects is the number of objects that each member gets.
const syncObjects = 500

// firstSync measures how long it takes to apply many objects to members that have none:
// gitfleet from the detection of the commit to the report that all is applied, and a bare
// client that sends the same objects. Both start without a connection and without garbage from
// before. They alternate, so that other load on the machine affects both alike, and their medians are
// compared. Minimums would depend on which of the two ran while the machine was idle.
//
// The bare client sends the same requests with the default settings of a client. gitfleet saves
// the servers some work: they do not search its manifests for duplicate keys. That, not fewer
// requests, is why the figure can be below 1. A second baseline is what others apply with:
// ApplyAllStaged of Flux's ResourceManager, with the same objects. It runs after the others
// instead of alternating with them, because the API server has more to clean up after it.
func firstSync(ctx context.Context, b *runner) (map[string]float64, error) {
	f, err := b.clusters(ctx, false)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, bout := range []struct {
		name    string
		members []fleet.Member
		turns   int
		staged  int
	}{{"1 member", f.Members()[:1], 15, 5}, {"4 members", f.Members(), 9, 3}} {
		var bare, staged, took, loaded, first, last []float64
		requests := 0
		for range bout.turns {
			t, err := bareSync(ctx, bout.members)
			if err != nil {
				return nil, fmt.Errorf("bare client: %w", err)
			}
			s, err := instanceSync(ctx, bout.members)
			if err != nil {
				return nil, err
			}
			bare, took = append(bare, milliseconds(t)), append(took, milliseconds(s.took))
			loaded, first, last = append(loaded, milliseconds(s.loaded)), append(first, milliseconds(s.first)), append(last, milliseconds(s.last))
			requests = max(requests, s.requests)
		}
		for range bout.staged {
			t, err := stagedSync(ctx, bout.members)
			if err != nil {
				return nil, fmt.Errorf("staged apply: %w", err)
			}
			staged = append(staged, milliseconds(t))
		}
		out["bare ms, "+bout.name] = median(bare)
		out["staged ms, "+bout.name] = median(staged)
		out["ms, "+bout.name] = median(took)
		out["ms to loaded, "+bout.name] = median(loaded)
		out["ms to first apply, "+bout.name] = median(first)
		out["ms to last apply, "+bout.name] = median(last)
		out["requests per object, "+bout.name] = float64(requests) / float64(syncObjects*len(bout.members))
	}
	return out, nil
}

// synced is a first sync. Its times are measured from the detection of the commit: until it was
// in force, until the responses for the first and the last object, until all was reported as
// applied.
type synced struct {
	loaded, first, last, took time.Duration
	requests                  int
}

// bareSync applies the objects on all members at the same time.
func bareSync(ctx context.Context, members []fleet.Member) (time.Duration, error) {
	namespace := fresh("bare")
	list := marked(mix(namespace, syncObjects), namespace)
	var clients []*bare
	for _, m := range members {
		client, err := newBare(m.Config)
		if err != nil {
			return 0, err
		}
		defer client.client.CloseIdleConnections()
		clients = append(clients, client)
	}
	runtime.GC()
	began := time.Now()
	err := each(clients, func(c *bare) error { return c.applyAll(ctx, list) })
	took := time.Since(began)
	return took, errors.Join(err, each(clients, func(c *bare) error { return c.clear(ctx, namespace) }))
}

// instanceSync has gitfleet apply the objects to all members.
func instanceSync(ctx context.Context, members []fleet.Member) (s synced, err error) {
	namespace := fresh("sync")
	list := mix(namespace, syncObjects)
	dir, release, err := scratch()
	if err != nil {
		return s, err
	}
	defer release()
	h, err := newInstance(dir, members, files(namespace, names(members), list))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, h.close(), clearAll(ctx, members, namespace)) }()
	head, err := h.repo.Head("main")
	if err != nil {
		return s, err
	}
	runtime.GC()
	h.run(namespace)
	if s.took, err = h.applied(ctx, head); err != nil {
		return s, err
	}
	seen := h.seenAt(head)
	first, last := h.sent.span(list)
	s.loaded, s.first, s.last = h.inForce().Sub(seen), first.Sub(seen), last.Sub(seen)
	s.requests = h.sent.tally().objects
	return s, nil
}

// clearAll deletes the objects of a sample from members.
func clearAll(ctx context.Context, members []fleet.Member, namespace string) error {
	return each(members, func(m fleet.Member) error {
		client, err := newBare(m.Config)
		if err != nil {
			return err
		}
		defer client.client.CloseIdleConnections()
		return client.clear(ctx, namespace)
	})
}

// each calls do for all at the same time.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { errs[i] = do(one) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func names(members []fleet.Member) []string {
	var out []string
	for _, m := range members {
		out = append(out, m.Name)
	}
	return out
}
