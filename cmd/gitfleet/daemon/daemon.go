// Package daemon connects the packages of the daemon and runs them. It also has the commands
// that save and restore its state.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewRun returns the command run.
func NewRun() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "run --config gitfleet.yaml",
		Short: "Run the daemon",
		Example: `  gitfleet run --config gitfleet.yaml
  gitfleet run --url https://git.example.com/fleet --kubeconfig-dir members/
  gitfleet run --config gitfleet.yaml --set limits.fileSize=8Mi`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings.Load(path, cmd.Flags())
			if err != nil {
				return err
			}
			log := cfg.Logger(cmd.ErrOrStderr())
			routeKlog(log)
			return serve(cmd.Context(), cfg, log)
		},
	}
	settings.Bind(cmd.Flags(), &path, "configuration file")
	return cmd
}

// serve connects the packages and runs them until ctx is done.
func serve(ctx context.Context, cfg settings.Config, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	metrics := newMetrics(registry)
	candidate, err := newCandidate(cfg, metrics.leader, log)
	if err != nil {
		return err
	}
	defer candidate.store.Close()
	git := cfg.GitConfig(log)
	polls := &poller{}
	trouble := notifyOnFailure(candidate.notice)
	metrics.loop.Traced = cfg.Tracing.Endpoint != ""
	git.Metrics = metrics.git.hooks(func(took time.Duration, err error) { trouble(took, err); polls.polled(took, err) })
	repo, err := gitsource.Open(git)
	if err != nil {
		return err
	}
	polls.repo = repo
	defer repo.Close()
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var proposals *proposal.Proposer
	var reviews *review.Reviewer
	srv, publish, record, err := newServer(ctx, cfg, repo, candidate.store, registry, metrics, log, pullRequests{
		wake:     func() { proposals.Wake(); reviews.Wake() },
		troubles: func() []string { return slices.Concat(proposals.Troubles(), reviews.Troubles()) },
	})
	if err != nil {
		return err
	}
	defer runHistory(record)()
	saved, err := savedFleet(ctx, candidate.store, srv, listener, log)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	fleet, err := cfg.Fleet(saved)
	if err != nil {
		return err
	}
	configured := cfg.FleetName
	cfg.FleetName = fleet.Name
	traces, err := newTracer(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer traces.Close()
	members, err := newMembers(cfg, repo, log, metrics.members)
	if err != nil {
		return err
	}
	members.record, members.fence = record.Add, candidate.fence()
	var loop *reconciler.Reconciler
	shared, err := sharedForge(cfg, candidate.mayWrite)
	if err != nil {
		return err
	}
	proposals, err = newProposer(cfg, repo, shared, candidate.mayWrite, func(all map[string]ledger.Resolutions) { loop.Resolve(all) }, record.Add, log)
	if err != nil {
		return err
	}
	reviews = newReviewer(cfg, repo, shared, configured, members.try, log)
	var preview func(context.Context, int64) (*review.Preview, error)
	if reviews != nil {
		publish, preview = fanOut(publish, reviews.Observe), reviews.Preview
	}
	servePlans(srv, candidate.objection, preview)
	config := reconciler.Config{
		Fleet: fleet, Source: repo, Loader: cfg.Loader(), Past: cfg.Loader(), Store: candidate.store, Attempts: filepath.Join(cfg.StateDir, "loading.json"), Conditions: status.Conditions(cfg.Status.Conditions),
		Member: members.agent, WorksSent: members.encoder.Rotate, Publish: publish, Record: record.Add, Log: log,
		MaxUnreachable: &cfg.Rollout.MaxUnreachable.IntOrString, AvailableTimeout: cfg.Rollout.AvailableTimeout.Duration,
		Metrics: metrics.loop, Traces: traces,
	}
	standby := reconciler.New(config)
	config.Publish = fanOut(publish, proposals.Observe)
	loop = reconciler.New(config)
	(&orders{loop, proposals, polls, candidate.objection}).mount(srv)
	serveProposals(srv, candidate.objection, proposals.Held)
	srv.Trace((&tracer{cfg, members.credentials, repo}).touched)
	srv.Contains(repo.Contains)
	log.Info("gitfleet is running", "version", version.String(), "fleet", fleet.Name, "url", repo.Status().URL, "ref", repo.Status().Ref, "listen", listener.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return candidate.run(ctx, standby, loop, func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return proposals.Run(ctx) })
			if reviews != nil {
				group.Go(func() error { return reviews.Run(ctx) })
			}
			return group.Wait()
		})
	})
	group.Go(func() error { return srv.Serve(ctx, listener) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("gitfleet has stopped")
	return nil
}

// pullRequests has the functions of the proposer and the reviewer that a server needs.
type pullRequests struct {
	wake func()
	// troubles lists what cannot be done on the forge.
	troubles func() []string
}

// newServer returns a server with access control for everything except commands, the function
// that publishes reports, and the history. Webhooks of pull requests wake the proposer and the
// reviewer.
func newServer(ctx context.Context, c settings.Config, repo *gitsource.Repo, store ledger.Archive, registry *prometheus.Registry, metrics *metrics, log *slog.Logger, pulls pullRequests) (*server.Server, func(*status.Report), *history.Record, error) {
	srv := server.New(registry)
	srv.Mount("GET /state", server.State(store.Export))
	overview.Serve(srv, func() (last, success time.Time) {
		s := repo.Status()
		return s.LastPoll, s.LastSuccess
	}, pulls.troubles)
	publish, err := serveKube(ctx, c, srv)
	if err != nil {
		return nil, nil, nil, err
	}
	if !c.AsksForge() && !c.PullRequests.Enabled() {
		pulls.wake = nil
	}
	if err := mountWebhook(c.Webhook, srv, repo, c.GitConfig(log).Ref.Follows, pulls.wake, metrics.webhooks, log); err != nil {
		return nil, nil, nil, err
	}
	return srv, publish, openHistory(c, srv, metrics.history, log), nil
}

// notifyOnFailure calls notice after each poll that fails and after the first that succeeds. A
// new commit causes a turn anyway.
func notifyOnFailure(notice func()) func(time.Duration, error) {
	failed := false
	return func(_ time.Duration, err error) {
		if err != nil || failed {
			notice()
		}
		failed = err != nil
	}
}

// members creates agents that share resources.
type members struct {
	cfg         settings.Config
	credentials kubeconfig.Sources
	encoder     *member.Encoder
	metrics     *member.Metrics
	limit       chan struct{}
	arrivals    chan struct{}
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
	}
	if err := credentials.CheckDir(); err != nil { // the directory may be created later
		log.Error("members without other credentials cannot be reached", "err", err)
	}
	return m, nil
}

