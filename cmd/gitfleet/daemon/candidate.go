package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/history/recent"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// A candidate is a daemon that is the leader, or a standby until it is. Without other replicas
// it is always the leader.
type candidate struct {
	replica *replica.Replica // nil if there are no other replicas
	shared  *ledger.Shared   // nil if there are no other replicas
	store   ledger.Archive
	recent  *recent.Store // nil if there are no other replicas
	reset   ledgerReset
	config  replica.Config
	// active is the running loop of the leader or the standby.
	active atomic.Pointer[reconciler.Reconciler]
	leads  atomic.Bool
}

// newCandidate opens the ledger: in the state directory, or beside the lease.
func newCandidate(c settings.Config, m *metrics, log *slog.Logger) (*candidate, error) {
	reset := ledgerReset{c.ResetDamagedState, m.ledgerResets, log}
	if c.HighAvailability.Lease.Name == "" {
		store, err := reset.open(filepath.Join(c.StateDir, "ledger"))
		return &candidate{store: store}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	cfg := c.ReplicaConfig(host+"_"+uuid.NewString()[:8], log)
	r, err := replica.New(cfg)
	if err != nil {
		return nil, err
	}
	secrets, err := r.Secrets()
	if err != nil {
		return nil, err
	}
	shared := ledger.OpenShared(secrets, cfg.Identity, r.Depose)
	return &candidate{replica: r, shared: shared, store: shared, recent: recent.Open(secrets, log), reset: reset, config: cfg}, nil
}

// fleet returns the fleet in the ledger.
func (c *candidate) fleet(ctx context.Context) (ledger.Fleet, error) {
	if c.shared != nil {
		if err := c.reset.shared(ctx, c.shared, c.config); err != nil {
			return ledger.Fleet{}, err
		}
	}
	return c.store.Fleet()
}

// run runs lead once this replica leads, and standby until then.
func (c *candidate) run(ctx context.Context, standby *reconciler.Reconciler, loop *reconciler.Reconciler, leaderTasks func(context.Context) error) error {
	lead := func(ctx context.Context) error {
		c.active.Store(loop)
		c.leads.Store(true)
		defer c.leads.Store(false)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return loop.Run(ctx) })
		group.Go(func() error { return leaderTasks(ctx) })
		return group.Wait()
	}
	if c.replica == nil {
		return lead(ctx)
	}
	c.active.Store(standby)
	standing, standDown := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := standby.Follow(standing, c)
		stopped <- err
		return err
	})
	group.Go(func() error {
		defer standDown()
		return c.replica.Run(ctx, func(ctx context.Context) error {
			standDown()
			if err := <-stopped; err != nil {
				return err
			}
			return lead(ctx)
		})
	})
	return group.Wait()
}

// Newer implements reconciler.Leadership.
func (c *candidate) Newer(known string) (*ledger.Ledger, string, error) { return c.shared.Newer(known) }

// Leader implements reconciler.Leadership.
func (c *candidate) Leader() string { return c.replica.Leader() }

// notice makes the running loop report the state of the source.
func (c *candidate) notice() {
	if loop := c.active.Load(); loop != nil {
		loop.Notice()
	}
}

// checkLeader returns an error that names the leader, unless this replica leads.
func (c *candidate) checkLeader() error {
	switch {
	case c.leads.Load():
		return nil
	case c.replica == nil:
		return errors.New("the daemon is starting; ask again")
	case c.Leader() == "":
		return errors.New("this replica stands by, and none leads yet; ask again")
	}
	return fmt.Errorf("this replica stands by: %s leads; ask that one", c.Leader())
}

// fence returns the fence for requests to member clusters; nil if there are no other replicas.
func (c *candidate) fence() *replica.Fence {
	if c.replica == nil {
		return nil
	}
	return c.replica.Fence()
}

// leadsForCertain reports whether this replica leads and no other one may. A replica that has lost its
// lease may take a while until everything that it has started has stopped.
func (c *candidate) leadsForCertain() bool { return c.leads.Load() && c.mayWrite() == nil }

// mayWrite returns an error if another replica may lead.
func (c *candidate) mayWrite() error {
	if c.replica != nil && !c.replica.Fence().Held() {
		return replica.ErrFenced
	}
	return nil
}
