package daemon

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// members creates agents that share resources.
type members struct {
	cfg         settings.Config
	credentials kubeconfig.Sources
	encoder     *apply.Encoder
	metrics     *member.Metrics
	limit       chan struct{}
	arrivals    chan struct{}
	passes      chan struct{}
	memory      *memory.Pool
	pace        *probe.Pace
	repo        *gitsource.Repo
	record      func(...history.Entry)
	fence       *replica.Fence // nil if there are no other replicas
	log         *slog.Logger
	// running are the agents that run, by the name of their cluster.
	running sync.Map
}

// A runningAgent is an agent that others find while it runs.
type runningAgent struct {
	*member.Agent
	cluster string
	all     *sync.Map
}

// Run implements reconciler.Member.
func (a *runningAgent) Run(ctx context.Context) {
	a.all.Store(a.cluster, a.Agent)
	defer a.all.CompareAndDelete(a.cluster, a.Agent)
	a.Agent.Run(ctx)
}

func newMembers(cfg settings.Config, repo *gitsource.Repo, log *slog.Logger, metrics *member.Metrics) (*members, error) {
	credentials, err := cfg.Members.Credentials()
	if err != nil {
		return nil, err
	}
	m := &members{
		cfg: cfg, credentials: credentials, encoder: apply.NewEncoder(cfg.FleetName, repo.Status().URL), repo: repo,
		metrics: metrics, limit: make(chan struct{}, cfg.Members.MaxRequests), arrivals: make(chan struct{}, cfg.Members.MaxRequests), log: log,
		memory: memory.New(debug.SetMemoryLimit(-1)), pace: &probe.Pace{},
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
		cfg.Wrap = m.fence.Wrap
	}
	cfg.HasCommit = func(hash string) bool { _, err := m.repo.Commit(context.Background(), hash); return err == nil }
	cfg.PodFailureTimeout = m.cfg.Rollout.PodFailureTimeout.Duration
	cfg.Report, cfg.Record, cfg.Log, cfg.Metrics, cfg.Limit, cfg.Arrivals, cfg.Passes, cfg.Memory = report, m.record, m.log, m.metrics, m.limit, m.arrivals, m.passes, m.memory
	cfg.Probe, cfg.Pace, cfg.Sweep = m.cfg.Members.ProbeInterval.Duration, m.pace, m.cfg.Members.Sweep()
	cfg.DriftMode, cfg.DriftKinds = api.DriftMode(m.cfg.Drift.Mode), m.cfg.Drift.Kinds.Modes()
	cfg.Additions = api.AdditionsMode(m.cfg.Drift.Additions)
	return &runningAgent{member.New(cfg), c.Name, &m.running}
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

// runJob runs the Job of a gate through the agent of a member.
func (m *members) runJob(ctx context.Context, cluster string, job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	agent, found := m.running.Load(cluster)
	if !found {
		return nil, errors.New("it is not connected")
	}
	return agent.(*member.Agent).Jobs.Run(ctx, job)
}
