// Package member keeps one member cluster as it should be.
//
// An Agent is told all that its cluster should hold, and makes it so: it
// applies what is new or changed, asks nothing for what is not, watches what
// it applied, puts back what somebody moved, and removes what its inventory
// says is ours and nobody wants any more. What it saw it reports, whole.
//
// Every request to the cluster goes through the clients that transport.go makes, and
// through Config.Wrap, which is the one place where requests can be counted or refused.
package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Config is what an agent needs to know. Name, Connect, Fleet, Encoder, Report
// and Log must be set; zero values of the others mean their defaults.
type Config struct {
	Name string
	// Connect returns the credentials of the cluster. It is called every few seconds,
	// so that those that were replaced are used.
	Connect func(context.Context) (*rest.Config, error)
	// Fleet is the value of the managed-by label: two gitfleets with different
	// names leave each other's objects alone.
	Fleet   string
	Encoder *Encoder
	// HasCommit reports whether the repository has a commit: inventories of another
	// one that name no fleet are not ours. nil means that it has all.
	HasCommit func(hash string) bool
	// Report takes what was seen. It must not block for long.
	Report func(ledger.Observation)
	// Record, if set, takes what was done to objects; it must not block.
	Record func(...history.Entry)
	Log    *slog.Logger
	// Concurrency bounds the writes in flight to this cluster; default 8.
	Concurrency int
	// Limit bounds the writes in flight of all agents that share it: a buffered
	// channel, a place taken for each. nil means no common bound.
	Limit chan struct{}
	// Arrivals likewise bounds the agents that connect for the first time or look
	// what there is, which takes many goroutines. It is not to be Limit: clusters
	// that do not answer would hold up the writes of the others.
	Arrivals chan struct{}
	// Brake bounds what is deleted without a person's word.
	Brake Brake
	// Probe is the time between two probes; default 10 s.
	Probe time.Duration
	// Observe is the time between two readings of nodes and pods; default
	// 1 min.
	Observe time.Duration
	// Sweep is the time between two proofs that the watches tell everything;
	// default 6 h, negative for none.
	Sweep time.Duration
	// Timeout bounds every request but a watch; default 30 s.
	Timeout time.Duration
	// PodFailureTimeout is how long the pods of a workload may be unable to start
	// before the workload counts as failed; default 30 s.
	PodFailureTimeout time.Duration
	// DriftMode is that of objects that no other rule of api.DriftRules is for. What is not
	// reverted is left as it is until Resolve says what becomes of it. Empty is to revert.
	DriftMode api.DriftMode
	// DriftKinds are the modes of kinds; nil for none.
	DriftKinds map[api.GroupKind]api.DriftMode
	// Wrap, if set, wraps the transport of every connection.
	Wrap    func(http.RoundTripper) http.RoundTripper
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 8
	}
	if c.Brake == (Brake{}) {
		c.Brake = Brake{Percent: 30, Objects: 10}
	}
	if c.Probe == 0 {
		c.Probe = 10 * time.Second
	}
	if c.Observe == 0 {
		c.Observe = time.Minute
	}
	if c.Sweep == 0 {
		c.Sweep = 6 * time.Hour
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.PodFailureTimeout == 0 {
		c.PodFailureTimeout = 30 * time.Second
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	return c
}

// An Agent keeps one cluster. Set and Run are its whole interface.
type Agent struct {
	cfg   Config
	works chan []work.Work
	// last is what was taken from works; only Run looks at it. nil means that
	// nothing was ever asked for.
	last []work.Work
	// memberships is what SetFleet was called with, fleet what was taken from it.
	memberships chan membership
	fleet       membership
	// resolving is what Resolve was called with, resolutions what was taken from it.
	resolving   chan ledger.Resolutions
	resolutions ledger.Resolutions
	// check asks for everything to be looked at again.
	check chan struct{}
	// leave is closed when the cluster is to be left, left when that is done.
	leave, left chan struct{}
	// memory is what others changed here, flips how often they undid what we had
	// applied; only Run looks at them.
	memory memory
	flips  map[api.ID]flips
	// deletions are not reported yet. They outlive a session.
	deletions deletions
	// access records which permissions the cluster does not grant.
	access access
	// silentFor is why the cluster does not answer. While there is a session it
	// belongs to the probes.
	silentFor logLimiter
	// heldBy is the other fleet that was last found to hold the cluster.
	heldBy logLimiter
}

// New returns an agent that does nothing until it runs.
func New(cfg Config) *Agent {
	return &Agent{
		cfg: cfg.withDefaults(), works: make(chan []work.Work, 1), memberships: make(chan membership, 1), resolving: make(chan ledger.Resolutions, 1), check: make(chan struct{}, 1),
		leave: make(chan struct{}), left: make(chan struct{}), memory: memory{}, flips: map[api.ID]flips{}, deletions: deletions{},
	}
}

// Set replaces all that the cluster should hold. It never blocks; a newer Set
// overtakes an older one not yet begun. Only one goroutine may call it. Until
// the first Set nothing is touched.
func (a *Agent) Set(works []work.Work) {
	select {
	case <-a.works:
	default:
	}
	a.works <- works
}

// Check has the agent look again at all that it holds, and try at once what
// failed. It never blocks, and any goroutine may call it.
func (a *Agent) Check() {
	select {
	case a.check <- struct{}{}:
	default:
	}
}

// Leave gives up everything on the cluster: objects stay as they are and are
// nobody's, inventories go. What is returned is closed when that is done. Only
// the goroutine that calls Set may call it, once, and not Set afterwards.
func (a *Agent) Leave() <-chan struct{} {
	close(a.leave)
	return a.left
}

// Run works until ctx is done, and has stopped everything it started by then.
// Losing the cluster is not an error: it is reported, and tried again.
func (a *Agent) Run(ctx context.Context) error {
	a.cfg.Metrics.begin(a.cfg.Name)
	defer a.cfg.Metrics.forget(a.cfg.Name)
	var lost backoff
	for ctx.Err() == nil {
		s, err := a.arrive(ctx, lost)
		if err == nil {
			a.answers(nil)
			lost = 0
			err = s.run(ctx)
		}
		a.lost(ctx, err, &lost)
	}
	return nil
}

// arrive opens a session. Only so many clusters do so at once, but for one that was lost:
// it tries again seldom.
func (a *Agent) arrive(ctx context.Context, lost backoff) (*session, error) {
	if lost == 0 {
		defer takePlace(ctx, a.cfg.Arrivals)()
	}
	return a.open(ctx)
}

// lost tells that there is no connection, and waits before the next, unless ctx is done.
func (a *Agent) lost(ctx context.Context, err error, times *backoff) {
	if ctx.Err() != nil {
		return
	}
	a.answers(err)
	seen := ledger.ClusterSeen{Cluster: a.cfg.Name, At: time.Now(), Error: err.Error()}
	if _, ok := errors.AsType[*ForbiddenError](err); ok {
		seen.Forbidden = a.access.forbidden()
	}
	a.cfg.Report(seen)
	a.sleepUntilRenewed(ctx, times.next(time.Second, 30*time.Second))
}

// answers logs that the cluster does not answer, and why, or that it does again.
func (a *Agent) answers(err error) {
	switch {
	case err == nil && a.silentFor != (logLimiter{}):
		a.silentFor = logLimiter{}
		a.cfg.Log.Info("cluster answers again", "cluster", a.cfg.Name)
	case err != nil && a.silentFor.due(withoutPort(err)):
		a.cfg.Log.Warn("cluster lost; trying again", "cluster", a.cfg.Name, "err", err)
	}
}

// errReconnect ends a session whose credentials or identity no longer hold.
var errReconnect = errors.New("connection given up")

func reconnect(why error) error { return fmt.Errorf("%w: %w", errReconnect, why) }

// A backoff counts failures in a row.
type backoff int

// next returns how long to wait after one more failure: doubled each time from
// first to most, less up to a quarter of it at random so that many do not
// return at once.
func (b *backoff) next(first, most time.Duration) time.Duration {
	d := min(first<<min(int(*b), 30), most)
	if d <= 0 {
		d = most
	}
	*b++
	return d - rand.N(d/4+1)
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
