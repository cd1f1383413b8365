package member

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A session is one connection to the cluster and all that is known through it.
// It belongs to the agent's goroutine; only changes and silent are shared.
type session struct {
	*Agent
	// link is the connection in use. It is replaced when the credentials are.
	link  atomic.Pointer[conn]
	kinds *kinds
	// services caches how kinds are served that discovery did not list, for removals.
	services map[schema.GroupVersionKind]service

	inv   map[api.PlacementKey]*inventory
	parts byID[part]
	// claim is which fleet has our fleet name on the cluster; nil if none is known to.
	claim *claim
	// owners are the fleets that inventories name, damaged those of inventories that
	// cannot be read. stoodBack says that one was another, and nothing was written.
	owners, damaged []ledger.Owner
	observingOnly   bool
	live            lives
	watch           watches
	// trouble is what keeps an object from being as it should.
	trouble map[api.ID]*trouble
	// verified is how objects stood when they were last seen to.
	verified map[api.ID]standing

	works       map[api.PlacementKey]work.Work
	wanted      wants
	expressions wantedExpressions
	// newOwners are who awaits which objects; nil until that is asked for.
	newOwners newOwners
	// blocked says that the last pass could not be made.
	blocked bool
	// unknown is why kinds are not known.
	unknown logLimiter
	// introduced says that the inventories of the cluster were reported.
	introduced bool
	// leaving says that everything here is being given up.
	leaving bool
	// compared is when what is only reported was last compared.
	compared time.Time
	// braked are objects whose deletion is held, and why.
	braked map[api.ID]braked
	// pruned are the placements that gave something up, or should have, since they
	// were last reported.
	pruned map[api.PlacementKey]bool
	// done are the placements whose objects were all tried once at the present
	// revision.
	done map[api.PlacementKey]bool

	// fresh are the namespaces that this pass has made.
	fresh map[string]bool
	// housed says that our own namespace was made, or needed not to be.
	housed bool

	// established are the groups of which a definition was established and nobody has
	// acted on that.
	established map[string]bool
	// unseen are objects whose change was taken in but not acted upon yet.
	unseen map[api.ID]bool
	// suspects are objects that others have written, and whose values were not
	// compared since.
	suspects map[api.ID]bool
	// compareNext is when values that could not be compared are compared again.
	compareNext     time.Time
	compareFailures backoff

	changes  *changes
	sweeping sweep
	// firsts wakes whoever waits for the first lists of watches; its capacity is
	// one.
	firsts  chan struct{}
	running sync.WaitGroup
	// silent counts requests in a row that got no answer at all.
	silent  atomic.Int32
	probes  chan *probe // the newest that was not taken in; its capacity is one
	found   *probe      // the last of them, until it is taken in
	probing probeSchedule
	demand  demand
	retry   *time.Timer
	health  probe
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
		Agent:   a,
		inv:     map[api.PlacementKey]*inventory{},
		live:    lives{},
		trouble: map[api.ID]*trouble{}, verified: map[api.ID]standing{}, works: map[api.PlacementKey]work.Work{},
		done:   map[api.PlacementKey]bool{},
		fresh:  map[string]bool{},
		unseen: map[api.ID]bool{}, suspects: map[api.ID]bool{}, braked: map[api.ID]braked{}, pruned: map[api.PlacementKey]bool{},
		expressions: wantedExpressions{compiled: &a.cfg.Encoder.expressions},
		changes:     newChanges(), firsts: make(chan struct{}, 1), probes: make(chan *probe, 1), retry: time.NewTimer(0),
	}
	s.link.Store(c)
	s.kinds = newKinds(func() (*discovery.DiscoveryClient, error) { return s.conn().discovery() })
	s.sweeping.timer = time.NewTimer(time.Hour)
	s.sweeping.timer.Stop()
	s.retry.Stop()
	s.probing.observed = time.Now()
	s.health = s.probe(ctx, true)
	err = s.health.err
	if err == nil {
		s.probing.uid = s.health.uid
		err = s.inventories(ctx)
	}
	if err != nil {
		err = s.refusal(ctx, err)
		c.close()
		return nil, err
	}
	s.access.next = time.Time{}
	s.reviewMissing(ctx)
	a.cfg.Report(s.clusterReport())
	s.introduced = true
	return s, nil
}

