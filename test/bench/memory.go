package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A shape is a fleet with a number of members and a number of objects on each.
type shape struct{ members, objects int }

// wide and deep have the same number of objects but different numbers of members, so that the
// memory per member and the memory per object can be computed. Each is compared with a fleet of
// one member that gets the same objects, whose memory is that of Git and the content.
var wide, deep = shape{1000, 100}, shape{100, 1000}

// memory measures the memory that the built binary needs for simulated members: the live heap
// after garbage collection, and the stacks. Each member has its own TLS connection, as real
// ones have.
func memory(ctx context.Context, b *runner) (map[string]float64, error) {
	out := map[string]float64{}
	grown := map[shape]footprint{}
	for name, s := range map[string]shape{"1000 x 100": wide, "100 x 1000": deep} {
		base, err := b.footprint(ctx, shape{1, s.objects})
		if err != nil {
			return nil, fmt.Errorf("base of %s: %w", name, err)
		}
		full, err := b.footprint(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		grown[s] = full.less(base)
		out["base MiB, "+name] = base.kept() / (1 << 20)
		out["MiB, "+name] = full.kept() / (1 << 20)
		out["heap MiB, "+name] = full.heap / (1 << 20)
		out["stacks MiB, "+name] = full.stacks / (1 << 20)
		out["resident MiB, "+name] = full.resident / (1 << 20)
		out["resident base MiB, "+name] = base.resident / (1 << 20)
		out["goroutines per member, "+name] = grown[s].goroutines / float64(s.members-1)
		out["stacks KiB per member, "+name] = grown[s].stacks / float64(s.members-1) / 1024
	}
	member, object := apart(footprint.kept, grown)
	out["KiB per member"], out["bytes per object"] = member/1024, object
	member, object = apart(func(f footprint) float64 { return f.resident }, grown)
	out["resident KiB per member"], out["resident bytes per object"] = member/1024, object
	return out, nil
}

// apart computes the memory per member and per object.
func apart(of func(footprint) float64, grown map[shape]footprint) (member, object float64) {
	members := func(s shape) float64 { return float64(s.members - 1) }
	objects := func(s shape) float64 { return float64((s.members - 1) * s.objects) }
	w, d := of(grown[wide]), of(grown[deep])
	member = (w*objects(deep) - d*objects(wide)) / (members(wide)*objects(deep) - members(deep)*objects(wide))
	return member, (d - member*members(deep)) / objects(deep)
}

// A footprint is the memory of a process, in bytes.
type footprint struct{ heap, stacks, resident, goroutines float64 }

func (f footprint) kept() float64 { return f.heap + f.stacks }

func (f footprint) less(o footprint) footprint {
	return footprint{f.heap - o.heap, f.stacks - o.stacks, f.resident - o.resident, f.goroutines - o.goroutines}
}

// footprint applies objects to simulated members, and measures the daemon once it is idle.
func (b *runner) footprint(ctx context.Context, s shape) (_ footprint, err error) {
	kubeconfigs, remove, err := scratch()
	if err != nil {
		return footprint{}, err
	}
	defer remove()
	clusters := simulated.New(simulated.Options{Workloads: true})
	var names []string
	for i := range s.members {
		names = append(names, clusters.Cluster(fmt.Sprintf("member-%04d", i)).Name())
	}
	defer func() { err = errors.Join(err, clusters.Close()) }()
	if err := clusters.WriteKubeconfigs(kubeconfigs); err != nil {
		return footprint{}, err
	}
	const name = "memory"
	d, err := b.newDaemon(ctx, kubeconfigs, name, files(name, names, mix(name, s.objects)))
	if err != nil {
		return footprint{}, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	began := time.Now()
	if err := d.start(); err != nil {
		return footprint{}, err
	}
	if err := d.spread(ctx, clusters, s); err != nil {
		return footprint{}, err
	}
	b.note("memory: %d x %d applied (%s)", s.members, s.objects, time.Since(began).Round(time.Second))
	return d.footprint(ctx, s.members)
}

// spread waits until all members have all objects and the report says so. It polls rarely,
// because the report of a large fleet is large.
func (d *daemon) spread(ctx context.Context, clusters *simulated.Fleet, s shape) error {
	for deadline := time.Now().Add(10 * time.Minute); ; {
		if clusters.Requests().Of(fleet.Key{Verb: "APPLY"}) >= s.members*s.objects {
			r, err := d.report(ctx)
			if err == nil && everywhere(r, s.members) {
				return nil
			}
		}
		select {
		case <-d.running.Ended():
			return d.failure(fmt.Sprintf("gitfleet ended: %v", d.running.Err()))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		if time.Now().After(deadline) {
			return d.failure(fmt.Sprintf("%d x %d objects are not applied", s.members, s.objects))
		}
	}
}

// everywhere reports whether all members have applied everything.
func everywhere(r *status.Report, members int) bool {
	if len(r.Details) == 0 || len(r.Details[0].Clusters) != members {
		return false
	}
	for _, c := range r.Details[0].Clusters {
		if !c.Applied || !c.Available {
			return false
		}
	}
	return true
}

// footprint measures the daemon after several garbage collections and returns the smallest
// result: a collection that runs during a response counts all garbage of that response as live.
// The longer a response takes, the less often one is requested, so that most collections run
// between responses.
func (d *daemon) footprint(ctx context.Context, members int) (footprint, error) {
	if err := wait(ctx, 30*time.Second); err != nil { // until connections that were only needed at the start are closed
		return footprint{}, err
	}
	var least footprint
	last := -1.0
	for collections := 0; collections < 4; {
		m, err := d.gauges(ctx, "go_gc_duration_seconds", "go_gc_heap_live_bytes", "go_memstats_stack_inuse_bytes", "process_resident_memory_bytes", "go_goroutines")
		if err != nil {
			return footprint{}, err
		}
		if err := wait(ctx, time.Duration(members)*15*time.Millisecond); err != nil {
			return footprint{}, err
		}
		if m[0] == last {
			continue
		}
		last = m[0]
		f := footprint{heap: m[1], stacks: m[2], resident: m[3], goroutines: m[4]}
		if collections++; collections == 2 || collections > 2 && f.kept() < least.kept() {
			least = f // the first measurement may be from before the daemon was idle
		}
	}
	return least, nil
}
