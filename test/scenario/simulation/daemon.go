package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

const (
	invariantLoop    = "the loop continues"
	invariantPlanned = "planning some clusters of a placement is planning all of it"
)

// A daemon is one process, from its start to its end.
type daemon struct {
	w      *world
	loop   *reconciler.Reconciler
	ctx    context.Context
	cancel context.CancelFunc
	done   chan error
	agents []*agent
	// dead says that the process was killed: nothing it does has an effect.
	dead bool
	// torn says that it was killed during a save.
	torn bool
	// writesUntilKill is the number of writes until it is killed; negative if it is not.
	writesUntilKill int
	// rebuilt says that it started with an empty ledger although placements existed, sentWorks
	// that it has sent works since.
	rebuilt, sentWorks bool
	started            time.Time
	// shared is the ledger of a replica; nil if there are no others.
	shared *ledger.Shared
	// stopped is closed when the stopped process continues; nil while it runs. stopIn counts
	// the writes of the ledger until it is stopped; 0 if it is not to be.
	stopped chan struct{}
	stopIn  int
	// former says that another replica has taken over.
	former bool
	// questions are the gates that it asks, and answer receives the answers.
	questions map[placement.GateRound]*question
	answer    func(placement.GateAnswer)
}

// start starts a daemon with the current state.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	d := &daemon{w: w, ctx: ctx, cancel: cancel, done: make(chan error, 1), writesUntilKill: -1, started: time.Now()}
	w.daemon = d
	w.findSaved()
	if w.replicas != nil {
		d.shared = ledger.OpenShared(client{d}, w.replicas.identity(), func() {})
	}
	d.rebuilt = w.state.lost
	w.startModel(d)
	memo := plan.NewMemo()
	memo.Check(func(key api.PlacementKey, difference string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if difference != "" {
			w.violate(invariantPlanned, "%s: %s", key, difference)
		}
	})
	d.loop = reconciler.New(reconciler.Config{
		Source: replicaSource{w.source, d}, Loader: w.loaders.head, Past: w.loaders.past, Store: &store{w, d},
		Member: d.member, Now: d.now, Publish: d.publish, Log: slog.New(slog.DiscardHandler),
		MaxUnreachable: w.unreachableLimit(), RepairAfter: repairAfter, Fleet: ourFleet, Memo: memo, Since: w.source.since, AskGates: d.askGates,
	})
	go func() { d.done <- d.loop.Run(ctx) }()
}

func (d *daemon) member(c *hub.Cluster, report func(protocol.Observation)) reconciler.Member {
	w := d.w
	d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead {
		return &agent{host: newHost(c.Name, w.seed), name: c.Name, d: d, ended: true}
	}
	h := w.connect(c)
	if old := d.agent(c.Name); old != nil {
		old.stop()
	}
	a := &agent{host: h, name: c.Name, d: d, report: report, wrote: map[api.PlacementKey]bool{}, lastApplied: map[api.ID]*work.Manifest{}}
	d.agents = append(d.agents, a)
	a.after(h.halfPass, a.connect)
	return a
}

// stop interrupts the current pass of an agent.
func (a *agent) stop() {
	if !a.ended && a.pass != nil && a.announced && !a.foreign() {
		a.runSome(a.steps())
	}
	a.ended = true
}

// countWrite counts one write, and reports whether the process is killed before it.
func (d *daemon) countWrite() bool {
	if d.writesUntilKill == 0 && !d.dead {
		d.dead = true
		d.w.logf("gitfleet is killed")
	}
	if d.writesUntilKill > 0 {
		d.writesUntilKill--
	}
	return d.dead
}

func (w *world) setWorks(a *agent, works []*work.Work) {
	a.d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.d.countWrite() {
		return
	}
	works = w.mutant.sends(works)
	if w.verbose {
		w.logf("cluster %s is sent%s", a.name, describeWorks(works))
	}
	w.checkWorks(a, works)
	if resumes(a.works, works) {
		a.blip("a suspension has ended")
	}
	a.works, a.hasWorks, a.basedOn = w.mutant.applies(works), true, w.saved
	a.startPass()
	a.d.countWrite()
}

// resumes reports whether a work that was suspended is not any more.
func resumes(was, now []*work.Work) bool {
	return slices.ContainsFunc(now, func(n *work.Work) bool {
		return n.Suspended == "" && slices.ContainsFunc(was, func(o *work.Work) bool { return o.Placement == n.Placement && o.Suspended != "" })
	})
}

// describeWorks describes works for the log.
func describeWorks(works []*work.Work) string {
	var b strings.Builder
	for _, w := range works {
		fmt.Fprintf(&b, " %s=%s", w.Placement.Name, w.Revision.Commit)
		for _, m := range w.Manifests {
			b.WriteString("," + m.ID.Namespace + "/" + m.ID.Name)
		}
		say := func(yes bool, what string) {
			if yes {
				b.WriteString(what)
			}
		}
		say(w.Suspended != "", " and is suspended")
		for _, s := range w.SuspendedObjects {
			b.WriteString(" but not " + title(s.ID))
		}
		say(w.Keep, " and keeps")
		say(w.Remove, " and removes")
		say(w.Abandon, " without deleting")
		say(w.Strategy.Type == api.ReportDiff, " without writing")
	}
	return b.String()
}

func (w *world) leaveFleet(a *agent) <-chan struct{} {
	a.d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	a.leaving = make(chan struct{})
	if !a.d.countWrite() {
		a.startPass()
	}
	return a.leaving
}

func (d *daemon) publish(r *status.Report) {
	w := d.w
	d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead {
		return
	}
	r = r.Whole()
	w.mutant.publishes(r)
	w.checkReport(r)
	w.report = r
	w.logReport(r)
	for w.reportsDuringTurns && len(w.outbox) > 0 {
		w.deliver()()
	}
}

// endKilled ends a killed process.
func (w *world) endKilled() {
	w.mu.Lock()
	d := w.daemon
	w.mu.Unlock()
	w.end(d)
}

// stop ends the daemon as SIGTERM does.
func (w *world) stop() {
	w.mu.Lock()
	d := w.daemon
	w.logf("gitfleet ends")
	w.mu.Unlock()
	w.end(d)
}

func (w *world) end(d *daemon) {
	w.mu.Lock()
	for _, a := range d.agents {
		a.stop()
	}
	w.mu.Unlock()
	d.continueStopped()
	d.cancel()
	err := <-d.done
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.violate(invariantLoop, "it ended: %v", err)
	}
	d.dead = true
	if d.torn {
		w.simulateTornWrite()
	}
	w.daemon, w.outbox, w.closing, w.ending = nil, nil, nil, nil
}

// logReport adds the state of all placements to the log when it changes.
func (w *world) logReport(r *status.Report) {
	if !w.verbose {
		return
	}
	var b strings.Builder
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			fmt.Fprintf(&b, "\t%s %s %s", d.Placement, c.Cluster, c.Commit)
			switch {
			case c.Removing:
				b.WriteString(" removing")
			case c.Waits != "":
				b.WriteString(" waits: " + c.Waits)
			case c.Available:
				b.WriteString(" available")
			case c.Applied:
				b.WriteString(" applied")
			}
			b.WriteString("\n")
		}
	}
	if b.String() != w.lastStatus {
		w.lastStatus = b.String()
		w.logf("now at %s", r.Source.InForce.Hash)
		w.text.WriteString(w.lastStatus)
	}
}
