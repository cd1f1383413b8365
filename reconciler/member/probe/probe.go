// Package probe checks whether an API server is ready, and reads the identity and the size of
// its cluster.
package probe

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// Config configures a Prober. All fields must be set except UID, Version and Pace.
type Config struct {
	Cluster string
	// Interval is the time between two probes, and Observe the time between two observations of
	// nodes and pods.
	Interval, Observe time.Duration
	// Pace makes both longer in a large fleet; nil does not.
	Pace *Pace
	// Seconds is how long the last probe took, by cluster.
	Seconds *series.Vec
	Log     *slog.Logger
	// Publish is called with each result, unless the result is of another cluster than before.
	Publish func(Result)
	// UID is the UID of the cluster that was connected before, and Version the highest resource
	// version that was known of it; zero if none are known.
	UID     string
	Version uint64
}

// A Prober probes a cluster: slowly while it answers, and quickly while it does not, so that
// its return is noticed soon. Between two probes it has no running goroutine.
type Prober struct {
	cfg  Config
	conn *connection.Conn
	// Results has the newest result that was not received yet.
	Results chan *Result

	uid              string // the UID of the cluster when it was last observed
	version          uint64 // the highest resource version of that cluster; zero if none is known
	restoreSuspected atomic.Bool
	outdated         bool // the last result says that replaced credentials are not used
	failed           retry.Backoff
	partly           retry.LogLimiter // limits the log lines about incomplete observations
	next             time.Time        // time of the next probe; credentials are checked more often
	soonest          time.Time        // time of the next probe if the cluster may have been restored
	observeAt        time.Time        // from then on, a probe observes the cluster too
	demand           demand
	// unread reports whether a namespace was created since the namespaces were last read.
	unread bool

	mu      sync.Mutex
	timer   *time.Timer // runs the next probe
	runAt   time.Time   // when the timer does
	probing bool        // a probe is running
	over    bool        // no probe may begin any more
	created bool        // a namespace was created since the last probe began
	running sync.WaitGroup
}

// New returns a prober of a cluster that was just observed. The first probe and the first
// observation come at random times within their intervals, so that thousands of clusters are not
// probed all at once.
func New(conn *connection.Conn, cfg Config) *Prober {
	return &Prober{cfg: cfg, conn: conn, Results: make(chan *Result, 1), uid: cfg.UID, version: cfg.Version, observeAt: time.Now().Add(rand.N(cfg.Observe))}
}

// Start starts the probes, until ctx is done or Stop is called. uid is the UID of the cluster;
// empty if it is not known.
func (pr *Prober) Start(ctx context.Context, uid string) {
	pr.cfg.Pace.add(1)
	first := rand.N(pr.interval())
	pr.uid, pr.next = cmp.Or(uid, pr.uid), time.Now().Add(first)
	pr.mu.Lock()
	defer pr.mu.Unlock()
	after := min(first, pr.cfg.Pace.credentials())
	pr.runAt, pr.timer = time.Now().Add(after), time.AfterFunc(after, func() { pr.run(ctx) })
}

// schedule sets the timer of the next probe.
func (pr *Prober) schedule(after time.Duration) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.probing = false
	if pr.restoreSuspected.Load() {
		after = min(after, connection.CredentialsPoll)
	}
	if pr.created {
		after = min(after, createdDelay)
	}
	if !pr.over {
		pr.setTimer(after)
	}
}

// setTimer sets the time to the next run. The caller holds the lock.
func (pr *Prober) setTimer(after time.Duration) {
	pr.runAt = time.Now().Add(after)
	pr.timer.Reset(after)
}

// createdDelay is the time between the creation of a namespace and the probe that reads the namespaces, since others may follow.
const createdDelay = time.Second

// NamespaceCreated has a probe read the namespaces of the cluster soon. It may be called by any goroutine.
func (pr *Prober) NamespaceCreated() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.created = true
	if pr.scheduled() {
		pr.setTimer(createdDelay)
	}
}

// SuspectRestore makes the next probe come soon and compare the resource version of the cluster, since something has happened
// that a restore would cause too. The time is random, since a proxy may interrupt the watches of all clusters at once. It may be
// called by any goroutine.
func (pr *Prober) SuspectRestore() {
	if !pr.restoreSuspected.Swap(true) {
		pr.mu.Lock()
		defer pr.mu.Unlock()
		if after := rand.N(connection.CredentialsPoll); pr.scheduled() && after < time.Until(pr.runAt) {
			pr.setTimer(after)
		}
	}
}

// scheduled reports whether the timer runs: not while a run is in progress, after which schedule is called. The caller holds the lock.
func (pr *Prober) scheduled() bool { return pr.timer != nil && !pr.over && !pr.probing }

// takeCreated reports whether a namespace was created since the last probe began, and forgets it.
func (pr *Prober) takeCreated() (created bool) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	created, pr.created = pr.created, false
	return created
}

