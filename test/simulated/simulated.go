// Package simulated runs thousands of simulated clusters in one process, for tests and benchmarks.
// Each serves the part of the Kubernetes API that gitfleet and kubectl -o json need: discovery, get,
// list, watch, create, update, patch, delete, and server-side apply with the field ownership of a
// real API server. Objects are not validated against a schema, only the metadata of every object is
// defaulted, and no controllers run except those that Options enable.
//
//	f := simulated.New(simulated.Options{})
//	c := f.Cluster("east")          // created on first use
//	client, err := dynamic.NewForConfig(c.Config())   // in this process
//	config, err := c.Listen()       // over HTTPS, each cluster at an address of its own
//	err = f.WriteKubeconfigs(dir)   // the same for all of them, as files
//
// A contract test runs the same requests against a real API server and compares the responses.
package simulated

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// Options configure the clusters of a fleet. With the zero value, nothing changes by itself.
type Options struct {
	// Workloads makes Deployments, StatefulSets and DaemonSets available as soon as they are
	// written.
	Workloads bool
	// History is the number of changes that a cluster keeps for watches; a watch from an earlier
	// version gets 410 Gone. 1000 if zero.
	History int
	// Bookmarks is the time between two bookmarks of a watch; a minute if zero.
	Bookmarks time.Duration
	// Version is the version that clusters report; v1.36.0 if empty.
	Version string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Wrote is called for every object that is written, and for none if nil. The cluster is locked meanwhile.
	Wrote func(cluster, namespace, name string)
	// OnePort serves all clusters at one address and with one certificate, each cluster below its own path. Use it for thousands of
	// clusters: listeners for each of them would exceed the limit of open files. Clients still have their own connections.
	OnePort bool
}

// A Fleet is a set of clusters that share memory where they are equal.
type Fleet struct {
	options Options
	merger  *merger

	mu       sync.Mutex
	clusters map[string]*Cluster
	place    *place // where all clusters listen; nil unless they share it
}

// New returns a fleet without clusters.
func New(o Options) *Fleet {
	if o.History == 0 {
		o.History = 1000
	}
	if o.Bookmarks == 0 {
		o.Bookmarks = time.Minute
	}
	if o.Version == "" {
		o.Version = "v1.36.0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Fleet{options: o, merger: newMerger(), clusters: map[string]*Cluster{}}
}

// Cluster returns the cluster of a name. A new one has the namespaces of every cluster.
func (f *Fleet) Cluster(name string) *Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[name]
	if c == nil {
		c = newCluster(f, name)
		f.clusters[name] = c
	}
	return c
}

// Clusters returns all clusters, by name.
func (f *Fleet) Clusters() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Cluster
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		out = append(out, f.clusters[name])
	}
	return out
}

// ServeHTTP serves all existing clusters below /clusters/NAME.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
	f.mu.Lock()
	c := f.clusters[name]
	f.mu.Unlock()
	if c == nil || !strings.HasPrefix(r.URL.Path, "/clusters/") {
		http.NotFound(w, r)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path = "/" + path
	c.ServeHTTP(w, inner)
}

// Requests returns the sum of the requests of all clusters.
func (f *Fleet) Requests() fleet.Counts {
	sum := fleet.Counts{}
	for _, c := range f.Clusters() {
		for key, n := range c.Requests() {
			sum[key] += n
		}
	}
	return sum
}
