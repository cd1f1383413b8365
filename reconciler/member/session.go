package member

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A session is one connection to the cluster and all that is known through it.
// It belongs to the agent's goroutine; only changes and silent are shared.
type session struct {
	*Agent
	conn  *conn
	kinds *kinds

	inv   map[api.PlacementKey]*inventory
	parts byID[part]
	live  lives
	watch watches
	// trouble is what keeps an object from being as it should.
	trouble map[api.ID]*trouble
	// verified is how objects stood when they were last seen to.
	verified map[api.ID]standing

	works  map[api.PlacementKey]work.Work
	wanted wants
	// heirs are who awaits which objects; nil until that is asked for.
	heirs heirs
	// blocked says that the last pass could not be made.
	blocked bool
	// unknown is why kinds are not known.
	unknown grumble
	// leaving says that everything here is being given up.
	leaving bool
	// compared is when what is only reported was last compared.
	compared time.Time
	// braked are objects whose deletion is held, and why.
	braked map[api.ID]string
	// done are the placements whose objects were all tried once at the present
	// revision.
	done map[api.PlacementKey]bool

	// fresh are the namespaces that this pass has made.
	fresh map[string]bool
	// housed says that our own namespace was made, or needed not to be.
	housed bool

	// unseen are objects whose change was taken in but not acted upon yet.
	unseen map[api.ID]bool

	changes  *changes
	sweeping sweep
	// firsts wakes whoever waits for the first lists of watches; its capacity is
	// one.
	firsts  chan struct{}
	running sync.WaitGroup
	// silent counts requests in a row that got no answer at all.
	silent atomic.Int32
	probes chan *probe // the newest that was not taken in; its capacity is one
	found  *probe      // the last of them, until it is taken in
	pulse  pulse
	demand demand
	retry  *time.Timer
	health probe
	// stuck are workloads that are not available; nil while all are.
	stuck *stuck
	// hidden are the Secrets that no text may quote; nil until a turn needs them.
	hidden *diff.Secrets
}

// wanted is one object that should be here.
type wanted struct {
	placement api.PlacementKey
	manifest  *work.Manifest
}

// open connects, and reads from the cluster what is ours. Nothing is written.
func (a *Agent) open(ctx context.Context) (*session, error) {
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		Agent: a, conn: c,
		inv:     map[api.PlacementKey]*inventory{},
		live:    lives{},
		trouble: map[api.ID]*trouble{}, verified: map[api.ID]standing{}, works: map[api.PlacementKey]work.Work{},
		done:   map[api.PlacementKey]bool{},
		fresh:  map[string]bool{},
		unseen: map[api.ID]bool{}, braked: map[api.ID]string{},
		kinds:   newKinds(c.discovery),
		changes: newChanges(), firsts: make(chan struct{}, 1), probes: make(chan *probe, 1), retry: time.NewTimer(0),
	}
	s.sweeping.timer = time.NewTimer(time.Hour)
	s.sweeping.timer.Stop()
	s.retry.Stop()
	s.pulse.observed = time.Now()
	s.health = s.probe(ctx, true)
	if s.health.err != nil {
		c.close()
		return nil, s.health.err
	}
	s.pulse.uid = s.health.uid
	if err := s.inventories(ctx); err != nil {
		c.close()
		return nil, err
	}
	seen := s.health.seen(a.cfg.Name)
	for p, inv := range s.inv {
		seen.Holds = append(seen.Holds, ledger.Held{Placement: p, Revision: inv.Revision, Abandon: inv.Abandon})
	}
	a.cfg.Report(seen)
	return s, nil
}

// want takes in what the cluster should hold from now on.
func (s *session) want(works []work.Work) {
	was, before := s.works, s.wanted
	s.works = make(map[api.PlacementKey]work.Work, len(works))
	for _, w := range works {
		old, ok := was[w.Placement]
		if !ok || old.Revision != w.Revision {
			delete(s.done, w.Placement)
		}
		if ok {
			s.reconsider(old, w)
		}
		s.works[w.Placement] = w
	}
	s.wanted, s.heirs = wantsOf(works, s.better), nil
	s.hidden = nil
	for id := range s.trouble {
		w, isWanted := s.wanted.of(id)
		if old, _ := before.of(id); !isWanted || w.placement != old.placement {
			delete(s.trouble, id) // it was about another placement's
		}
	}
	s.memory.forget(s.works)
}

