package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A crowd is a fleet on which every placement is on every member, with two objects: a Namespace and a ConfigMap.
type crowd struct {
	members, placements int
	// changes is how many commits are measured at the end that change one object on every member; the median counts.
	changes int
}

const crowdObjects = 2

func (c crowd) entries() int { return c.members * c.placements }

// crowdTime is how long a scene waits for the daemon. If it is not done by then, the figures are those of that time.
const crowdTime = 4 * time.Minute

// restTime is how long the daemon is at rest before its memory is read. By then it has returned what only the rollout needed.
const restTime = 15 * time.Second

// scale returns a scene that measures the built binary while it applies everything from nothing, on simulated members
// with their own TLS connections, compared with a bare client in a process of its own.
func scale(c crowd) func(context.Context, *runner) (map[string]float64, error) {
	return func(ctx context.Context, b *runner) (map[string]float64, error) {
		out := map[string]float64{}
		if err := c.onMembers(simulated.Options{}, func(dir string, _ *simulated.Fleet) error { return c.bare(ctx, dir, out) }); err != nil {
			return nil, fmt.Errorf("bare client: %w", err)
		}
		var last lastWrite
		return out, c.onMembers(simulated.Options{Wrote: last.wrote}, func(dir string, f *simulated.Fleet) error {
			return c.onDaemon(ctx, b, dir, func(d *daemon) error {
				if err := c.fill(ctx, b, d, f, out); err != nil {
					return err
				}
				return c.change(ctx, d, &last, out)
			})
		})
	}
}

// onMembers runs something on new members, with their kubeconfigs in a directory.
func (c crowd) onMembers(o simulated.Options, do func(dir string, f *simulated.Fleet) error) (err error) {
	dir, remove, err := scratch()
	if err != nil {
		return err
	}
	defer remove()
	f := simulated.New(o)
	for _, name := range c.names() {
		f.Cluster(name)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.WriteKubeconfigs(dir); err != nil {
		return err
	}
	return do(dir, f)
}

func (c crowd) names() []string {
	var names []string
	for i := range c.members {
		names = append(names, fmt.Sprintf("member-%04d", i))
	}
	return names
}

func (c crowd) placement(i int) string { return fmt.Sprintf("team-%04d", i) }

func (c crowd) files() map[string]string {
	out := map[string]string{}
	for i := range c.placements {
		name := c.placement(i)
		for path, text := range files(name, c.names(), mix(name, crowdObjects)) {
			if !strings.HasPrefix(path, "clusters/") {
				path = name + "/" + path
			}
			out[path] = text
		}
	}
	return out
}

// bareCrowd is the argument with which this program is a bare client; the directory of the kubeconfigs, the number of placements and
// that of changes follow.
const bareCrowd = "bare-crowd"

// bareTimes is what a bare client prints when it is done, in seconds and milliseconds.
type bareTimes struct {
	Seconds, CPU float64
	Changes      []float64
}

// bare runs this program as a bare client, since its CPU time counts.
func (c crowd) bare(ctx context.Context, dir string, out map[string]float64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, self, bareCrowd, dir, strconv.Itoa(c.placements), strconv.Itoa(c.changes))
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return err
	}
	var took bareTimes
	if err := json.Unmarshal(text, &took); err != nil {
		return err
	}
	out["bare s"], out["bare CPU s"] = took.Seconds, took.CPU
	if c.changes > 0 {
		out["bare change ms"] = median(took.Changes)
	}
	return nil
}

// beBare applies the objects of all placements on all members, as many at a time on each as gitfleet does, and then some changes of one
// ConfigMap.
func beBare(ctx context.Context, dir, placements, changes string) (took bareTimes, err error) {
	began := time.Now()
	n, err := strconv.Atoi(placements)
	if err != nil {
		return took, err
	}
	more, err := strconv.Atoi(changes)
	if err != nil {
		return took, err
	}
	var namespaces, rest []object
	for i := range n {
		name := crowd{}.placement(i)
		list := marked(mix(name, crowdObjects), name)
		namespaces, rest = append(namespaces, list[0]), append(rest, list[1:]...)
	}
	all, err := connectAll(ctx, dir, namespaces[0])
	if err != nil {
		return took, err
	}
	err = each(all, func(client *bare) error {
		return errors.Join(client.applyMany(ctx, namespaces[1:]), client.applyMany(ctx, rest))
	})
	took.Seconds = time.Since(began).Seconds()
	var used syscall.Rusage
	if err := errors.Join(err, syscall.Getrusage(syscall.RUSAGE_SELF, &used)); err != nil {
		return took, err
	}
	took.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	for i := range more {
		name := crowd{}.placement(0)
		changed := marked([]object{crowdChange(i)}, name)[0]
		began := time.Now()
		if err := each(all, func(client *bare) error { return client.apply(ctx, changed) }); err != nil {
			return took, err
		}
		took.Changes = append(took.Changes, milliseconds(time.Since(began)))
	}
	return took, nil
}

