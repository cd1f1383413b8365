// Package member reconciles one member cluster.
//
// An [Agent] gets the desired state of its cluster (Set), and reports the observed state. Run connects (session.go) and runs the
// session until its connection is lost. A session waits until something happens: new works, a change that a watch reports, a
// probe, a retry that is due. It then makes a pass (process in sync.go) over the objects that this concerns, in four steps:
//
//   - It observes. Packages watch, probe, discovery and pods read the cluster, and observed keeps what matters of objects. The
//     observer takes what watches have reported (recordChanges), and notes objects whose values have to be compared.
//   - It decides. For each object facts (task.go) gathers what is known, and decide.Apply says what is done, or why nothing is.
//     drift.Of says whether it has drifted, and the driftRecorder (drift.go) what is done about that. decide.Delete decides about
//     an object that is no longer wanted (prune.go), after the brake has looked at all deletions together (brake.go).
//   - It acts. An executor (executor.go) carries out the task of one object with as few requests as possible, and returns an
//     outcome. It changes no state, so that several run at a time. The pruner deletes (a removal), and recreate.go replaces (a
//     recreation).
//   - It records. The recorder (record.go) takes these outcomes: what is known of the object, its entry in the inventory, drift,
//     the history, and, if the object is not as it should be, why, and when it is tried again (progress.go).
//
// The first pass of a session is over everything (sync), and so is one in which something may have to be deleted. Later works
// cost what they change (syncWorks).
//
// A pass ends with writing the inventories. The reporter (report.go) then sends the loop one protocol.WorkSeen for each placement
// that the pass touched. Objects that are as they should be cost no request, and are not in it.
//
// One goroutine, that of Run, owns all state. What is kept of the cluster is changed by one part each, and the others only read it:
// the recorder keeps the objects that are known (observed.View is what others have of them), the session the result of the last
// probe, and each part what only it needs. What placements should have (desired.View) is replaced by new works only. Two structs
// are read by many: what placements own (ownership), and what remains to be done (progress). Only the recorder, the methods of
// progress, the inventories, and the brake for what it holds, write these.
package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/gatejob"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Config configures an agent. Name, Connect, Fleet, Encoder, Report and Log must be set; the
// zero value of any other field means its default.
type Config struct {
	Name string
	// Connect returns the credentials of the cluster. It is called every few seconds, so that
	// replaced credentials are used.
	Connect func(context.Context) (*rest.Config, error)
	// Fleet is the value of the managed-by label. Two gitfleets with different fleet names do
	// not touch each other's objects.
	Fleet   string
	Encoder *apply.Encoder
	// HasCommit reports whether the repository has a commit. An inventory without a fleet ID is
	// not ours if it names a commit of another repository. Nil means that the repository has
	// every commit.
	HasCommit func(hash string) bool
	// Report receives observations. It must not block for long.
	Report func(protocol.Observation)
	// Record, if set, receives what was done to objects; it must not block.
	Record func(...history.Entry)
	Log    *slog.Logger
	// Concurrency bounds the concurrent writes to this cluster; default 8.
	Concurrency int
	// Limit limits the concurrent writes of all agents that share it. It is a buffered channel
	// with one element for each write; nil means no common limit.
	Limit chan struct{}
	// Arrivals likewise limits the number of agents that connect for the first time or discover
	// all kinds, which needs many goroutines. It must not be Limit, since clusters that do not
	// answer would delay the writes of others.
	Arrivals chan struct{}
	// Passes likewise limits the number of agents that apply many objects at once, such as everything on a new cluster. Each
	// needs memory for it, and has nothing to report before the end.
	Passes chan struct{}
	// Memory is what all agents share for large answers, and for what they keep of clusters; nil means no
	// common limit.
	Memory *memory.Pool
	// Brake limits the deletions without a user's consent.
	Brake Brake
	// Probe is the time between two probes; default 10 s.
	Probe time.Duration
	// Observe is the time between two observations of nodes and pods; default 1 min.
	Observe time.Duration
	// Pace makes both longer if many agents share it; nil means that nothing does.
	Pace *probe.Pace
	// Sweep is the time between two sweeps, which check the watches; default 6 h, negative for
	// none.
	Sweep time.Duration
	// Timeout bounds every request except watches; default 30 s.
	Timeout time.Duration
	// PodFailureTimeout is how long pods of a workload may fail to start before the workload
	// counts as failed; default 30 s.
	PodFailureTimeout time.Duration
	// DriftMode is the mode of objects to which no other rule of api.DriftRules applies. Drift of
	// the modes propose and report is held; see SetDriftDecisions. Empty means revert.
	DriftMode api.DriftMode
	// DriftKinds are the modes of kinds; nil for none.
	DriftKinds map[api.GroupKind]api.DriftMode
	// Additions is what is done about what others add beside what a manifest sets; empty means nothing.
	Additions api.AdditionsMode
	// Wrap, if set, wraps the transport of every connection.
	Wrap    func(http.RoundTripper) http.RoundTripper
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 8)
	c.Brake = cmp.Or(c.Brake, Brake{Percent: 30, Objects: 10})
	c.Probe = cmp.Or(c.Probe, 10*time.Second)
	c.Observe = cmp.Or(c.Observe, time.Minute)
	c.Sweep = cmp.Or(c.Sweep, 6*time.Hour)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.PodFailureTimeout = cmp.Or(c.PodFailureTimeout, 30*time.Second)
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	return c
}

