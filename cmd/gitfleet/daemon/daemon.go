// Package daemon connects the packages of the daemon and runs them. It also has the commands
// that save and restore its state.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/approval"
	"github.com/gitfleet/gitfleet/reconciler/command"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/gate"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/history/recent"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
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
			tail := &logTail{}
			log := cfg.Logger(io.MultiWriter(tail, cmd.ErrOrStderr()))
			if err == nil {
				logLibraries(log)
				err = serve(cmd.Context(), cfg, log, tail)
			}
			if err != nil && cfg.LogsJSON() {
				log.Error("the daemon has ended", "err", err)
				return exit.Failed
			}
			return err
		},
	}
	settings.Bind(cmd.Flags(), &path, "configuration file")
	return cmd
}

// A daemon has the parts of the process, which refer to each other through it. All are set before
// the loop runs and the server answers requests other than whether it is starting.
type daemon struct {
	cfg       settings.Config
	log       *slog.Logger
	metrics   *metrics
	candidate *candidate
	repo      *gitsource.Repo
	remotes   settings.Remotes
	polls     *poller
	srv       *server.Server
	// publish publishes a report on the server.
	publish   func(*status.Report)
	record    *history.Record
	members   *members
	proposals *proposal.Proposer
	reviews   *review.Reviewer   // nil if pull requests are not reviewed
	commands  *command.Commander // nil if no forge is used
	approvals *approval.Approver // nil if no forge is used
	gates     *gate.Asker
	// loop runs while this replica leads.
	loop *reconciler.Reconciler
}

