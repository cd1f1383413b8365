package member

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
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
	// DeletionLimit limits the deletions without a user's consent.
	DeletionLimit DeletionLimit
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
	c.DeletionLimit = cmp.Or(c.DeletionLimit, DeletionLimit{Percent: 30, Objects: 10})
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

// readOnly returns a configuration with which nothing can be written.
func (c Config) readOnly() Config {
	wrap := c.Wrap
	c.Wrap = func(rt http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			rt = wrap(rt)
		}
		return connection.ReadOnly(rt)
	}
	return c
}

// A DeletionLimit limits how much is deleted at once without a user's consent. Deletions are blocked if
// they are more than Objects, and also more than Percent of all objects of the fleet on the
// cluster. Independently of their number, those that a work blocks are blocked, and those of
// namespaces, CustomResourceDefinitions and volume claims with content.
type DeletionLimit struct{ Percent, Objects int }

// TooMuch returns why so many of a total of objects may not be deleted at once; empty if they may.
func (l DeletionLimit) TooMuch(deleted, total int) string {
	if deleted <= l.Objects || deleted*100 <= total*l.Percent {
		return ""
	}
	return fmt.Sprintf("deleting %d of the %d objects that gitfleet has on this cluster is more than %d %%", deleted, total, l.Percent)
}