// An Agent reconciles one cluster.
type Agent struct {
	// Jobs takes the Jobs that gates run on the cluster. They are handled between passes, under the same conditions as every write.
	Jobs *gatejob.Queue

	config     Config
	connection connection.Config
	// newWorks, newMembership and newDriftDecisions have the last arguments of Set, SetMembership and
	// SetDriftDecisions that were not received yet.
	newWorks chan []*work.Work
	// skipped says that Set has replaced works that were never used. The next pass then reports every placement: a placement may have
	// been changed and changed back, and the loop waits for a report that is newer than that.
	skipped           atomic.Bool
	newMembership     chan protocol.Membership
	newDriftDecisions chan protocol.DriftDecisions
	// last are the works that were last received; only Run uses it. Nil means that none were
	// received yet.
	last       []*work.Work
	membership protocol.Membership
	// check requests that everything is checked again.
	check chan struct{}
	// leave is closed to request that the cluster is left, and left once that is done.
	leave, left chan struct{}
	// drifted is what is known about drift. Only Run uses it.
	drifted driftState
	// superseded are manifests to be replaced. Only Run uses it.
	superseded superseded
	// uid is the UID of the cluster that was connected last, version the highest resource version that was known of it, and serials
	// are the serial numbers of its inventories, also of an earlier process.
	uid     string
	version uint64
	serials inventory.Serials
	// restored is what shows that the cluster was restored to an earlier state, until a session has
	// read everything again; empty if nothing does.
	restored string
	// unlisted says that there may be objects of ours that no inventory lists any more. searched is when
	// they were last looked for.
	unlisted bool
	searched time.Time
	// reportedSetBack are the last serial numbers of inventories that were missing or earlier ones when
	// the last session began, which was reported.
	reportedSetBack map[api.PlacementKey]uint64
	// setBackAt is when a session last ended because inventories were missing or earlier ones.
	setBackAt time.Time
	// deletions are those that were not reported yet. They outlive a session.
	deletions deletion.Log
	// written are the placements of which an object was written, or tried to be written, since their last report.
	written placementSet
	// access knows which permissions the cluster does not grant.
	access *permission.Reviewer
	// silentFor limits the log lines about a cluster that does not answer. During a session,
	// only its probes use it.
	silentFor retry.LogLimiter
	// holderLog limits the log lines about another fleet that holds the cluster.
	holderLog retry.LogLimiter
}

// New returns an agent that does nothing until it runs.
func New(cfg Config) *Agent {
	a := &Agent{
		config: cfg.withDefaults(), check: make(chan struct{}, 1), leave: make(chan struct{}), left: make(chan struct{}),
		newWorks: make(chan []*work.Work, 1), newMembership: make(chan protocol.Membership, 1), newDriftDecisions: make(chan protocol.DriftDecisions, 1),
		Jobs:    gatejob.NewQueue(),
		drifted: driftState{memory: drift.Memory{}, additions: drift.Memory{}, flips: map[api.ID]flips{}, removals: map[api.ID]diff.Flips{}}, deletions: deletion.Log{},
	}
	a.access = permission.New(permission.Config{Cluster: a.config.Name, Concurrency: a.config.Concurrency, Log: a.config.Log})
	a.connection = connection.Config{
		Cluster: a.config.Name, Connect: a.config.Connect, Wrap: a.config.Wrap, Timeout: a.config.Timeout,
		Metrics: &a.config.Metrics.Metrics, Log: a.config.Log, Refused: a.access.RecordRefusal,
	}
	return a
}

// Set replaces the desired state of the cluster. It never blocks; a newer call replaces one
// that was not used yet. Only one goroutine may call it. Until the first call nothing is
// written.
func (a *Agent) Set(works []*work.Work) {
	if replace(a.newWorks, works) {
		a.skipped.Store(true)
	}
}

// replace puts a value into a channel with one element, instead of a value that was not received
// yet, and reports whether there was one. Only one goroutine may send to the channel.
func replace[T any](ch chan T, value T) (replaced bool) {
	select {
	case <-ch:
		replaced = true
	default:
	}
	ch <- value
	return replaced
}

// SetMembership sets the fleet of the agent, the fleets whose inventories it takes over, and the
// identity of its cluster. If the cluster has an inventory of any other fleet, is not the one with
// that identity, or belongs to another member, the agent writes nothing. It never blocks; only the
// goroutine that calls Set may call it. Until it is called, the agent treats every inventory with
// its fleet name as its own.
func (a *Agent) SetMembership(m protocol.Membership) {
	replace(a.newMembership, m)
}