// connectAll opens a connection to each member by applying an object, a few at a time: with thousands of handshakes at once some would
// time out.
func connectAll(ctx context.Context, dir string, first object) ([]*bare, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.kubeconfig"))
	if err != nil {
		return nil, err
	}
	connecting := make(chan struct{}, 2*bareConcurrency)
	clients := make(chan *bare, len(paths))
	err = each(paths, func(path string) error {
		connecting <- struct{}{}
		defer func() { <-connecting }()
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return err
		}
		client, err := newBare(config)
		if err != nil {
			return err
		}
		clients <- client
		return client.apply(ctx, first)
	})
	close(clients)
	var all []*bare
	for client := range clients {
		all = append(all, client)
	}
	return all, err
}

// onDaemon runs something with the built binary, which is not started yet.
func (c crowd) onDaemon(ctx context.Context, b *runner, kubeconfigs string, do func(d *daemon) error) (err error) {
	d, err := b.newDaemon(ctx, kubeconfigs, "scale", c.files())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return do(d)
}

// fill starts the daemon, and measures it while it applies everything.
func (c crowd) fill(ctx context.Context, b *runner, d *daemon, members *simulated.Fleet, out map[string]float64) error {
	began := time.Now()
	if err := d.start(); err != nil {
		return err
	}
	if err := c.follow(ctx, b, d, members, began, out); err != nil {
		return err
	}
	out["s"] = time.Since(began).Seconds()
	used, err := d.gauge(ctx, "process_cpu_seconds_total")
	if err != nil {
		return err
	}
	out["CPU s"] = used
	if err := wait(ctx, restTime); err != nil {
		return err
	}
	values, err := d.gauges(ctx, "process_resident_memory_bytes", "go_gc_heap_live_bytes")
	if err != nil {
		return err
	}
	out["resident MiB"], out["live MiB"] = values[0]/(1<<20), values[1]/(1<<20)
	out["live KiB per entry"] = values[1] / 1024 / float64(c.entries())
	return nil
}

// follow waits until everything is available, and at most crowdTime. Meanwhile it measures the memory, and how long
// questions take.
func (c crowd) follow(ctx context.Context, b *runner, d *daemon, members *simulated.Fleet, began time.Time, out map[string]float64) error {
	questions := map[string]func() error{
		"status":  func() error { return d.status(ctx) },
		"kubectl": func() error { return d.listTable(ctx) },
	}
	return c.poll(ctx, d, 2*time.Second, crowdTime, out, func(seen sample) error {
		out["metrics ms"] = max(out["metrics ms"], milliseconds(seen.took))
		applied := members.Requests().Of(fleet.Key{Verb: "APPLY"})
		out["applies per object"] = float64(applied) / float64(c.entries()*crowdObjects)
		b.note("scale: %.0fs: %d applied, %.0f available, %.0f MiB, metrics after %.0f ms", time.Since(began).Seconds(), applied, seen.available, seen.residentMiB, milliseconds(seen.took))
		if out["missing"] == 0 || applied == 0 { // before the first apply there may be no report yet
			return nil
		}
		for _, what := range []string{"status", "kubectl"} {
			asked := time.Now()
			if err := questions[what](); err != nil {
				return d.failure(fmt.Sprintf("%s: %v", what, err))
			}
			out[what+" ms"] = max(out[what+" ms"], milliseconds(time.Since(asked)))
		}
		return nil
	})
}

// A sample is what the metrics of the daemon said, and how long it took to get them.
type sample struct {
	available, residentMiB float64
	took                   time.Duration
}

// poll requests the metrics of a daemon that has been started until everything is available, or for a time, and calls each with what
// they say. Until the first response the daemon may be starting; after that an error ends the scene.
func (c crowd) poll(ctx context.Context, d *daemon, every, atMost time.Duration, out map[string]float64, each func(sample) error) error {
	out["missing"] = float64(c.entries())
	began, started := time.Now(), false
	for out["missing"] > 0 && time.Since(began) < atMost {
		if err := wait(ctx, every); err != nil {
			return err
		}
		select {
		case <-d.running.Ended():
			return d.failure(fmt.Sprintf("gitfleet ended: %v", d.running.Err()))
		default:
		}
		m, took, err := d.metrics(ctx)
		if err != nil && !started {
			continue
		}
		if err != nil {
			return d.failure(err.Error())
		}
		seen := sample{took: took, available: m.sum("gitfleet_placement_clusters", "state", "available")}
		resident, err := m.values("process_resident_memory_bytes")
		if err != nil {
			return err
		}
		started, seen.residentMiB = true, resident[0]/(1<<20)
		out["missing"] = float64(c.entries()) - seen.available
		out["most resident MiB"] = max(out["most resident MiB"], seen.residentMiB)
		if err := each(seen); err != nil {
			return err
		}
	}
	return nil
}

// status runs gitfleet status. It fails while something is not available.
func (d *daemon) status(ctx context.Context) error {
	err := exec.CommandContext(ctx, d.argv[0], "status", "--server", "http://"+d.address).Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return ctx.Err()
	}
	return err
}
