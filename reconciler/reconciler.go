// Package reconciler runs the reconcile loop: it receives commits and observations, plans the fleet, records the plan
// in the ledger, sends works to the members, and publishes a report.
//
// What arrives between two turns waits in the inbox, of observations the newest about each subject. A turn (loop.go) drains it:
// each observation is folded into the ledger (foldOne), and from the entry before and after it follows what has happened
// (occurrence.go), for the history, metrics and traces. If anything has changed, plan.Resolve makes a new plan from the commit in
// force and the ledger. The plan is recorded in the ledger, which is saved before works are sent (dispatch.go). status.Build then
// makes the report of plan and ledger.
//
// One goroutine owns the ledger and the current snapshot, and others send values to it. It never waits for Git or a
// cluster.
package reconciler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Reconciler runs the loop. Run may be called once.
type Reconciler struct {
	loader  loader // its guard is set when Run starts
	agents  agents
	cfg     *Config
	ledger  *ledger.Ledger
	inbox   *inbox
	running sync.WaitGroup

	// inForce is the commit in force: the newest commit that has loaded. It is nil until one has. inForceSeenAt is when
	// its load began.
	inForce       *hub.Snapshot
	inForceSeenAt time.Time
	past          pastCommits
	history       historyReader
	// source is what the report says about the repository. newestFatal is set while the newest commit is refused
	// because loading it has crashed the process.
	source      status.Source
	newestFatal bool
	// untraced is when a new commit came into force, until its trace is sent; zero afterwards.
	untraced   time.Time
	statusMemo *status.Memo
	faults     map[api.PlacementKey]string
	// deleted are the reported deletions without an event yet.
	deleted []status.Deleted
	// observed are the occurrences that follow from observations, until they are published.
	observed []occurrence
	// planned are the occurrences that follow from plans, until the ledger is saved.
	planned [][]occurrence
	// answered are the orders whose answers wait for the end of the turn.
	answered []queuedOrder
	// last is the time of the last turn, due the latest time of the next one, and saveBy the time at which observations
	// are saved; zero if there are none to save.
	last, due, saveBy time.Time
	// unsent is the last plan, while some of its works wait until they are saved; nil otherwise.
	unsent *plan.Plan
	// saving is how long all saves have taken.
	saving time.Duration

	// works are the works that were last sent to clusters. unanswered is the number of clusters for which a placement
	// leaves room, because they have not answered since the ledger was lost.
	works      map[string][]*work.Work
	unanswered map[api.PlacementKey]int

	// rebuilding says that the ledger was empty at the start, and that members may still report their inventories.
	// Nothing is saved meanwhile, since after a crash it would not be known that the ledger was lost. firstPlan says that this has ended
	// and that nothing was planned since, and rebuilt that there were inventories, too.
	rebuilding, firstPlan, rebuilt bool
	started                        time.Time
	// driftDecisions are the decisions about held drift, by cluster.
	driftDecisions map[string]protocol.DriftDecisions
}

// New returns a Reconciler. Run starts it.
func New(cfg Config) *Reconciler {
	cfg = cfg.withDefaults()
	r := &Reconciler{cfg: &cfg, inbox: newInbox(&cfg.Metrics.waiting), past: newPastCommits(), statusMemo: status.NewMemo()}
	r.loader = newLoader(r.cfg, r.inbox.addLoaded, freeMemory)
	r.agents = agents{cfg: r.cfg, inbox: r.inbox, running: &r.running, members: map[string]*runningMember{}, removedSince: map[string]time.Time{}, ending: map[string]<-chan struct{}{}}
	return r
}

// Run runs the loop until ctx is done. When it returns, everything it started has ended and the ledger is saved. An
// error means that the loop cannot continue.
func (r *Reconciler) Run(ctx context.Context) error {
	var err error
	if r.ledger, err = r.cfg.Store.Load(); err != nil {
		return err
	}
	r.rebuilding = r.ledger.Empty()
	r.loader.lostRuns.Store(r.rebuilding || hasLostRuns(r.ledger))
	r.setFleet()
	r.ledger.Rebase(r.cfg.Now())
	lastInForce := r.ledger.InForce()
	r.loader.guard, r.started = NewCrashGuard(r.cfg.LoadingFile, r.cfg.Log), r.cfg.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer r.running.Wait()
	defer cancel(nil)
	r.running.Go(func() {
		r.loader.loadLastInForce(ctx, lastInForce)
		cancel(r.loader.followSource(ctx))
	})
	r.loop(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// setFleet records the fleet's identity. If the ledger is empty, the ID may still be determined from the reports of
// members.
func (r *Reconciler) setFleet() {
	f := r.cfg.Fleet
	if id := r.ledger.Fleet().ID; id != "" || r.rebuilding {
		f.ID = id
	}
	r.ledger.SetFleet(f)
}

// SetDriftDecisions replaces the decisions about held drift, by cluster. They take effect with the next turn, like observations.
// It never blocks, and may be called concurrently.
func (r *Reconciler) SetDriftDecisions(all map[string]protocol.DriftDecisions) {
	r.inbox.putTo(r.inbox.observed, func() { r.inbox.driftDecisions = all })
}

// ReportSource causes a turn that reports the state of the source, for example after a poll has failed. It never blocks, and may be called concurrently.
func (r *Reconciler) ReportSource() { r.inbox.triggerSoon() }
