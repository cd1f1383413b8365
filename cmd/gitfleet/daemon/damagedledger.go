package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// A ledgerReset moves a damaged ledger aside at the start of the daemon, if the configuration says so.
type ledgerReset struct {
	enabled bool
	resets  prometheus.Counter
	log     *slog.Logger
}

// record records that a damaged ledger was moved aside.
func (r ledgerReset) record(aside string, damage error) {
	r.resets.Inc()
	why := damage.Error()
	if found, ok := errors.AsType[*ledger.DamagedError](damage); ok {
		why = found.Damage()
	}
	r.log.Warn("damaged ledger moved aside; it is rebuilt from Git and the members", "aside", aside, "why", why)
}

// open opens the ledger in a directory.
func (r ledgerReset) open(dir string) (ledger.Archive, error) {
	if r.enabled {
		if _, damage := ledger.Inspect(dir); ledger.IsDamaged(damage) {
			aside, err := ledger.Reset(dir, false, time.Now())
			if err != nil {
				return nil, err
			}
			r.record(aside, damage)
		}
	}
	return ledger.Open(dir)
}

// shared resets the ledger of replicas if it is damaged. While a replica leads it does not: that one
// knows what the ledger had, and writes it anew.
func (r ledgerReset) shared(ctx context.Context, found *ledger.Shared, cfg replica.Config) error {
	if !r.enabled {
		return nil
	}
	_, damage := found.Contents()
	if !ledger.IsDamaged(damage) {
		return nil // what else is wrong is said by whoever reads it next
	}
	aside, err := resetShared(ctx, cfg, false)
	switch {
	case errors.Is(err, ledger.ErrNotDamaged):
		return nil // another replica has done it meanwhile
	case err != nil:
		return errors.Join(damage, err)
	}
	r.record(aside, damage)
	return nil
}

// resetShared resets the ledger of replicas of which none leads.
func resetShared(ctx context.Context, cfg replica.Config, force bool) (aside string, err error) {
	if err := checkNobodyLeads(ctx, cfg); err != nil {
		return "", err
	}
	secrets, err := replica.Unfenced(cfg)
	if err != nil {
		return "", err
	}
	aside, err = ledger.OpenShared(secrets, cfg.Identity, nil).Reset(force, time.Now())
	return secrets.SecretName(aside), err
}

// leaseWatch is how long a Lease is watched that does not seem to be renewed.
const leaseWatch = 3 * time.Second

// checkNobodyLeads returns an error if a replica holds the Lease, which it names, or if that cannot be found out.
func checkNobodyLeads(ctx context.Context, cfg replica.Config) error {
	found, err := replica.Inspector{Config: cfg, Now: time.Now, Watch: leaseWatch}.Inspect(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("find out whether a replica leads: %w", err)
	case len(found.Missing) > 0:
		return fmt.Errorf("permissions are missing in the namespace %s: %s", cfg.Namespace, strings.Join(found.Missing, "; "))
	case found.Renewed:
		return fmt.Errorf("%s leads, or did so until a few seconds ago: a leader repairs the ledger within a minute; otherwise stop all replicas and try again", found.Holder)
	}
	return nil
}
