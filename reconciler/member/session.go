package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// A session is one connection to the cluster and everything that is known through it. It
// belongs to the agent's goroutine; only changes and silent are shared.
type session struct {
	*Agent
	conn   *connection.Conn
	kinds  *discovery.Kinds
	finder *discovery.Finder

	inv   map[api.PlacementKey]*inventory.Inventory
	store *inventory.Store
	// observingOnly says that another fleet held the cluster, and nothing was written.
	observingOnly bool
	live          observed.Objects
	watch         *watch.Set
	// trouble is why an object is not as wanted.
	trouble map[api.ID]*trouble
	// verified are the ownership states of objects when they were last verified.
	verified map[api.ID]observed.Standing

	works       desired
	wanted      wants
	expressions *availability.Expressions
	// newOwners are the placements that wait for objects; nil until they are needed.
	newOwners newOwners
	// blocked says that the last pass could not be made.
	blocked bool
	// unknown limits the log lines about unknown kinds.
	unknown retry.LogLimiter
	// introduced says that the inventories of the cluster were reported.
	introduced bool
	// leaving says that everything on this cluster is being released.
	leaving bool
	// compared is when placements that only report differences were last compared.
	compared time.Time
	// braked are the objects whose deletion is held, with the reason.
	braked map[api.ID]braked
	// pruned are the placements that have removed something, or failed to, since their last
	// report.
	pruned map[api.PlacementKey]bool
	// done are the placements of whose current revision all objects were tried.
	done map[api.PlacementKey]bool

	// fresh are the namespaces that this pass has created.
	fresh map[string]bool

	// established are the groups with a newly established definition that was not processed
	// yet.
	established map[string]bool
	// unseen are objects with a recorded change that was not processed yet.
	unseen map[api.ID]bool
	// suspects are objects that others have written, and whose values were not compared since.
	suspects map[api.ID]bool
	// compareNext is the time of the next comparison of values that could not be compared.
	compareNext     time.Time
	compareFailures retry.Backoff

	sweeping sweep
	found    *probe.Result // the last of them, until it is processed
	prober   *probe.Prober
	retry    *time.Timer
	health   probe.Result
	// pods says why workloads are not available.
	pods *pods.Tracker
	// untried maps each kind for which no dry runs are requested to the reason. It is empty
	// except in a Preview.
	untried map[schema.GroupVersionKind]string
	// hidden are the Secrets whose values no text may contain; nil until a turn needs them.
	hidden *diff.Secrets
}

// A wanted is a desired object with its placement.
type wanted struct {
	placement api.PlacementKey
	manifest  *work.Manifest
}

// open connects to the cluster and reads the inventories. It writes nothing.
func (a *Agent) open(ctx context.Context) (*session, error) {
	c, err := a.connection.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		Agent: a, conn: c,
		live:    observed.Objects{},
		trouble: map[api.ID]*trouble{}, verified: map[api.ID]observed.Standing{}, works: map[api.PlacementKey]work.Work{},
		done:   map[api.PlacementKey]bool{},
		fresh:  map[string]bool{},
		unseen: map[api.ID]bool{}, suspects: map[api.ID]bool{}, braked: map[api.ID]braked{}, pruned: map[api.PlacementKey]bool{},
		expressions: availability.New(&a.cfg.Encoder.expressions),
		retry:       time.NewTimer(0),
	}
	s.store = inventory.NewStore(c, a.membership, inventory.Config{
		Cluster: a.cfg.Name, Fleet: a.cfg.Fleet, HasCommit: a.cfg.HasCommit, Live: &s.live, Log: a.cfg.Log,
	})
	s.kinds = discovery.New(c.Discovery)
	s.prober = probe.New(c, probe.Config{
		Cluster: a.cfg.Name, Interval: a.cfg.Probe, Observe: a.cfg.Observe, Seconds: a.cfg.Metrics.ProbeSeconds, Log: a.cfg.Log, Publish: s.publishProbe,
	})
	s.watch = watch.New(c, watch.Config{Cluster: a.cfg.Name, Restarts: a.cfg.Metrics.WatchRestarts, Log: a.cfg.Log, Expressions: s.expressions})
	s.finder = discovery.NewFinder(c, s.kinds)
	s.pods = pods.New(c, pods.Config{Cluster: a.cfg.Name, FailureTimeout: a.cfg.PodFailureTimeout, Wake: s.watch.Changes.Nudge, Log: a.cfg.Log})
	s.sweeping.timer = time.NewTimer(time.Hour)
	s.sweeping.timer.Stop()
	s.retry.Stop()
	reading, stopReading := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() {
		if s.health = s.prober.Probe(ctx, true); s.health.Err != nil {
			stopReading()
		}
	})
	err = s.loadInventories(reading)
	probing.Wait()
	stopReading()
	s.store.SetNamespaces(s.health.Namespaces)
	if err = cmp.Or(s.health.Err, err); err != nil {
		err = s.refusal(ctx, err)
		c.Close()
		return nil, err
	}
	s.access.Expire()
	s.reviewMissing(ctx)
	a.cfg.Report(s.clusterReport())
	s.introduced = true
	return s, nil
}