func (m *members) agent(c *hub.Cluster, report func(ledger.Observation)) reconciler.Member {
	name, kubeContext := c.Name, c.Annotations[api.ContextAnnotation]
	var wrap func(http.RoundTripper) http.RoundTripper
	if m.fence != nil {
		wrap = m.fence.Wrap
	}
	return member.New(member.Config{
		Name:  name,
		Fleet: m.cfg.FleetName,
		Connect: func(ctx context.Context) (*rest.Config, error) {
			config, err := m.credentials.Config(ctx, name, kubeContext)
			if err == nil && m.fence != nil {
				config.Dial = m.fence.Dial
			}
			return config, err
		},
		HasCommit:         func(hash string) bool { _, err := m.repo.Commit(context.Background(), hash); return err == nil },
		PodFailureTimeout: m.cfg.Rollout.PodFailureTimeout.Duration,
		Brake:             m.cfg.Members.Brake(),
		Encoder:           m.encoder, Report: report, Record: m.record, Log: m.log, Metrics: m.metrics, Limit: m.limit, Arrivals: m.arrivals,
		Concurrency: m.cfg.Members.Concurrency, Timeout: m.cfg.Members.Timeout.Duration, Probe: m.cfg.Members.ProbeInterval.Duration,
		Sweep: m.cfg.Members.Sweep(), DriftMode: api.DriftMode(m.cfg.Drift.Mode), DriftKinds: m.cfg.Drift.Kinds.Modes(), Wrap: wrap,
	})
}
