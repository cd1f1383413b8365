package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A cluster is a simulated member cluster. It outlives its agents, has objects, and records
// what was done to them.
type cluster struct {
	name string

	mu      sync.Mutex
	objects map[api.ID]object
	// owns are the revisions of the placements on the cluster, also of those without objects.
	owns map[api.PlacementKey]placement.Revision
	did  []string
	// down says that the cluster does not respond, slow how long each work takes, late how long
	// an agent takes to connect, and failing has the placements whose objects cannot be applied.
	down    bool
	slow    time.Duration
	late    time.Duration
	failing map[string]bool
	// changed wakes the agent.
	changed chan struct{}
}

type object struct {
	owner api.PlacementKey
	hash  string
}

func newCluster(name string) *cluster {
	return &cluster{
		name: name, objects: map[api.ID]object{}, owns: map[api.PlacementKey]placement.Revision{},
		failing: map[string]bool{}, changed: make(chan struct{}, 1),
	}
}

// set changes the state of the cluster, and wakes its agent.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// history returns the actions since the last call.
func (c *cluster) history() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	did := c.did
	c.did = nil
	return did
}

func (c *cluster) note(format string, args ...any) {
	c.did = append(c.did, fmt.Sprintf(format, args...))
}

// An agent applies works to a cluster.
type agent struct {
	*cluster
	report func(protocol.Observation)
	works  chan []*work.Work
	leave  chan struct{}
	left   chan struct{}
	// onSet is called in every call of Set.
	onSet func([]*work.Work)
}

func newAgent(c *cluster, report func(protocol.Observation)) *agent {
	return &agent{cluster: c, report: report, works: make(chan []*work.Work, 1), leave: make(chan struct{}), left: make(chan struct{}), onSet: func([]*work.Work) {}}
}

// SetMembership does nothing, since there is no other fleet, and no cluster has two names.
func (a *agent) SetMembership(protocol.Membership) {}

func (a *agent) SetRecord(protocol.MemberRecord) {}

func (a *agent) SetDriftDecisions(protocol.DriftDecisions) {}

func (a *agent) Set(works []*work.Work) {
	a.onSet(works)
	select {
	case <-a.works:
	default:
	}
	a.works <- works
}

func (a *agent) Check() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *agent) Leave() <-chan struct{} {
	close(a.leave)
	return a.left
}

func (a *agent) Run(ctx context.Context) {
	var works []*work.Work
	asked, todo, answers := false, false, false
	probe := time.NewTicker(10 * time.Second)
	defer probe.Stop()
	leave := a.leave
	if !a.wait(ctx, func() time.Duration { return a.late }) {
		return
	}
	for {
		answers = a.probe(answers)
		if asked && todo && answers {
			if !a.wait(ctx, func() time.Duration { return a.slow }) {
				return
			}
			a.apply(works)
			todo = false
		}
		select {
		case <-ctx.Done():
			return
		case works = <-a.works:
			asked, todo = true, true
		case <-a.changed:
			todo = true
		case <-probe.C:
		case <-leave:
			a.abandon()
			close(a.left)
			leave, asked = nil, false
		}
	}
}

// probe reports the health of the cluster, and its inventories after an outage.
func (a *agent) probe(before bool) (answers bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := protocol.ClusterSeen{Cluster: a.name, At: time.Now(), Healthy: !a.down, Error: "no answer"}
	if o.Healthy {
		o.Error, o.UID, o.Properties = "", "uid-"+a.name, map[string]string{}
	}
	if o.Healthy && !before {
		o.Inventories = []protocol.InventorySeen{}
		for _, key := range slices.SortedFunc(maps.Keys(a.owns), byKey) {
			o.Inventories = append(o.Inventories, protocol.InventorySeen{Placement: key, Revision: a.owns[key]})
		}
	}
	a.report(o)
	return o.Healthy
}