// want replaces the desired state of the cluster.
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
	s.expressions.Replace(s.wanted.manifests())
	for id := range s.trouble {
		w, isWanted := s.wanted.of(id)
		if old, _ := before.of(id); !isWanted || w.placement != old.placement {
			delete(s.trouble, id) // that was the trouble of another placement
		}
	}
	s.memory.Forget(s.works)
}

// better reports whether new, and not old, gets an object that both placements want: the one
// that has it keeps it. Plans prevent this, and only a plan can correct it.
func (s *session) better(old, new wanted) bool {
	return s.owns(new.placement, new.manifest.ID) && !s.owns(old.placement, old.manifest.ID)
}

// sync reconciles everything.
func (s *session) sync(ctx context.Context) {
	if !s.mayWrite() {
		return
	}
	ids := s.inventoried()
	for id := range s.wanted.all() {
		ids[id] = true
	}
	s.compared, s.blocked = time.Now(), false
	if s.prepared(ctx, ids) {
		s.brake(ids, s.deletes) // the brake needs the state from the watches
		s.processPrepared(ctx, ids)
		if s.store.Foreign() {
			return
		}
		s.checkWritten(ctx)
	}
	s.unwatch()
	for p := range s.works {
		s.done[p] = s.done[p] || ctx.Err() == nil && !s.conn.CutOff() && !s.blocked
	}
	s.reportAll(ctx)
}

// recheck checks everything again because a user requested it.
func (s *session) recheck(ctx context.Context) {
	for _, t := range s.trouble {
		t.next = time.Time{}
	}
	s.kinds.LookAgain(nil)
	clear(s.verified)
	if s.last != nil && !s.leaving {
		s.sync(ctx)
		s.sweepNow(ctx)
	}
}