// conn returns the connection in use.
func (s *session) conn() *conn { return s.link.Load() }

// want takes in what the cluster should hold from now on.
func (s *session) want(works []work.Work) {
	was, before := s.works, s.wanted
	if len(was) == 0 {
		s.recheckHeldDrifts()
	}
	s.works = make(map[api.PlacementKey]work.Work, len(works))
	for _, w := range works {
		old, ok := was[w.Placement]
		if !ok || old.Revision != w.Revision || (old.Strategy.Type == api.ReportDiff) != (w.Strategy.Type == api.ReportDiff) {
			delete(s.done, w.Placement)
		}
		if ok {
			s.reconsider(old, w)
		}
		s.works[w.Placement] = w
	}
	s.wanted, s.newOwners = wantsOf(works, s.better), nil
	s.hidden = nil
	s.expressions.replace(s.wanted)
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
	if !s.mayWrite() {
		return
	}
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
		s.processPrepared(ctx, ids)
		if s.foreign() {
			return
		}
		s.checkWritten(ctx)
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
	s.kinds.lookAgain(nil)
	clear(s.verified)
	if s.last != nil && !s.leaving {
		s.sync(ctx)
		s.sweepNow(ctx)
	}
}

// react takes what the watches saw, and mends what is not as it should be.
func (s *session) react(ctx context.Context) error {
	touched := s.absorb()
	if s.lostToOtherFleet(ctx, touched) {
		s.observingOnly = true
		return s.observeOnly(ctx, byCheck)
	}
	s.restoreInventories(ctx, touched)
	s.revive(touched)
	s.recheckHeld(touched)
	s.process(ctx, touched)
	s.checkWritten(ctx)
	s.reportTouched(ctx, touched)
	s.askWhy(ctx)
	return nil
}

// absorb takes in what the watches saw, unless we know something newer from a
// write of our own. It returns the objects that changed since it was last asked.
func (s *session) absorb() map[api.ID]bool {
	news := s.changes.drain()
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
		if id.GroupKind() == definitions && l.health.State == health.Available && (old == nil || old.health.State != health.Available || old.generation != l.generation) {
			s.definitionEstablished(id)
		}
		if s.writtenByOthers(id, old, l) {
			s.suspects[id] = true
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

// revive tries again at once what waited for a namespace that has changed, or for
// a kind whose definition was established.
func (s *session) revive(touched map[api.ID]bool) {
	for id := range touched {
		if s.live.of(id) != nil && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			for _, other := range s.hurry(id.Name) {
				touched[other] = true
			}
		}
	}
	if s.established == nil {
		return
	}
	s.kinds.lookAgain(s.established)
	for id, t := range s.trouble {
		if t.unknownKind && s.established[id.Group] {
			t.next = time.Time{}
			touched[id] = true
		}
	}
	s.established = nil
}

// again tries what failed and whose time has come.
func (s *session) again(ctx context.Context) {
	s.reviewMissing(ctx)
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
	for id, b := range s.braked {
		if !b.next.IsZero() && !b.next.After(now) {
			due[id] = true
		}
	}
	for p, inv := range s.inv {
		if s.unwritten(inv) {
			s.saveInventories(ctx, map[api.PlacementKey]bool{p: true})
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
	if !s.compareNext.After(now) {
		s.checkWritten(ctx)
	}
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
	for _, b := range s.braked {
		if !b.next.IsZero() {
			first = earlier(first, b.next)
		}
	}
	for _, inv := range s.inv {
		if s.unwritten(inv) {
			first = earlier(first, time.Now().Add(inventoryRetry))
		}
	}
	if len(s.suspects) > 0 {
		first = earlier(first, time.Now().Add(max(valuesRetry, time.Until(s.compareNext))))
	}
	for p := range s.works {
		if s.reports(p) {
			first = earlier(first, s.compared.Add(reportInterval))
		}
	}
	if len(s.access.missing) > 0 {
		first = earlier(first, s.access.next)
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
	if p.another != nil {
		return reconnect(p.another)
	}
	if len(p.replaced) > 0 {
		s.moveOn(p.replaced)
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
		s.kinds.lookAgain(nil)
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
