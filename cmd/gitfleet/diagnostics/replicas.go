package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// leaseWatch is how long doctor watches a Lease that does not seem to be renewed. A leader
// renews it every second.
const leaseWatch = 3 * time.Second

// checkReplicas checks the Lease of several replicas, and the ledger that they share.
func checkReplicas(ctx context.Context, c settings.Config, watch time.Duration) []check {
	lease := c.HighAvailability.Lease
	if lease.Name == "" {
		return nil
	}
	clock, subject := &clock{}, lease.Namespace+"/"+lease.Name
	now := func() time.Time {
		skew, _ := clock.skew()
		return time.Now().Add(skew)
	}
	found, err := replica.Inspector{Config: c.ReplicaConfig("doctor", slog.New(slog.DiscardHandler)), Wrap: clock.wrap, Now: now, Watch: watch}.Inspect(ctx)
	switch {
	case err != nil:
		return []check{{"lease", subject, checkFail, err.Error(), "check highAvailability and the network; replicas cannot lead without the Lease"}}
	case len(found.Missing) > 0:
		return []check{{"lease", subject, checkFail, "permissions are missing: " + strings.Join(found.Missing, "; "), "grant them in the namespace " + lease.Namespace + "; deploy/high-availability/access.yaml has the Role"}}
	}
	all := []check{leaseCheck(subject, found)}
	if skew, known := clock.skew(); known && skew.Abs() > tolerableSkew {
		all = append(all, check{"lease", subject, checkWarn, fmt.Sprintf("the clock of the management cluster differs by %s from this machine's", skew.Round(time.Second)), synchronizeClocks})
	}
	return append(all, checkSharedLedger(c, subject))
}

// leaseCheck returns the check that says who leads.
func leaseCheck(subject string, found replica.Inspection) check {
	age := found.Age.Round(time.Second)
	switch {
	case !found.Exists:
		return check{"lease", subject, checkOK, "does not exist yet; the first replica creates it", ""}
	case found.Holder == "":
		return check{"lease", subject, checkWarn, "nobody holds it: no replica leads", "start a replica; its log says why it does not lead"}
	case !found.Renewed:
		return check{"lease", subject, checkWarn, fmt.Sprintf("%s holds it and does not renew it (last %s ago): no replica leads", found.Holder, max(age, 0)), "start a replica; its log says why it does not lead"}
	case found.Age.Abs() > tolerableSkew:
		return check{"lease", subject, checkWarn, fmt.Sprintf("%s leads; its clock differs by %s from the management cluster's", found.Holder, -age), synchronizeClocks}
	}
	return check{"lease", subject, checkOK, found.Holder + " leads, all permissions granted", ""}
}

// checkSharedLedger reads the ledger in the Secrets.
func checkSharedLedger(c settings.Config, subject string) check {
	secrets, err := replica.Unfenced(c.ReplicaConfig("doctor", slog.New(slog.DiscardHandler)))
	if err != nil {
		return check{"ledger", subject, checkFail, err.Error(), "check highAvailability"}
	}
	found, err := ledger.OpenShared(secrets, "doctor", nil).Contents()
	damaged, isDamaged := errors.AsType[*ledger.DamagedError](err)
	_, otherSchema := errors.AsType[*ledger.SchemaError](err)
	switch {
	case isDamaged:
		return check{"ledger", subject, checkFail, damaged.Damage(), ledger.Remedy}
	case otherSchema:
		return check{"ledger", subject, checkFail, err.Error(), "run the version that wrote it; the ledger is not damaged"}
	case err != nil:
		return check{"ledger", subject, checkFail, err.Error(), "run doctor again; if the error persists, see the log of the leader"}
	case found.Objects == 0:
		return check{"ledger", subject, checkOK, "does not exist yet; the first leader creates it", ""}
	}
	size := func(n int) string { return resource.NewQuantity(int64(n+1023)>>10<<10, resource.BinarySI).String() }
	message := fmt.Sprintf("%s in %s, %s, the largest %s", output.Count(found.Placements, "placement"), output.Count(found.Objects, "Secret"), size(found.Bytes), size(found.Largest))
	if found.Unused > 0 {
		message += fmt.Sprintf("; %s of earlier saves, which the next leader deletes", output.Count(found.Unused, "Secret"))
	}
	return check{"ledger", subject, checkOK, message, ""}
}