// react processes the changes that the watches reported.
func (s *session) react(ctx context.Context) error {
	touched := s.absorb()
	if s.store.LostToOther(ctx, touched) {
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

// absorb records the changes that the watches reported, unless a later write of our own is
// known. It returns the objects that have changed since the last call.
func (s *session) absorb() map[api.ID]bool {
	news := s.watch.Changes.Drain()
	touched := s.unseen
	s.unseen = map[api.ID]bool{}
	for kind, all := range news.Lists {
		for _, id := range s.live.DropMissing(kind, all) {
			touched[id] = true
		}
	}
	for id, l := range news.Seen {
		old := s.live.Of(id)
		if old != nil && (l.Version < old.Version || l.Version == old.Version && *l == *old) {
			continue // already known or superseded
		}
		if id.GroupKind() == discovery.Definitions && l.Health.State == health.Available && (old == nil || old.Health.State != health.Available || old.Generation != l.Generation) {
			s.definitionEstablished(id)
		}
		if s.writtenByOthers(id, old, l) {
			s.suspects[id] = true
		}
		s.live.Put(id, l)
		touched[id] = true
	}
	for id, version := range news.Gone {
		if old := s.live.Of(id); old != nil && (version == 0 || version >= old.Version) {
			s.live.Drop(id)
			touched[id] = true
		}
	}
	for _, id := range s.pods.Answers() {
		touched[id] = true
	}
	return touched
}

// revive makes retries due at once of objects that waited for a namespace that has changed, or
// for a kind whose definition was established.
func (s *session) revive(touched map[api.ID]bool) {
	for id := range touched {
		if s.live.Of(id) != nil && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			for _, other := range s.hurry(id.Name) {
				touched[other] = true
			}
		}
	}
	if s.established == nil {
		return
	}
	s.kinds.LookAgain(s.established)
	for id, t := range s.trouble {
		if t.unknownKind && s.established[id.Group] {
			t.next = time.Time{}
			touched[id] = true
		}
	}
	s.established = nil
}

// again retries the failures that are due.
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
			if s.works.reports(w.placement) {
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

// inventoryRetry is the time between two attempts to write an inventory.
const inventoryRetry = 2 * time.Second

// schedule makes sure that again is called within d.
func (s *session) schedule(d time.Duration) { s.retry.Reset(max(d, time.Millisecond)) }

// reschedule sets the timer to the earliest retry. While the cluster is being left, the timer
// is already set.
func (s *session) reschedule() {
	if s.leaving {
		return
	}
	var first time.Time
	for _, t := range s.trouble {
		first = retry.Earlier(first, t.next)
	}
	for _, b := range s.braked {
		if !b.next.IsZero() {
			first = retry.Earlier(first, b.next)
		}
	}
	for _, inv := range s.inv {
		if s.unwritten(inv) {
			first = retry.Earlier(first, time.Now().Add(inventoryRetry))
		}
	}
	if len(s.suspects) > 0 {
		first = retry.Earlier(first, time.Now().Add(max(valuesRetry, time.Until(s.compareNext))))
	}
	for p := range s.works {
		if s.works.reports(p) {
			first = retry.Earlier(first, s.compared.Add(reportInterval))
		}
	}
	if len(s.access.Missing()) > 0 {
		first = retry.Earlier(first, s.access.NextRetry())
	}
	if first.IsZero() {
		s.retry.Stop()
		return
	}
	s.schedule(time.Until(first))
}

// reportInterval is the time between two comparisons of placements that only report
// differences. They have to be repeated, since objects that are not ours are not watched.
const reportInterval = 5 * time.Minute

// reportsDue reports whether it is time to compare again.
func (s *session) reportsDue(now time.Time) bool {
	due := !now.Before(s.compared.Add(reportInterval))
	if due {
		s.compared = now
	}
	return due
}

// probed processes the result of a probe. A cluster that answers again is reconciled at once.
func (s *session) probed(ctx context.Context, p probe.Result) error {
	before := s.health
	s.health = p
	if p.UID != "" && before.UID != "" && p.UID != before.UID {
		return reconnect(fmt.Errorf("the cluster behind this name is another one now (kube-system UID %s, was %s)", p.UID, before.UID))
	}
	if p.UID == "" {
		s.health.UID = before.UID
	}
	if p.Namespaces == nil {
		s.health.Namespaces = before.Namespaces
	}
	s.store.SetNamespaces(s.health.Namespaces)
	if p.Another != nil {
		return reconnect(p.Another)
	}
	if len(p.Replaced) > 0 {
		s.moveOn(p.Replaced)
	}
	if p.Unauthorized {
		return reconnect(p.Err)
	}
	if p.Err != nil {
		return nil
	}
	if before.Err != nil || p.Returned || s.conn.CutOff() {
		s.conn.Restored()
		for _, t := range s.trouble {
			t.next = time.Time{}
		}
		s.kinds.LookAgain(nil)
		s.sync(ctx)
	}
	return nil
}

// unwatch ends the watches of kinds that have no objects here any more.
func (s *session) unwatch() {
	used := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "ConfigMap"}: true}
	for _, w := range s.wanted.all() {
		used[w.manifest.Object.Object.GroupVersionKind()] = true
	}
	for _, inv := range s.inv {
		for it := range inv.Items.All() {
			used[it.GroupVersionKind()] = true
		}
	}
	for _, k := range slices.Clone(s.watch.All()) {
		if !used[k.GVK] {
			s.watch.End(k)
		}
	}
}
