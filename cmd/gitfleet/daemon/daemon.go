// Package daemon connects the packages of the daemon and runs them. It also has the commands
// that save and restore its state.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
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
			klog.SetLoggerWithOptions(logr.FromSlogHandler(klogHandler{log.Handler()}), klog.ContextualLogger(true))
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
	git.Hooks = metrics.git.hooks(func(took time.Duration, err error) { trouble(took, err); polls.polled(took, err) })
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
	var traces *tracing.Tracer
	if cfg.Tracing.Endpoint != "" {
		if traces, err = tracing.New(ctx, cfg.Tracing.Endpoint, cfg.FleetName, version.String(), log); err != nil {
			return err
		}
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
	proposals, err = newProposer(cfg, repo, shared, candidate.mayWrite, func(all map[string]ledger.DriftDecisions) { loop.SetDriftDecisions(all) }, record.Add, log)
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
		Member: members.agent, Publish: publish, Record: record.Add, Log: log,
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

// fanOut returns a function that calls two functions with each report.
func fanOut(one, other func(*status.Report)) func(*status.Report) {
	return func(r *status.Report) {
		one(r)
		other(r)
	}
}
