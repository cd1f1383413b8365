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
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// A Source follows the Git repository.
type Source interface {
	// Run calls head with each new commit of the tracked reference until ctx is done.
	Run(ctx context.Context, head func(gitsource.Commit)) error
	Files(ctx context.Context, commit string) (fs.FS, error)
	Commit(ctx context.Context, hash string) (gitsource.Commit, error)
	Status() gitsource.Status
}

// A Member keeps one cluster in the desired state.
type Member interface {
	// SetMembership sets the fleet that the member acts for, the other fleets whose inventories it adopts, and the
	// identity of its cluster. With inventories of any other fleet, or if the cluster is another one, it writes nothing.
	// It is called before the first Set, and never blocks.
	SetMembership(protocol.Membership)
	// Set replaces all works of the cluster; it never blocks.
	Set([]*work.Work)
	// Leave releases everything on the cluster and closes the channel when that is done.
	Leave() <-chan struct{}
	// Check checks all objects of the cluster, and retries failures at once; it never blocks.
	Check()
	// SetRecord sets what an earlier process recorded of the cluster. It is called once, before Run.
	SetRecord(protocol.MemberRecord)
	// SetDriftDecisions replaces the decisions about held drift; it never blocks.
	SetDriftDecisions(protocol.DriftDecisions)
	// Run works until ctx is done.
	Run(ctx context.Context)
}

// Config configures a Reconciler. A field must be set unless its comment says what happens without it.
type Config struct {
	// Fleet is the name and the source of this fleet, and the ID to use if it does not have one yet.
	Fleet  protocol.Fleet
	Source Source
	// Loader loads new commits, and Past those that clusters are still assigned to; they are used concurrently.
	Loader, Past *hub.Loader
	// FetchBase fetches a commit of another repository for the Loader and Past, and FetchChart a chart that is locked; nil
	// fetches none. They are called by several goroutines at the same time, and have to limit how many do something.
	FetchBase  func(ctx context.Context, url, commit string) error
	FetchChart func(ctx context.Context, chart hub.RemoteChart) error
	// LastChanges returns, by path, the commits that last changed some files, with their signers. It is nil if signatures are not required.
	LastChanges func(ctx context.Context, head string, paths []string) (map[string]gitsource.Commit, error)
	// Since returns the commits in which parts of files last changed. It is called only after the ledger was lost.
	Since func(ctx context.Context, head string, parts []gitsource.FilePart, read func(path string, content []byte) map[string]string) (map[gitsource.FilePart]gitsource.Commit, error)
	Store ledger.Store
	// LoadingFile is the file of the CrashGuard for the commits that are loaded; empty if there is none. It is
	// read when Run starts.
	LoadingFile string
	// Member creates the agent of a cluster. report never blocks.
	Member func(c *hub.Cluster, report func(protocol.Observation)) Member
	// Conditions are the condition names in reports.
	Conditions status.Conditions
	// MaxUnreachable is how many unreachable clusters, or which share of the wanted clusters, a rollout may skip; nil
	// means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before its update counts as failed; zero
	// means no limit.
	AvailableTimeout time.Duration
	// RepairAfter is how long a cluster has to be unavailable by itself before it is updated outside of the budget.
	RepairAfter time.Duration
	// ApprovalsInGit says that stages of update runs are approved by commits only.
	ApprovalsInGit bool
	// Memo keeps what plans have in common; nil means a new one.
	Memo *plan.Memo
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Publish receives each new report, which is immutable.
	Publish func(*status.Report)
	// Record receives entries for the history, and never blocks; nil drops them.
	Record func(...history.Entry)
	// AskGates receives the gates that have to be asked from now on, in place of those before, and what receives their answers. Neither
	// blocks. Nil asks none, so that those gates do not pass.
	AskGates func([]placement.GateQuestion, func(placement.GateAnswer))
	// Metrics are updated by the loop; nil measures nothing.
	Metrics *Metrics
	// Traces sends the traces of commits; nil sends none.
	Traces *tracing.Tracer
	Log    *slog.Logger
}

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
	memo       *plan.Memo
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
	if cfg.Record == nil {
		cfg.Record = func(...history.Entry) {}
	}
	if cfg.AskGates == nil {
		cfg.AskGates = func([]placement.GateQuestion, func(placement.GateAnswer)) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Metrics = cmp.Or(cfg.Metrics, NewMetrics())
	r := &Reconciler{cfg: &cfg, inbox: newInbox(&cfg.Metrics.waiting), past: newPastCommits(), memo: cmp.Or(cfg.Memo, plan.NewMemo()), statusMemo: status.NewMemo()}
	r.loader = newLoader(r.cfg, r.inbox, freeMemory)
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
