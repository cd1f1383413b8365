package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// daemonScene measures the built binary on four members, from the audit logs of their API
// servers: the first sync, a period without changes, a restart.
func daemonScene(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	// Long enough for everything periodic to happen twice: polls every second, probes every
	// ten, turns every thirty, observations every minute.
	const idle = 130 * time.Second
	f, err := b.clusters(ctx, true)
	if err != nil {
		return nil, err
	}
	namespace, members := fresh("daemon"), f.Members()
	d, err := b.newDaemon(ctx, f.KubeconfigDir(), namespace, files(namespace, names(members), mix(namespace, syncObjects)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	out := map[string]float64{}

	began := time.Now()
	if err := errors.Join(d.start(), d.applied(ctx, d.head)); err != nil {
		return nil, err
	}
	out["start to applied s"] = time.Since(began).Seconds()
	t, err := recorded(f, began)
	if err != nil {
		return nil, err
	}
	out["first sync requests per object"] = float64(t.objects) / float64(syncObjects*len(members))
	if out["memory MiB"], err = d.mebibytes(ctx); err != nil {
		return nil, err
	}

	before, err := d.gauge(ctx, "process_cpu_seconds_total")
	if err != nil {
		return nil, err
	}
	polls := d.git.Count("hub.git")
	quiet := time.Now()
	if err := wait(ctx, idle); err != nil {
		return nil, err
	}
	if t, err = recorded(f, quiet); err != nil {
		return nil, err
	}
	out["unchanged requests"], out["unchanged polls"] = float64(t.objects), float64(d.git.Count("hub.git")-polls)
	after, err := d.gauge(ctx, "process_cpu_seconds_total")
	if err != nil {
		return nil, err
	}
	out["unchanged CPU %"] = 100 * (after - before) / idle.Seconds()

	if err := d.stop(); err != nil {
		return nil, err
	}
	again := time.Now()
	if err := errors.Join(d.start(), d.applied(ctx, d.head), wait(ctx, 2*time.Second)); err != nil {
		return nil, err
	}
	if t, err = recorded(f, again); err != nil {
		return nil, err
	}
	out["restart writes"], out["restart reads"] = float64(t.objectWrites+t.inventoryWrites), float64(t.objects-t.objectWrites-t.inventoryWrites)
	return out, nil
}

// wait waits for d. It returns the context's error if ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// recorded counts gitfleet's requests to all members since a time, from the audit logs.
func recorded(f *fleet.Fleet, since time.Time) (tally, error) {
	time.Sleep(300 * time.Millisecond) // events are logged after the response is sent
	var t tally
	for _, m := range f.Members() {
		events, err := f.Audit(m.Name, since)
		if err != nil {
			return t, err
		}
		for _, e := range events {
			if e.UserAgent == "gitfleet" {
				t.add(e)
			}
		}
	}
	return t, nil
}

// add counts an event, unless it is a watch, a probe or discovery.
func (t *tally) add(e fleet.Event) {
	o := e.Object
	switch {
	case e.Verb == "watch", o.Resource == "":
		return
	case e.Verb == "list" && !strings.Contains(e.URI, "labelSelector") && (o.Resource == "nodes" || o.Resource == "pods" || o.Resource == "namespaces"):
		return // a probe's count of nodes, pods and namespaces
	}
	t.objects++
	inventory := o.Namespace == "gitfleet-system" || o.Resource == "namespaces" && o.Name == "gitfleet-system"
	switch {
	case e.Verb == "get", e.Verb == "list":
	case inventory:
		t.inventoryWrites++
	default:
		t.objectWrites++
	}
}

// loadFiles is the number of files in a large repository.
const loadFiles = 10_000

// load measures what the built binary needs for a large repository without any member.
func load(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	content := map[string]string{}
	for i := range loadFiles {
		namespace := "team-" + number(float64(i/50))
		o := configMap(namespace, i, "first")
		content["apps/"+namespace+"/"+o.name+".yaml"] = o.yaml
	}
	d, err := b.newDaemon(ctx, "", "load", content)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	began := time.Now()
	if err := d.start(); err != nil {
		return nil, err
	}
	err = d.await(ctx, "in force", func(r *status.Report) bool { return r.Source.InForce.Hash == d.head })
	if err != nil {
		return nil, err
	}
	out := map[string]float64{"start to loaded s": time.Since(began).Seconds()}
	if err := wait(ctx, 10*time.Second); err != nil { // until the memory needed for loading is released
		return nil, err
	}
	out["memory MiB"], err = d.mebibytes(ctx)
	return out, err
}
