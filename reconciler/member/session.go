package member

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/content"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/gatejob"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A session is one connection to the cluster and everything that is known through it. Only the goroutine
// of Agent.Run uses it. It decides when to act, and its parts act; the package comment says which part
// owns which state.
type session struct {
	*Agent
	*cluster
	desired.View
	// desired is what the View reads. The session replaces it.
	desired  *desired.State
	owned    owned.View
	progress progress.View
	drift    drift.View
	// health is the result of the last probe.
	health probe.Result

	observer    *observer
	inventories *inventories
	history     *journal
	drifts      *driftRecorder
	blocker     *deletionBlocker
	record      *recorder
	applier     *applier
	pruner      *pruner
	values      *valueChecker
	sweeper     *sweeper
	reporter    *reporter

	expressions *availability.Expressions
	prober      *probe.Prober
	retry       *time.Timer
	// newProbe is the newest result of a probe, until it is processed.
	newProbe *probe.Result
	job      gatejob.Request
	// observingOnly says that another fleet had claimed the cluster, and nothing was written.
	observingOnly bool
	// reconciled says that the last pass was complete, so that every work is reconciled.
	reconciled bool
	// postponed says that the last pass could not be made, and unknown limits the log lines about
	// kinds that are not known.
	postponed bool
	unknown   retry.LogLimiter
	// readNext is when unavailable objects that no watch reports are read again.
	readNext time.Time
	// filled is when the last pass ended that has applied many objects over the connection in use; zero if none has.
	filled time.Time
	// introduced says that the inventories of the cluster were reported.
	introduced bool
	// leaving says that everything on this cluster is being released.
	leaving bool
}

// newSession returns a session that has not sent a request yet.
func (a *Agent) newSession(conn *connection.Conn) *session {
	cfg := &a.config
	expressions := availability.New(&cfg.Encoder.Expressions)
	prober := probe.New(conn, probe.Config{
		Cluster: cfg.Name, Interval: cfg.Probe, Observe: cfg.Observe, Pace: cfg.Pace, Seconds: cfg.Metrics.ProbeSeconds, Log: cfg.Log, Publish: a.publishProbe,
		UID: a.uid, Version: a.version,
	})
	objects := &observed.Objects{}
	c := &cluster{cfg: cfg, conn: conn, kinds: discovery.New(conn.Discovery), live: objects.View()}
	c.finder = discovery.NewFinder(conn, c.kinds)
	c.watch = watch.New(conn, watch.Config{
		Cluster: cfg.Name, Restarts: cfg.Metrics.WatchRestarts, Log: cfg.Log, Expressions: expressions, Interrupted: prober.SuspectRestore,
	})
	c.pods = pods.New(conn, pods.Config{Cluster: cfg.Name, FailureTimeout: cfg.PodFailureTimeout, Wake: c.watch.Changes.Notify, Log: cfg.Log})
	wanted := &desired.State{}
	has, toDo := owned.New(wanted.View()), progress.New()
	v, o, p, d := wanted.View(), has.View(), toDo.View(), a.drifted.View()
	s := &session{Agent: a, cluster: c, View: v, desired: wanted, owned: o, progress: p, drift: d, expressions: expressions, prober: prober, retry: time.NewTimer(0)}
	s.retry.Stop()
	s.inventories = &inventories{cluster: c, View: v, owned: has, progress: p}
	s.history = &journal{cluster: c, View: v, deletions: a.deletions}
	s.drifts = &driftRecorder{cluster: c, View: v, progress: p, state: a.drifted, drift: d}
	s.blocker = &deletionBlocker{cluster: c, View: v, owned: o, progress: p, blocked: map[api.ID]blockedDeletion{}}
	s.record = &recorder{
		cluster: c, View: v, owned: o, progress: toDo, inventories: s.inventories, blocker: s.blocker, drifts: s.drifts, history: s.history, superseded: &a.superseded, objects: objects,
		ended: map[api.PlacementKey]bool{}, fresh: map[string]bool{}, written: &a.written,
	}
	c.store = inventory.NewStore(conn, a.membership, inventory.Config{
		Cluster: cfg.Name, Fleet: cfg.Fleet, HasCommit: cfg.HasCommit, Live: c.live, Record: s.record.setLive, Serials: &a.serials, Log: cfg.Log,
	})
	s.observer = &observer{cluster: c, View: v, owned: o, progress: p, record: s.record}
	s.applier = &applier{cluster: c, View: v, owned: o, progress: p, drift: d, blocker: s.blocker, drifts: s.drifts, inventories: s.inventories, record: s.record}
	s.pruner = &pruner{
		cluster: c, View: v, owned: o, progress: p, blocker: s.blocker, inventories: s.inventories, record: s.record,
		content: &content.Checker{Conn: conn, Fleet: cfg.Fleet, Owns: o.IsListed, Timeout: cfg.Timeout},
	}
	s.values = &valueChecker{cluster: c, View: v, progress: p, applier: s.applier, drifts: s.drifts}
	s.sweeper = newSweeper(s.values)
	s.reporter = &reporter{
		cluster: c, View: v, owned: o, progress: p, drift: d, blocker: s.blocker, drifts: s.drifts, record: s.record, serials: &a.serials,
	}
	return s
}

// A wakeReason is what a session has to handle.
type wakeReason int

