package simulated

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A Cluster is one cluster. It is an http.Handler.
type Cluster struct {
	fleet *Fleet
	name  string

	mu       sync.Mutex
	version  uint64 // the newest resource version; every write increments it
	objects  map[schema.GroupResource]map[key]*object
	defined  map[string][]*kind // by the name of the definition
	history  []event
	forgot   uint64        // the newest version that was removed from history
	changed  chan struct{} // closed at the next write; nil if no watch waits
	restored int           // how many times an earlier snapshot was put back
	requests fleet.Counts
	down     http.Handler
	place    *place // where it listens; nil if it does not
}

type key struct{ namespace, name string }

// An event is one write. after is nil if the object was deleted, before if it was created.
type event struct {
	version       uint64
	before, after *object
}

func (e event) kind() *kind {
	if e.after != nil {
		return e.after.kind
	}
	return e.before.kind
}

func newCluster(f *Fleet, name string) *Cluster {
	c := &Cluster{
		fleet: f, name: name, requests: fleet.Counts{},
		objects: map[schema.GroupResource]map[key]*object{}, defined: map[string][]*kind{},
	}
	for _, namespace := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		if _, err := c.create(namespaceKind, "", empty(namespaceKind, "", namespace), "kube-apiserver", false); err != nil {
			panic("simulated: " + err.Error()) // nothing is there yet
		}
	}
	return c
}

// Name returns the name given to Fleet.Cluster.
func (c *Cluster) Name() string { return c.name }

// Requests returns the counts of requests, as in the metrics of a real cluster. A watch counts
// when it begins.
func (c *Cluster) Requests() fleet.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}

// Forget removes the history of changes, as a real API server does after some time: a watch from an
// earlier version gets 410 Gone.
func (c *Cluster) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history, c.forgot = nil, c.version
	c.wakeWatches()
}

// A Snapshot is the content of a cluster at one time.
type Snapshot struct {
	version uint64
	objects map[schema.GroupResource]map[key]*object
	defined map[string][]*kind
}

// Snapshot returns the present content of the cluster.
func (c *Cluster) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Snapshot{c.version, cloneObjects(c.objects), maps.Clone(c.defined)}
}

// Restore puts an earlier snapshot back, as a restore of etcd from a backup does: resource versions go
// back too, and watches end. A watch from a later version gets no events until that version is reached.
func (c *Cluster) Restore(s Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.objects, c.defined = s.version, cloneObjects(s.objects), maps.Clone(s.defined)
	c.history, c.forgot = nil, s.version
	c.restored++
	c.wakeWatches()
}

func cloneObjects(all map[schema.GroupResource]map[key]*object) map[schema.GroupResource]map[key]*object {
	out := maps.Clone(all)
	for r, objects := range out {
		out[r] = maps.Clone(objects)
	}
	return out
}

// Instead lets a handler serve all requests until it is called with nil, to simulate a cluster
// that is down, slow or refuses requests.
func (c *Cluster) Instead(h http.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = h
}

// Len returns the number of objects of a kind, by its plural, such as configmaps or
// deployments.apps.
func (c *Cluster) Len(resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.objects[schema.ParseGroupResource(resource)])
}

// find returns an object; nil if it does not exist. An object of a kind with several versions
// has the version of the request. The lock must be held.
func (c *Cluster) find(k *kind, namespace, name string) *object {
	o := c.objects[k.resource()][key{namespace, name}]
	if o == nil || o.kind == k {
		return o
	}
	other := *o
	other.kind = k
	return &other
}

// list returns the objects of a kind, by namespace and name. The lock must be
// held.
func (c *Cluster) list(k *kind, namespace string) []*object {
	var out []*object
	for at, o := range c.objects[k.resource()] {
		if namespace == "" || at.namespace == namespace {
			if o.kind != k {
				o = c.find(k, at.namespace, at.name)
			}
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return out
}

// put writes an object, or deletes it if after is nil. The lock must be held.
func (c *Cluster) put(before, after *object) {
	c.version++
	o := after
	if o == nil {
		o = before
	}
	all := c.objects[o.kind.resource()]
	if all == nil {
		all = map[key]*object{}
		c.objects[o.kind.resource()] = all
	}
	if after == nil {
		delete(all, key{o.namespace, o.name})
	} else {
		after.version = c.version
		all[key{o.namespace, o.name}] = after
	}
	c.history = append(c.history, event{c.version, before, after})
	if limit := c.fleet.options.History; len(c.history) > 2*limit {
		c.forgot = c.history[limit-1].version
		c.history = slices.Clone(c.history[limit:])
	}
	c.define(o.kind, o.name, after)
	c.wakeWatches()
	if wrote := c.fleet.options.Wrote; wrote != nil && after != nil {
		wrote(c.name, after.namespace, after.name)
	}
}

// wakeWatches wakes all watches. The lock must be held.
func (c *Cluster) wakeWatches() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// define serves the kinds of a CustomResourceDefinition.
func (c *Cluster) define(k *kind, name string, after *object) {
	if k != definition {
		return
	}
	delete(c.defined, name)
	if after != nil {
		c.defined[name] = defines(after.coded())
	}
}

func newUID() types.UID { return types.UID(uuid.NewString()) }
