package daemon

import (
	"context"
	"log/slog"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// members creates agents that share resources.
type members struct {
	cfg         settings.Config
	credentials kubeconfig.Sources
	encoder     *member.Encoder
	metrics     *member.Metrics
	limit       chan struct{}
	arrivals    chan struct{}
	passes      chan struct{}
	memory      *memory.Pool
	repo        *gitsource.Repo
	record      func(...history.Entry)
	fence       *replica.Fence // nil if there are no other replicas
	log         *slog.Logger
}

func newMembers(cfg settings.Config, repo *gitsource.Repo, log *slog.Logger, metrics *member.Metrics) (*members, error) {
	credentials, err := cfg.Members.Credentials()
	if err != nil {
		return nil, err
	}
	m := &members{
		cfg: cfg, credentials: credentials, encoder: member.NewEncoder(cfg.FleetName, repo.Status().URL), repo: repo,
		metrics: metrics, limit: make(chan struct{}, cfg.Members.MaxRequests), arrivals: make(chan struct{}, cfg.Members.MaxRequests), log: log,
		memory: memory.New(debug.SetMemoryLimit(-1)),
		passes: make(chan struct{}, max(1, cfg.Members.MaxRequests/cfg.Members.Concurrency)), // together they reach the limit
	}
	if err := credentials.CheckDir(); err != nil { // the directory may be created later
		log.Error("members without other credentials cannot be reached", "err", err)
	}
	return m, nil
}

func (m *members) agent(c *hub.Cluster, report func(protocol.Observation)) reconciler.Member {
	cfg := m.config(c)
	if m.fence != nil {
		connect := cfg.Connect
		cfg.Connect = func(ctx context.Context) (*rest.Config, error) {
			config, err := connect(ctx)
			if err == nil {
				config.Dial = m.fence.Dial
			}
			return config, err
		}
		cfg.Wrap = m.fence.Wrap
	}
	cfg.HasCommit = func(hash string) bool { _, err := m.repo.Commit(context.Background(), hash); return err == nil }
	cfg.PodFailureTimeout = m.cfg.Rollout.PodFailureTimeout.Duration
	cfg.Report, cfg.Record, cfg.Log, cfg.Metrics, cfg.Limit, cfg.Arrivals, cfg.Passes, cfg.Memory = report, m.record, m.log, m.metrics, m.limit, m.arrivals, m.passes, m.memory
	cfg.Probe, cfg.Sweep = m.cfg.Members.ProbeInterval.Duration, m.cfg.Members.Sweep()
	cfg.DriftMode, cfg.DriftKinds = api.DriftMode(m.cfg.Drift.Mode), m.cfg.Drift.Kinds.Modes()
	cfg.Additions = api.AdditionsMode(m.cfg.Drift.Additions)
	return member.New(cfg)
}

// config returns the configuration of a connection to a member.
func (m *members) config(c *hub.Cluster) member.Config {
	return m.cfg.MemberConfig(c.Name, c.Annotations[api.ContextAnnotation], m.credentials, m.encoder)
}

// try runs a trial on a member, through a connection that cannot write.
func (m *members) try(ctx context.Context, t review.Trial) ([]member.Change, error) {
	p, _, err := member.Peek(ctx, m.config(t.Cluster))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Try(ctx, t.Works, t.Targets)
}

// read reads the objects on a member that a gate looks at, through a connection that cannot write.
func (m *members) read(ctx context.Context, t placement.GateTarget) ([]*unstructured.Unstructured, error) {
	cfg := m.cfg.MemberConfig(t.Cluster, t.Context, m.credentials, m.encoder)
	cfg.Memory = m.memory
	return member.Read(ctx, cfg, t.Objects)
}