// better reports which of two placements gets an object that both want: the one
// that has it. Plans keep this from happening, and only a plan can mend it.
func (s *session) better(old, new wanted) bool {
	return s.owns(new.placement, new.manifest.ID) && !s.owns(old.placement, old.manifest.ID)
}

// placed reports whether a placement has anything to hold here.
func (s *session) placed(p api.PlacementKey) bool {
	w, ok := s.works[p]
	return ok && !w.Remove
}

func (s *session) owns(p api.PlacementKey, id api.ID) bool {
	inv := s.inv[p]
	return inv != nil && inv.items.has(id)
}

// sync makes the cluster hold what is wanted: all of it.
func (s *session) sync(ctx context.Context) {
	ids := make(map[api.ID]bool, len(s.wanted))
	for id := range s.wanted.all() {
		ids[id] = true
	}
	for _, inv := range s.inv {
		for id := range inv.items.ids() {
			ids[id] = true
		}
	}
	s.compared, s.blocked = time.Now(), false
	if s.prepared(ctx, ids) {
		s.brake(ids, s.deletes) // by what the watches tell, so not before
		s.attend(ctx, ids)
	}
	s.unwatch()
	for p := range s.works {
		s.done[p] = s.done[p] || ctx.Err() == nil && !s.cutOff() && !s.blocked
	}
	s.reportAll(ctx)
}

// recheck looks at everything again, as a person asked for.
func (s *session) recheck(ctx context.Context) {
	for _, t := range s.trouble {
		t.next = time.Time{}
	}
	clear(s.verified)
	if s.last != nil && !s.leaving {
		s.sync(ctx)
	}
}

// react takes what the watches saw, and mends what is not as it should be.
func (s *session) react(ctx context.Context) {
	touched := s.absorb()
	s.keepInventories(ctx, touched)
	s.revive(touched)
	s.process(ctx, touched)
	s.reportTouched(ctx, touched)
	s.askWhy(ctx)
}

// absorb takes in what the watches saw, unless we know something newer from a
// write of our own. It returns the objects that changed since it was last asked.
func (s *session) absorb() map[api.ID]bool {
	news := s.changes.take()
	touched := s.unseen
	s.unseen = map[api.ID]bool{}
	for kind, all := range news.lists {
		for _, id := range s.live.missing(kind, all) {
			touched[id] = true
		}
	}
	for id, l := range news.seen {
		old := s.live.of(id)
		if old != nil && (l.version < old.version || l.version == old.version && *l == *old) {
			continue // we know that, or better
		}
		s.live.put(id, l)
		touched[id] = true
	}
	for id, version := range news.gone {
		if old := s.live.of(id); old != nil && (version == 0 || version >= old.version) {
			s.live.drop(id)
			touched[id] = true
		}
	}
	if news.replies != nil {
		for _, id := range s.replied(news.replies) {
			touched[id] = true
		}
	}
	return touched
}

// keepInventories puts back an inventory that somebody changed or deleted.
func (s *session) keepInventories(ctx context.Context, touched map[api.ID]bool) {
	for id := range touched {
		p := s.parts.of(id)
		if p == nil {
			continue
		}
		if l := s.live.of(id); l != nil && (l.managed == p.managed || l.terminating) {
			continue
		}
		inv := s.inv[p.placement]
		if inv == nil {
			continue
		}
		if s.resting(p.placement) {
			inv.written = "" // it is put back when that is over
			continue
		}
		s.cfg.Log.Warn("inventory was changed by somebody else; putting it back", "cluster", s.cfg.Name, "object", id.String())
		inv.written = ""
		if err := s.save(ctx, inv); err != nil {
			s.cfg.Log.Warn("inventory not written", "cluster", s.cfg.Name, "placement", p.placement.String(), "err", err)
		}
	}
}