// Stop returns when no probe can begin any more.
func (pr *Prober) Stop() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.timer != nil && !pr.over {
		pr.timer.Stop()
		pr.cfg.Pace.add(-1)
	}
	pr.over = true
}

// Wait waits until a running probe has ended. The context of Start must be done.
func (pr *Prober) Wait() { pr.running.Wait() }

// run probes, publishes the result, and puts it into Results in place of one that was not
// received: the receiver may be waiting for this server.
func (pr *Prober) run(ctx context.Context) {
	pr.mu.Lock()
	if pr.over || pr.probing {
		pr.mu.Unlock()
		return
	}
	pr.running.Add(1)
	pr.probing = true
	created := pr.created
	pr.mu.Unlock()
	defer pr.running.Done()
	r := pr.conn.Renew(ctx, pr.uid)
	next := pr.next
	if pr.restoreSuspected.Load() {
		next = pr.soonest
	}
	if len(r.Replaced) == 0 && r.Another == nil && pr.outdated == (r.Unrenewed != "") && !created && time.Now().Before(next) {
		pr.schedule(min(pr.cfg.Pace.credentials(), time.Until(next)))
		return
	}
	p := pr.Probe(ctx, !time.Now().Before(pr.observeAt))
	p.Rotation, pr.outdated = r, r.Unrenewed != ""
	if ctx.Err() != nil {
		for _, c := range r.Replaced {
			c.Close()
		}
		return
	}
	same := r.Another == nil && p.UID == "" || pr.uid == "" || p.UID == pr.uid
	if same {
		pr.cfg.Publish(p)
	}
	select {
	case old := <-pr.Results:
		p.addUnreceived(old)
	default:
	}
	pr.Results <- &p
	if same {
		wait := pr.pace(p)
		pr.next, pr.soonest = time.Now().Add(wait), time.Now().Add(min(wait, pr.cfg.Interval))
		pr.schedule(min(wait, pr.cfg.Pace.credentials()))
	} // otherwise the session ends
}

// pace returns the time until the next probe after one with the result p.
func (pr *Prober) pace(p Result) time.Duration {
	switch {
	case p.observed && p.unread != "":
		pr.observeAt = p.At.Add(pr.cfg.Observe)
	case p.observed:
		pr.observeAt = p.At.Add(pr.observeInterval())
	}
	if p.UID != "" {
		pr.uid = p.UID
	}
	if p.Err != nil {
		return min(pr.cfg.Interval, pr.failed.Next(500*time.Millisecond, pr.cfg.Interval))
	}
	pr.failed = 0
	return pr.interval()
}

// interval returns the time between two probes of a cluster that answers.
func (pr *Prober) interval() time.Duration { return max(pr.cfg.Interval, pr.cfg.Pace.interval()) }

// observedWithin limits the duration of a probe with an observation.
const observedWithin = 10 * time.Second

// Probe checks whether the API server is ready. If observe is set, it also reads the identity
// and the size of the cluster, and otherwise the namespaces if one was created.
func (pr *Prober) Probe(ctx context.Context, observe bool) Result {
	ctx, cancel := context.WithTimeout(ctx, min(pr.conn.Timeout(), observedWithin))
	defer cancel()
	pr.unread = pr.takeCreated() || pr.unread
	p := Result{At: time.Now()}
	p.Err = pr.conn.Ready(ctx)
	pr.cfg.Seconds.Set(time.Since(p.At).Seconds(), pr.cfg.Cluster)
	if p.Err != nil {
		pr.restoreSuspected.Store(true)
		p.Unauthorized = apierrors.IsUnauthorized(p.Err)
		p.Err = connection.Plain(p.Err)
		return p
	}
	if observe {
		p.observed = true
		o, err := pr.observe(ctx)
		if err != nil {
			p.unread = connection.Cut(strings.ReplaceAll(connection.WithoutPort(connection.Plain(err)), "\n", "; "))
			if pr.partly.Due(p.unread) {
				pr.cfg.Log.Warn("cluster not observed in full", "cluster", pr.cfg.Cluster, "err", p.unread)
			}
		}
		p.UID, p.Version, p.properties, p.Namespaces = o.uid, o.version, o.properties, slices.Sorted(maps.Keys(o.namespaces))
	} else if o := (observation{}); pr.unread && pr.observeNamespaces(ctx, &o) == nil {
		p.UID, p.Version, p.Namespaces = o.uid, o.version, slices.Sorted(maps.Keys(o.namespaces))
	}
	if p.Namespaces != nil {
		pr.unread = false // otherwise the next probe tries again
	}
	if p.RestoreSuspected = pr.restoreSuspected.Swap(false); p.RestoreSuspected && p.Version == 0 {
		p.Version, _ = pr.currentVersion(ctx) // an error is tried again with the next observation
	}
	pr.compareVersions(ctx, &p)
	return p
}
