package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/history/recent"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// A candidate is a daemon that is the leader, or a standby until it is. A standby waits for the lease, and does nothing
// else. Without other replicas a daemon is always the leader.
type candidate struct {
	replica *replica.Replica // nil if there are no other replicas
	shared  *ledger.Shared   // nil if there are no other replicas
	store   ledger.Archive
	recent  *recent.Store // nil if there are no other replicas
	reset   ledgerReset
	config  replica.Config
	leads   atomic.Bool
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
func (c *candidate) fleet(ctx context.Context) (protocol.Fleet, error) {
	if c.shared != nil {
		if err := c.reset.shared(ctx, c.shared, c.config); err != nil {
			return protocol.Fleet{}, err
		}
	}
	return c.store.Fleet()
}

// run runs the loop and the other tasks of the leader while this replica leads.
func (c *candidate) run(ctx context.Context, loop, leaderTasks func(context.Context) error) error {
	lead := func(ctx context.Context) error {
		c.leads.Store(true)
		defer c.leads.Store(false)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return loop(ctx) })
		group.Go(func() error { return leaderTasks(ctx) })
		return group.Wait()
	}
	if c.replica == nil {
		return lead(ctx)
	}
	return c.replica.Run(ctx, lead)
}

// checkLeader returns an error that says who leads, since when and where, unless this replica leads.
func (c *candidate) checkLeader() error {
	if c.replica == nil || c.leads.Load() {
		return nil
	}
	leader := c.replica.Leader()
	if leader.Identity == "" {
		return errors.New("this replica stands by, and none leads yet; ask again")
	}
	text := fmt.Sprintf("this replica stands by: %s leads", leader.Identity)
	if !leader.Since.IsZero() {
		text += " since " + leader.Since.UTC().Format(time.RFC3339)
	}
	if leader.Address == "" {
		return errors.New(text + "; ask that one")
	}
	return fmt.Errorf("%s; ask that one at %s", text, leader.Address)
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
