package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// A model is a fleet whose members apply their works at some later time, and whose daemon may
// restart at any time.
type model struct {
	t    *rapid.T
	tb   testing.TB
	in   Input
	last *Plan
	// commits are all commits so far, and waiting those that were requested.
	commits map[string]*hub.Snapshot
	waiting map[string]bool
	loader  *hub.Loader
	store   ledger.Store
	// owners are the objects on each cluster with their owners, and assigned the objects of its
	// last works with theirs.
	owners, assigned map[string]map[api.ID]api.PlacementKey
	down             map[string]bool
}

var fleetOfThree = []string{"a", "b", "c"}

func newModel(t *rapid.T, tb testing.TB) *model {
	m := &model{
		t: t, tb: tb, commits: map[string]*hub.Snapshot{}, waiting: map[string]bool{}, loader: hub.NewLoader(hub.Options{}), store: ledger.Memory(),
		owners: map[string]map[api.ID]api.PlacementKey{}, assigned: map[string]map[api.ID]api.PlacementKey{}, down: map[string]bool{},
		in: Input{Past: map[string]*hub.Snapshot{}, Lost: map[string]error{}, Ledger: ledger.New(), Memo: NewMemo(), Now: noon},
	}
	for _, c := range fleetOfThree {
		m.owners[c] = map[api.ID]api.PlacementKey{}
		m.probe(c)
	}
	m.commit()
	m.turn()
	return m
}

// commit creates a head with some of three placements, each of which selects some of three
// namespaces.
func (m *model) commit() {
	text := "clusters " + strings.Join(fleetOfThree, " ") + "\n"
	for _, n := range []string{"red", "green", "blue"} {
		text += fmt.Sprintf("namespace %s\nconfigmap %s/one %s\n", n, n, rapid.SampledFrom([]string{"1", "2"}).Draw(m.t, "value"))
	}
	for _, p := range []string{"one", "three", "two"} {
		of := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "green", "blue"}), 0, 3, rapid.ID).Draw(m.t, "of")
		if len(of) == 0 {
			continue
		}
		text += fmt.Sprintf("place %s of %s unavailable %d", p, strings.Join(of, ","), rapid.IntRange(1, 3).Draw(m.t, "unavailable"))
		if on := rapid.SliceOfNDistinct(rapid.SampledFrom(fleetOfThree), 0, 3, rapid.ID).Draw(m.t, "on"); len(on) > 0 {
			text += " on " + strings.Join(on, ",")
		}
		text += "\n"
	}
	name := fmt.Sprintf("v%d", len(m.commits)+1)
	head, err := m.loader.Load(hub.Commit{Hash: name, Time: m.in.Now}, world.Files(m.tb, text))
	if err != nil {
		m.t.Fatal(err)
	}
	m.commits[name], m.in.Past[name], m.in.InForce = head, head, head
}

func (m *model) probe(cluster string) {
	o := protocol.ClusterSeen{Cluster: cluster, At: m.in.Now, Healthy: !m.down[cluster], Properties: map[string]string{}}
	if m.down[cluster] {
		o.Error = "no answer"
	}
	m.in.Ledger.Fold(o)
}

func (m *model) tick() { m.in.Now = m.in.Now.Add(time.Second) }

// turn does what the loop does, and checks the invariants of the plan.
func (m *model) turn() {
	m.tick()
	p := Resolve(m.in)
	p.UpdateLedger(m.in.Ledger)
	m.last = p
	m.t.Logf("turn under %s:\n%s", m.in.InForce.Commit.Hash, describe(p))
	for hash := range m.in.Past {
		if !p.Commits[hash] && hash != m.in.InForce.Commit.Hash {
			delete(m.in.Past, hash)
		}
	}
	for hash := range p.Commits {
		if m.in.Past[hash] == nil {
			m.waiting[hash] = true
		}
	}
	for _, cluster := range fleetOfThree {
		m.check(cluster)
	}
}

// check checks the invariants of a cluster's works: no object has two owners, and an object
// that had an owner still has one if any placement wants it.
func (m *model) check(cluster string) {
	now := map[api.ID]api.PlacementKey{}
	kept, unreleased := map[api.PlacementKey]bool{}, map[api.PlacementKey]bool{}
	for _, w := range m.last.Works[cluster] {
		kept[w.Placement], unreleased[w.Placement] = w.Keep, w.Unreleased()
		for _, o := range w.Manifests {
			if other, taken := now[o.ID]; taken {
				m.t.Fatalf("on %s both %s and %s own %s", cluster, other, w.Placement, o.ID)
			}
			now[o.ID] = w.Placement
		}
	}
	for id, owner := range m.assigned[cluster] {
		switch other := now[id]; {
		case other == api.PlacementKey{} && kept[owner]:
			now[id] = owner
		case other == api.PlacementKey{}:
			if taker := m.wants(cluster, id, owner); taker != nil {
				m.t.Fatalf("on %s no placement owns %s any more, which %s owned and %s wants", cluster, id, owner, taker.Key)
			}
		case other != owner && kept[owner] && !unreleased[owner]: // until then the work only keeps objects that are handed over to it
			if m.latestHas(owner, cluster, id) {
				m.t.Fatalf("on %s %s takes %s from %s, whose content is not known", cluster, other, id, owner)
			}
		}
	}
	m.assigned[cluster] = now
}