// serve connects the packages and runs them until ctx is done. tail has the newest lines of the log.
func serve(ctx context.Context, cfg settings.Config, log *slog.Logger, tail *logTail) (err error) {
	memory := limitMemory(ctx, memlimit.FromCgroup, log)
	registry := server.NewRegistry()
	d := &daemon{cfg: cfg, log: log}
	d.metrics = newMetrics(registry, func() bool { return d.candidate.leadsForCertain() })
	d.metrics.loop.Traced = cfg.Tracing.Endpoint != ""
	if d.candidate, err = newCandidate(cfg, d.metrics, log); err != nil {
		return err
	}
	defer d.candidate.store.Close()
	if err := d.openRepository(); err != nil {
		return err
	}
	defer d.repo.Close()
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	pulls := pullRequests{approve: d.approve, wake: d.wakePullRequests, problems: d.pullRequestProblems}
	d.srv, d.publish, d.record, err = serverSetup{cfg, d.repo, d.candidate.store, registry, d.metrics, pulls, log}.open(ctx)
	if err != nil {
		return err
	}
	d.srv.Mount("GET /debug/log", tail)
	defer runHistory(d.record)()
	d.srv.SetLeader(d.candidate.checkLeader, d.candidate.leadsForCertain)
	assumed, _ := cfg.Fleet(protocol.Fleet{}) // until the ledger, which may have another name, is read
	d.srv.SetFleet(assumed.Name, assumed.Source)
	saved, err := savedFleet(ctx, d.candidate.fleet, d.srv, listener, log)
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
	configuredName := cfg.FleetName // empty if derived: commit statuses then have no fleet in their names
	d.cfg.FleetName = fleet.Name
	d.srv.SetFleet(fleet.Name, fleet.Source)
	var traces *tracing.Tracer
	if cfg.Tracing.Endpoint != "" {
		if traces, err = tracing.New(ctx, cfg.Tracing.Endpoint, fleet.Name, version.String(), log); err != nil {
			return err
		}
	}
	defer traces.Close()
	if d.members, err = newMembers(d.cfg, d.repo, log, d.metrics.members); err != nil {
		return err
	}
	d.members.record = d.recordEntries
	if fence := d.candidate.fence(); fence != nil {
		d.members.fence, d.members.credentials.Dial = fence, fence.Dial
	}
	if err := d.connectForge(configuredName); err != nil {
		return err
	}
	d.buildLoop(fleet, traces)
	d.mount()
	git := d.repo.Status()
	log.Info("gitfleet is running", "version", version.String(), "fleet", fleet.Name, "url", git.URL, "ref", git.Ref, "listen", listener.Addr().String(), "memoryLimit", memory)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.candidate.run(ctx, d.loop.Run, d.runLeaderTasks) })
	group.Go(func() error { return d.srv.Serve(ctx, listener) })
	group.Go(func() error { return runThrottles(ctx, d.members.limit, d.members.arrivals) })
	group.Go(func() error { return newMemoryKeeper().run(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("gitfleet has stopped")
	return nil
}

// openRepository opens the local store of the repository. Each poll completes the requests of gitfleet
// sync that wait for it.
func (d *daemon) openRepository() (err error) {
	git := d.cfg.GitConfig(d.log)
	guard := func(file string) *crashguard.Guard {
		return crashguard.New(filepath.Join(d.cfg.StateDir, file), d.log)
	}
	d.polls = &poller{guard: guard("fetching.json"), bases: guard("fetching-bases.json")}
	notify := notifyOnFailure(func() { d.loop.ReportSource() })
	git.Hooks = d.metrics.git.hooks(func(took time.Duration, err error) {
		notify(took, err)
		d.polls.polled(took, err)
	})
	git.Hooks.Fetching = d.polls.fetching
	d.remotes = d.cfg.Remotes(d.log, d.polls.fetchingBase)
	d.repo, err = gitsource.Open(git)
	d.polls.repo = d.repo
	return err
}

// connectForge creates the proposer and the reviewer. statusFleet is the fleet in the names of commit
// statuses; empty if the configuration names none.
func (d *daemon) connectForge(statusFleet string) error {
	shared, err := sharedForge(d.cfg, d.candidate.mayWrite)
	if err != nil {
		return err
	}
	decided := func(all map[string]protocol.DriftDecisions) { d.loop.SetDriftDecisions(all) }
	if d.proposals, err = newProposer(d.cfg, d.repo, d.remotes, shared, d.candidate.mayWrite, decided, d.recordEntries, func() { d.reviews.Wake() }, d.log); err != nil {
		return err
	}
	d.reviews = newReviewer(d.cfg, d.repo, d.remotes, shared, statusFleet, d.members.try, d.log)
	d.approvals = newApprover(d.cfg, d.repo, d.remotes, shared, d.decide, d.log)
	d.commands = newCommander(d.cfg, shared, d.proposals, d.reviews, d.approvals, d.recordEntries, d.log)
	return nil
}

// buildLoop creates the loop. Its reports go to the server, the proposer and the reviewer.
func (d *daemon) buildLoop(fleet protocol.Fleet, traces *tracing.Tracer) {
	publish := fanOut(fanOut(d.publish, d.proposals.Observe), d.approvals.Observe)
	if d.reviews != nil {
		publish = fanOut(publish, d.reviews.Observe)
	}
	gates := d.cfg.GateConfig()
	gates.Log, gates.Read, gates.RunJob = d.log, d.members.read, d.members.runJob
	d.gates = gate.New(gates)
	cfg := reconciler.Config{
		Fleet: fleet, Source: d.repo, Loader: d.cfg.Loader(d.remotes, d.log), Past: d.cfg.Loader(d.remotes, d.log), FetchBase: d.remotes.Bases.Fetch,
		FetchChart: d.remotes.FetchChart, Since: d.repo.Since, Store: d.candidate.store,
		LoadingFile: filepath.Join(d.cfg.StateDir, "loading.json"), Conditions: status.Conditions(d.cfg.Status.Conditions),
		Member: d.members.agent, Publish: publish, Record: d.recordEntries, Log: d.log,
		MaxUnreachable: &d.cfg.Rollout.MaxUnreachable.IntOrString, AvailableTimeout: d.cfg.Rollout.AvailableTimeout.Duration,
		RepairAfter: d.cfg.Rollout.RepairAfter.Duration, ApprovalsInGit: d.cfg.Rollout.InGit(),
		Metrics: d.metrics.loop, Traces: traces, AskGates: d.gates.Set,
	}
	if d.cfg.Source.Signatures.Requirements() != nil {
		cfg.LastChanges = d.repo.LastChanges
	}
	d.loop = reconciler.New(cfg)
}

// mount makes the server answer what depends on the loop, the proposer and the reviewer.
func (d *daemon) mount() {
	(&orders{d.loop, d.proposals, d.polls}).mount(d.srv)
	serveProposals(d.srv, d.proposals.Held)
	var preview func(context.Context, int64) (*review.Preview, error)
	if d.reviews != nil {
		preview = d.reviews.Preview
	}
	servePlans(d.srv, preview)
	d.srv.MountTrace((&tracer{d.cfg, d.members.credentials, d.repo}).touched)
	d.srv.MountContains(func(ctx context.Context, head, commit string) (bool, error) {
		yes, err := d.repo.Contains(ctx, head, commit)
		if errors.Is(err, gitsource.ErrUnknownCommit) {
			err = fmt.Errorf("%w: %w", server.ErrUnknownCommit, err)
		}
		return yes, err
	})
}

// recordEntries adds entries to the history of this replica, and to that which the replicas share.
func (d *daemon) recordEntries(entries ...history.Entry) {
	if d.candidate.recent != nil { // both have the same times
		now := time.Now()
		entries = slices.Clone(entries)
		for i := range entries {
			if entries[i].Time.IsZero() {
				entries[i].Time = now
			}
		}
		d.candidate.recent.Add(entries...)
	}
	d.record.Add(entries...)
}

// restoreHistory adds what other replicas have recorded to the history of this one.
func (d *daemon) restoreHistory(ctx context.Context, entries []history.Entry) {
	missing, err := recent.Missing(ctx, entries, d.record)
	if err != nil {
		d.log.Warn("the history of other replicas is not taken over", "err", err)
		return
	}
	if err := d.record.Restore(ctx, missing); err != nil {
		d.log.Warn("the history of other replicas is not taken over as a whole", "err", err)
	}
}

// runLeaderTasks runs what only the leader does beside the loop: on the forge, and for the history.
func (d *daemon) runLeaderTasks(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if d.candidate.recent != nil {
		group.Go(func() error {
			return d.candidate.recent.Run(ctx, func(entries []history.Entry) { d.restoreHistory(ctx, entries) })
		})
	}
	group.Go(func() error { return d.proposals.Run(ctx) })
	group.Go(func() error { return d.gates.Run(ctx) })
	if d.reviews != nil {
		group.Go(func() error { return d.reviews.Run(ctx) })
	}
	if d.commands != nil {
		group.Go(func() error { return d.commands.Run(ctx) })
		group.Go(func() error { return d.approvals.Run(ctx) })
	}
	return group.Wait()
}

// wakePullRequests makes the proposer, the reviewer and the commander ask the forge soon.
func (d *daemon) wakePullRequests() {
	d.proposals.Wake()
	d.reviews.Wake()
	d.commands.Wake()
	d.approvals.Wake()
}

// pullRequestProblems lists what cannot be done on the forge.
func (d *daemon) pullRequestProblems() []string {
	return slices.Concat(d.proposals.Problems(), d.reviews.Problems(), d.approvals.Problems())
}

// notifyOnFailure calls notify after each poll that fails and after the first that succeeds. A
// new commit causes a turn anyway.
func notifyOnFailure(notify func()) func(time.Duration, error) {
	failed := false
	return func(_ time.Duration, err error) {
		if err != nil || failed {
			notify()
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