func byKey(a, b api.PlacementKey) int { return strings.Compare(a.String(), b.String()) }

// wait sleeps as long as an action takes.
func (a *agent) wait(ctx context.Context, how func() time.Duration) bool {
	a.mu.Lock()
	d := how()
	a.mu.Unlock()
	if d == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// apply applies the works. It creates new objects before it deletes old ones, so that an object
// that changes its placement always exists.
func (a *agent) apply(works []*work.Work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := map[api.ID]api.PlacementKey{}
	sent, deleted := map[api.PlacementKey]*work.Work{}, map[api.PlacementKey][]api.ID{}
	for _, w := range works {
		sent[w.Placement] = w
		if w.Unreleased() {
			continue
		}
		if !w.Remove && !a.failing[w.Placement.Name] {
			for _, m := range w.Manifests {
				if w.SuspendedReason(m.ID) != "" {
					wanted[m.ID] = w.Placement
					continue
				}
				a.applyOne(w.Placement, m, wanted)
			}
			if w.Suspended == "" {
				a.owns[w.Placement] = w.Revision
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(a.objects), api.ID.Compare) {
		o := a.objects[id]
		w, isSent := sent[o.owner]
		if _, isWanted := wanted[id]; isWanted || !isSent || w.Keep || w.SuspendedReason(id) != "" || a.failing[o.owner.Name] && !w.Remove {
			continue
		}
		if w.Remove && w.Abandon {
			a.note("gives up %s of %s", title(id), o.owner)
		} else {
			a.note("deletes %s of %s", title(id), o.owner)
			deleted[o.owner] = append(deleted[o.owner], id)
		}
		delete(a.objects, id)
	}
	for _, w := range works {
		if !w.Unreleased() {
			a.reportWork(w, deleted[w.Placement])
		}
	}
}

func (a *agent) applyOne(p api.PlacementKey, m *work.Manifest, wanted map[api.ID]api.PlacementKey) {
	if other, twice := wanted[m.ID]; twice {
		a.note("IS SENT TWICE to hold %s, by %s and %s", title(m.ID), other, p)
	}
	wanted[m.ID] = p
	old, exists := a.objects[m.ID]
	switch {
	case !exists:
		a.note("creates %s for %s", title(m.ID), p)
	case old.owner != p:
		a.note("passes %s from %s to %s", title(m.ID), old.owner, p)
	case old.hash != m.Hash:
		a.note("updates %s of %s", title(m.ID), p)
	}
	a.objects[m.ID] = object{p, m.Hash}
}

func (a *agent) reportWork(w *work.Work, deleted []api.ID) {
	removed := w.Remove && w.Suspended == ""
	if removed {
		delete(a.owns, w.Placement)
	}
	o := protocol.WorkSeen{Cluster: a.name, Placement: w.Placement, At: time.Now(), WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Removed: removed}}
	if n := len(deleted); n > 0 {
		o.Incidents = &protocol.Incidents{Deletions: []protocol.Deletion{{At: o.At, Commit: w.Cause.Commit, Why: w.Cause.Why, Objects: deleted[:min(n, protocol.MostDeletedObjects)], Total: n}}}
	}
	if a.failing[w.Placement.Name] && !w.Remove {
		for _, m := range w.Manifests {
			o.Exceptions = append(o.Exceptions, protocol.ObjectState{
				ID: m.ID, Version: "v1", Envelope: m.Envelope,
				Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Sentence: api.SaysNotApplied, Cause: "no"},
			})
		}
		slices.SortFunc(o.Exceptions, func(a, b protocol.ObjectState) int { return a.ID.Compare(b.ID) })
	}
	a.report(o)
}

// abandon gives up all objects.
func (a *agent) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(a.objects), api.ID.Compare) {
		a.note("gives up %s of %s", title(id), a.objects[id].owner)
	}
	clear(a.objects)
	clear(a.owns)
}

func title(id api.ID) string {
	return id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}