// revive tries again at once what waited for a namespace or a kind that has
// just come to be.
func (s *session) revive(touched map[api.ID]bool) {
	for id := range touched {
		if s.live.of(id) == nil {
			continue
		}
		switch id.GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			for _, other := range s.hurry(id.Name) {
				touched[other] = true
			}
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			for other, t := range s.trouble {
				if t.unknownKind {
					t.next = time.Time{}
					touched[other] = true
				}
			}
		}
	}
}

// again tries what failed and whose time has come.
func (s *session) again(ctx context.Context) {
	if s.blocked {
		s.sync(ctx)
		return
	}
	due := map[api.ID]bool{}
	now := time.Now()
	for id, t := range s.trouble {
		if !t.next.After(now) {
			due[id] = true
		}
	}
	for p, inv := range s.inv {
		if s.unwritten(inv) {
			s.settle(ctx, map[api.PlacementKey]bool{p: true})
		}
	}
	if s.reportsDue(now) {
		for id, w := range s.wanted.all() {
			if s.reports(w.placement) {
				due[id] = true
			}
		}
	}
	s.process(ctx, due)
	s.reschedule()
	s.reportTouched(ctx, due)
}

// inventoryRetry is the time between two tries to write an inventory.
const inventoryRetry = 2 * time.Second

// schedule makes sure that again is called within d.
func (s *session) schedule(d time.Duration) { s.retry.Reset(max(d, time.Millisecond)) }

// reschedule sets the timer to the earliest retry. For one that leaves it is set
// already, whatever else there is to do.
func (s *session) reschedule() {
	if s.leaving {
		return
	}
	var first time.Time
	for _, t := range s.trouble {
		first = earlier(first, t.next)
	}
	for _, inv := range s.inv {
		if s.unwritten(inv) {
			first = earlier(first, time.Now().Add(inventoryRetry))
		}
	}
	for p := range s.works {
		if s.reports(p) {
			first = earlier(first, s.compared.Add(reportInterval))
		}
	}
	if first.IsZero() {
		s.retry.Stop()
		return
	}
	s.schedule(time.Until(first))
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// reportInterval is the time between two comparisons of what is only reported:
// objects that are not ours are not watched.
const reportInterval = 5 * time.Minute

// reports says that a placement compares and never writes.
func (s *session) reports(p api.PlacementKey) bool {
	return s.works[p].Strategy.Type == api.ReportDiff
}

// reportsDue reports whether it is time to compare again.
func (s *session) reportsDue(now time.Time) bool {
	due := !now.Before(s.compared.Add(reportInterval))
	if due {
		s.compared = now
	}
	return due
}

// cutOff reports whether the server has stopped answering: what is left of a
// pass is then not worth waiting for.
func (s *session) cutOff() bool { return s.silent.Load() >= 3 }

// probed takes in the result of a probe. A cluster that answers again is
// brought up to date at once.
func (s *session) probed(ctx context.Context, p probe) error {
	before := s.health
	s.health = p
	if p.uid != "" && before.uid != "" && p.uid != before.uid {
		return reconnect(fmt.Errorf("the cluster behind this name is another one now (kube-system UID %s, was %s)", p.uid, before.uid))
	}
	if p.uid == "" {
		s.health.uid = before.uid
	}
	if p.namespaces == nil {
		s.health.namespaces = before.namespaces
	}
	if p.unauthorized {
		return reconnect(p.err)
	}
	if p.err != nil {
		return nil
	}
	if before.err != nil || p.returned || s.cutOff() {
		s.silent.Store(0)
		for _, t := range s.trouble {
			t.next = time.Time{}
		}
		s.sync(ctx)
	}
	return nil
}

// unwatch ends the watches of kinds of which nothing is here any more.
func (s *session) unwatch() {
	used := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "ConfigMap"}: true}
	for _, w := range s.wanted.all() {
		used[w.manifest.Object.Object.GroupVersionKind()] = true
	}
	for _, inv := range s.inv {
		for it := range inv.items.all() {
			used[it.gvk()] = true
		}
	}
	for _, k := range slices.Clone(s.watch) {
		if !used[k.gvk] {
			s.endWatch(k)
		}
	}
}