const (
	byEnd wakeReason = iota
	byLeave
	byFleet
	byWorks
	byDriftDecision
	byCheck
	byChanges
	bySweep
	byRetry
	byProbe
	byJob
)

// setWorks replaces the desired state of the cluster.
func (s *session) setWorks(works []*work.Work) {
	was, before := s.Works(), s.Wanted()
	if len(was) == 0 {
		s.record.progress.Suspect(slices.Collect(s.drifts.notReverted())...)
	}
	for _, w := range works {
		old, ok := was.Find(w.Placement)
		if !ok || old.Revision != w.Revision || (old.Strategy.Type == api.ReportDiff) != (w.Strategy.Type == api.ReportDiff) {
			s.record.progress.Untried(w.Placement)
		}
		if ok && old != w {
			s.record.progress.WorkChanged(old, w)
		}
	}
	s.inventories.owned.ReplaceWorks(s.desired, works)
	s.record.superseded.WorksReplaced(s.owned)
	s.expressions.Replace(s.Wanted().Manifests())
	for id := range s.progress.Failures() {
		w, isWanted := s.Wanted().Of(id)
		if old, _ := before.Of(id); !isWanted || w.Placement != old.Placement {
			s.record.progress.Settled(id) // that was the failure of another placement
		}
	}
	s.drifts.state.WorksReplaced(s.Works().Find)
	s.record.progress.Suspect(slices.Collect(s.drifts.otherRule())...)
}

// moveOn makes watches resume over a connection with the new credentials, and closes the other
// connections.
func moveOn(w *watch.Set, replaced []*connection.Clients) {
	w.Reconnect()
	for _, c := range replaced {
		c.Close()
	}
}

// filledDelay is how long after a pass its last events have been received, and no further pass follows.
const filledDelay = 3 * time.Second

// replaceFilled makes the watches resume over a new connection some time after a pass that has applied many objects: a connection lasts for
// days, and keeps buffers as large as the most that was received at once.
func replaceFilled(s *session) {
	if s.filled.IsZero() || time.Since(s.filled) < filledDelay {
		return
	}
	s.filled = time.Time{}
	s.conn.Close()
	s.watch.Reconnect()
}

// errReconnect ends a session whose credentials or identity are no longer valid.
var errReconnect = errors.New("connection given up")

func reconnect(why error) error { return fmt.Errorf("%w: %w", errReconnect, why) }

// schedule makes sure that again is called within d.
func (s *session) schedule(d time.Duration) { s.retry.Reset(max(d, time.Millisecond)) }

// reschedule sets the timer to the earliest retry. While the cluster is being left, or after a pass
// that could not be made, the timer is already set.
func (s *session) reschedule() {
	if s.leaving || s.postponed {
		return
	}
	var first time.Time
	for _, f := range s.progress.Failures() {
		first = retry.Earlier(first, f.Next)
	}
	for _, b := range s.blocker.blocked {
		if !b.next.IsZero() {
			first = retry.Earlier(first, b.next)
		}
	}
	for inv := range s.owned.All() {
		if s.inventories.unwritten(inv) {
			first = retry.Earlier(first, time.Now().Add(inventoryRetry))
		}
	}
	if s.progress.HasSuspects() {
		first = retry.Earlier(first, time.Now().Add(max(valuesRetry, time.Until(s.values.compareNext))))
	}
	for _, at := range s.drifts.repeatedRemovals() {
		if at.After(time.Now()) {
			first = retry.Earlier(first, at)
		}
	}
	for _, w := range s.Works() {
		if s.Works().OnlyCompares(w.Placement) {
			first = retry.Earlier(first, s.progress.NextComparison())
		}
	}
	for range s.applier.unfollowed() {
		first = retry.Earlier(first, retry.Later(s.readNext, time.Now().Add(time.Second)))
		break
	}
	if len(s.access.Missing()) > 0 {
		first = retry.Earlier(first, s.access.NextRetry())
	}
	if !s.filled.IsZero() {
		first = retry.Earlier(first, s.filled.Add(filledDelay))
	}
	if first.IsZero() {
		s.retry.Stop()
		return
	}
	s.schedule(time.Until(first))
}

// inventoryRetry is the time between two attempts to write an inventory.
const inventoryRetry = 2 * time.Second

// unfollowedInterval is the time between two reads of objects that are not available, and that no
// watch reports.
const unfollowedInterval = 30 * time.Second

// reportCluster reports the cluster as the last probe and the inventories show it. inventories are
// those, if they were just read.
func (s *session) reportCluster(inventories ...protocol.InventorySeen) {
	seen := s.seen(s.health)
	if seen.Restored = s.takeRestore(); seen.Restored.Why != "" {
		s.drifts.state.ClusterRestored()
	}
	seen.At, seen.Owners, seen.Claimant, seen.Inventories = time.Now(), s.store.Owners(), s.store.Claimant(), inventories
	s.cfg.Report(seen)
}

// reportInventories reports the cluster, and the placements and revisions in its inventories. It is
// called after the inventories were read.
func (s *session) reportInventories() {
	var all []protocol.InventorySeen
	for inv := range s.owned.All() {
		all = append(all, protocol.InventorySeen{Placement: inv.Placement(), Revision: inv.Revision(), Abandon: inv.Abandon()})
	}
	s.reportCluster(all...)
}