// wants returns a placement of the head, other than but, that wants an object on a cluster it
// holds.
func (m *model) wants(cluster string, id api.ID, but api.PlacementKey) *Placement {
	for p := range m.last.Placements.Values() {
		if p.Key != but && m.latestHas(p.Key, cluster, id) {
			return p
		}
	}
	return nil
}

// latestHas reports whether the newest content of a placement has an object on a cluster.
func (m *model) latestHas(key api.PlacementKey, cluster string, id api.ID) bool {
	c := claimsOf(m.last, key, cluster)
	return c != nil && !c.Binding.Unscheduled && !c.Binding.Removing &&
		slices.ContainsFunc(c.Content.Manifests, func(o *work.Manifest) bool { return o.ID == id })
}

// work makes a member apply its works.
func (m *model) work(cluster string) {
	m.tick()
	has := m.owners[cluster]
	works := map[api.PlacementKey]*work.Work{}
	claimed := map[api.ID]bool{}
	for _, w := range m.last.Works[cluster] {
		works[w.Placement] = w
		for _, o := range w.Manifests {
			has[o.ID], claimed[o.ID] = w.Placement, true
		}
	}
	for id, owner := range has {
		w, known := works[owner]
		if !known {
			m.t.Fatalf("%s has no work of %s, which owns %s", cluster, owner, id)
		}
		if !claimed[id] && !w.Keep {
			delete(has, id)
		}
	}
	for _, w := range m.last.Works[cluster] {
		m.in.Ledger.Fold(report(cluster, w, m.in.Now))
	}
}

// During commits, rollouts, outages and restarts, no object has two owners, and no object that
// is still wanted loses its owner. In the end, every object has the right owner.
func TestEveryObjectHasOneOwner(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, t)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			cluster := rapid.SampledFrom(fleetOfThree).Draw(rt, "cluster")
			switch rapid.SampledFrom([]string{"work", "work", "work", "commit", "flip", "restart", "load"}).Draw(rt, "step") {
			case "work":
				if !m.down[cluster] {
					m.work(cluster)
				}
			case "commit":
				m.commit()
			case "flip":
				m.down[cluster] = !m.down[cluster]
				m.tick()
				m.probe(cluster)
			case "restart":
				m.in.Memo, m.waiting = NewMemo(), map[string]bool{}
				m.in.Past = map[string]*hub.Snapshot{m.in.InForce.Commit.Hash: m.in.InForce}
				m.in.Ledger = reloaded(t, m.store, m.in.Ledger)
			case "load":
				for hash := range m.waiting {
					m.in.Past[hash] = m.commits[hash]
				}
				m.waiting = map[string]bool{}
			}
			m.turn()
		}
		m.finish()
	})
}

// finish runs turns until nothing changes, and checks the result.
func (m *model) finish() {
	for _, c := range fleetOfThree {
		m.down[c] = false
		m.tick()
		m.probe(c)
	}
	for range 30 {
		for hash := range m.waiting {
			m.in.Past[hash] = m.commits[hash]
		}
		m.waiting = map[string]bool{}
		m.turn()
		for _, c := range fleetOfThree {
			m.work(c)
		}
	}
	m.turn()
	for p := range m.last.Placements.Values() {
		for _, c := range p.Clusters {
			if c.Waits == "" && (c.Binding.Removing || c.Binding.Unscheduled || !c.UpToDate()) {
				m.t.Fatalf("%s does not finish on %s:\n%s", p.Key, c.Binding.Cluster, describe(m.last))
			}
		}
	}
	for _, cluster := range fleetOfThree {
		m.compare(cluster)
		for p := range m.last.Placements.Values() {
			c := p.On(cluster)
			if c == nil || !c.UpToDate() {
				continue
			}
			for _, o := range c.Content.Manifests {
				if _, there := m.owners[cluster][o.ID]; !there {
					m.t.Fatalf("%s lacks %s:\n%s", cluster, o.ID, describe(m.last))
				}
			}
		}
	}
	// A daemon that has only the ledger makes the same plan.
	fresh := m.in
	fresh.Memo, fresh.Past = NewMemo(), maps.Clone(m.commits)
	if got, want := describe(Resolve(fresh)), describe(m.last); got != want {
		m.t.Fatalf("with an empty memo:\n%s\nwith the memo:\n%s", got, want)
	}
}

// compare checks that a cluster has the objects of its works, and no others except those that a
// placement keeps.
func (m *model) compare(cluster string) {
	should, kept := map[api.ID]api.PlacementKey{}, map[api.PlacementKey]bool{}
	for _, w := range m.last.Works[cluster] {
		kept[w.Placement] = w.Keep
		for _, o := range w.Manifests {
			should[o.ID] = w.Placement
		}
	}
	has := maps.Clone(m.owners[cluster])
	maps.DeleteFunc(has, func(id api.ID, owner api.PlacementKey) bool {
		_, assigned := should[id]
		return kept[owner] && !assigned
	})
	if !maps.Equal(has, should) {
		m.t.Fatalf("%s has %v, and should have %v", cluster, has, should)
	}
}