// SetDriftDecisions replaces the decisions about held drift. It never blocks; a newer call replaces one
// that has not been used yet. Only one goroutine may call it.
func (a *Agent) SetDriftDecisions(all protocol.DriftDecisions) {
	replace(a.newDriftDecisions, all)
}

// SetRecord sets what an earlier process recorded of the cluster, as loaded from a ledger. It may be
// called before Run, and does not change its argument.
func (a *Agent) SetRecord(r protocol.MemberRecord) {
	a.uid, a.version, a.serials = r.UID, r.Version, inventory.SerialsOf(r.Inventories)
	for p, list := range r.Drifts {
		for _, d := range list {
			if d.Addition && !a.config.Additions.Looks() {
				continue
			}
			a.drifted.put(p, d)
		}
	}
}

// Check makes the agent check everything again, and retry failures at once. It never blocks,
// and any goroutine may call it.
func (a *Agent) Check() {
	select {
	case a.check <- struct{}{}:
	default:
	}
}

// Leave releases everything on the cluster: our labels are removed from objects, which
// otherwise stay as they are, and inventories are deleted. The returned channel is closed when
// that is done. Only the goroutine that calls Set may call it, once, and must not call Set
// afterwards.
func (a *Agent) Leave() <-chan struct{} {
	close(a.leave)
	return a.left
}

// budgetGrace is how long a session must have lasted so that a member which exceeds its budget afterwards is
// tried again as soon as after the first time.
const budgetGrace = 30 * time.Minute

// Run runs the agent until ctx is done, and stops everything it has started before it returns.
// A lost connection is not an error: it is reported and retried.
func (a *Agent) Run(ctx context.Context) {
	a.config.Metrics.begin(a.config.Name)
	defer a.config.Metrics.forget(a.config.Name)
	a.connection.Memory = a.config.Memory.Share()
	defer a.connection.Memory.Close()
	var lost, overBudget retry.Backoff
	for ctx.Err() == nil {
		s, err := a.arrive(ctx, lost)
		if err == nil {
			a.answers(nil)
			lost = 0
			began := time.Now()
			err = s.run(ctx)
			if time.Since(began) > budgetGrace {
				overBudget = 0
			}
		}
		a.connection.Memory.Reset()
		if connection.IsExceeded(err) { // although the server answers, so that lost does not grow
			a.config.Metrics.OverBudget.Inc(a.config.Name)
			a.lost(ctx, connection.GivenUp(err), overBudget.Next(30*time.Second, 10*time.Minute))
			continue
		}
		a.lost(ctx, err, lost.Next(time.Second, 30*time.Second))
	}
}

// arrive opens a session. Arrivals limits how many clusters do so at once, except those that
// have lost their connection and retry slowly.
func (a *Agent) arrive(ctx context.Context, lost retry.Backoff) (*session, error) {
	if lost == 0 {
		defer acquireSlot(ctx, a.config.Arrivals, lateAnswer)()
	}
	return a.open(ctx)
}

// lost reports that there is no connection, and waits before the next attempt, unless ctx is
// done.
func (a *Agent) lost(ctx context.Context, err error, wait time.Duration) {
	if ctx.Err() != nil {
		return
	}
	a.answers(err)
	seen := protocol.ClusterSeen{Cluster: a.config.Name, At: time.Now(), Error: connection.Cut(err.Error())}
	// A session that gives its connection up has had answers until then: the permissions are missing all the same.
	if _, ok := errors.AsType[*ForbiddenError](err); ok || errors.Is(err, errReconnect) {
		seen.Forbidden = a.access.Forbidden()
	}
	a.config.Report(seen)
	a.connection.SleepUntilRenewed(ctx, wait)
}

// answers logs that the cluster does not answer and why, or that it answers again.
func (a *Agent) answers(err error) {
	switch {
	case err == nil && a.silentFor != (retry.LogLimiter{}):
		a.silentFor = retry.LogLimiter{}
		a.config.Log.Info("cluster answers again", "cluster", a.config.Name)
	case err != nil && a.silentFor.Due(connection.WithoutPort(err)):
		a.config.Log.Warn("cluster lost; trying again", "cluster", a.config.Name, "err", connection.Cut(err.Error()))
	}
}

// seen returns the observation of a probe, with the permissions that are missing.
func (a *Agent) seen(p probe.Result) protocol.ClusterSeen {
	seen := p.Seen(a.config.Name)
	switch forbidden := a.access.Forbidden(); {
	case p.Err == nil:
		seen.Forbidden = forbidden
	case apierrors.IsForbidden(p.Err) && len(forbidden) > 0:
		seen.Forbidden, seen.Error = forbidden, connection.Cut((&ForbiddenError{p.Err, forbidden}).Error())
	}
	return seen
}

// publishProbe reports the result of a probe, and logs what has changed.
func (a *Agent) publishProbe(p probe.Result) {
	a.access.RecordRefusal(p.Err)
	a.config.Report(a.seen(p))
	a.answers(p.Err)
}

// errReconnect ends a session whose credentials or identity are no longer valid.
var errReconnect = errors.New("connection given up")

func reconnect(why error) error { return fmt.Errorf("%w: %w", errReconnect, why) }
