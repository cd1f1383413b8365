package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/gatejob"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An Agent reconciles one cluster.
type Agent struct {
	// Jobs takes the Jobs that gates run on the cluster. They are handled between passes, under the same conditions as every write.
	Jobs *gatejob.Queue

	config     Config
	connection connection.Config
	// newWorks, newMembership and newDriftDecisions have the last arguments of Set, SetMembership and
	// SetDriftDecisions that were not received yet.
	newWorks chan []*work.Work
	// skipped says that Set has replaced works that were never used. The next pass then reports every placement: a placement may have
	// been changed and changed back, and the loop waits for a report that is newer than that.
	skipped           atomic.Bool
	newMembership     chan protocol.Membership
	newDriftDecisions chan protocol.DriftDecisions
	// lastWorks are the works that were last received; only Run uses it. Nil means that none were
	// received yet.
	lastWorks  []*work.Work
	membership protocol.Membership
	// check requests that everything is checked again.
	check chan struct{}
	// leave is closed to request that the cluster is left, and left once that is done.
	leave, left chan struct{}
	// drifted is what is recorded of drift. Only Run uses it.
	drifted *drift.State
	// superseded are manifests to be replaced. Only Run uses it.
	superseded owned.Superseded
	// uid is the UID of the cluster that was connected last, version the highest resource version that was known of it, and serials
	// are the serial numbers of its inventories, also of an earlier process.
	uid     string
	version uint64
	serials inventory.Serials
	// restored is what shows that the cluster was restored to an earlier state, until a session has
	// read everything again; empty if nothing does.
	restored string
	// unlisted says that there may be objects of ours that no inventory lists any more. searched is when
	// they were last looked for.
	unlisted bool
	searched time.Time
	// reportedSetBack are the last serial numbers of inventories that were missing or earlier ones when
	// the last session began, which was reported.
	reportedSetBack map[api.PlacementKey]uint64
	// setBackAt is when a session last ended because inventories were missing or earlier ones.
	setBackAt time.Time
	// deletions are those that were not reported yet. They outlive a session.
	deletions deletion.Log
	// written are the placements of which an object was written, or tried to be written, since their last report.
	written progress.Placements
	// access knows which permissions the cluster does not grant.
	access *permission.Reviewer
	// silentFor limits the log lines about a cluster that does not answer. During a session,
	// only its probes use it.
	silentFor retry.LogLimiter
	// claimLog limits the log lines about another fleet that has claimed the cluster.
	claimLog retry.LogLimiter
}

// New returns an agent that does nothing until it runs.
func New(cfg Config) *Agent {
	a := &Agent{
		config: cfg.withDefaults(), check: make(chan struct{}, 1), leave: make(chan struct{}), left: make(chan struct{}),
		newWorks: make(chan []*work.Work, 1), newMembership: make(chan protocol.Membership, 1), newDriftDecisions: make(chan protocol.DriftDecisions, 1),
		Jobs: gatejob.NewQueue(), drifted: drift.New(), deletions: deletion.Log{},
	}
	a.access = permission.New(permission.Config{Cluster: a.config.Name, Concurrency: a.config.Concurrency, Log: a.config.Log})
	a.connection = connection.Config{
		Cluster: a.config.Name, Connect: a.config.Connect, Wrap: a.config.Wrap, Timeout: a.config.Timeout,
		Metrics: &a.config.Metrics.Metrics, Log: a.config.Log, Refused: a.access.RecordRefusal,
	}
	return a
}

// Set replaces the desired state of the cluster. It never blocks; a newer call replaces one
// that was not used yet. Only one goroutine may call it. Until the first call nothing is
// written.
func (a *Agent) Set(works []*work.Work) {
	if replace(a.newWorks, works) {
		a.skipped.Store(true)
	}
}

// replace puts a value into a channel with one element, instead of a value that was not received
// yet, and reports whether there was one. Only one goroutine may send to the channel.
func replace[T any](ch chan T, value T) (replaced bool) {
	select {
	case <-ch:
		replaced = true
	default:
	}
	ch <- value
	return replaced
}

// SetMembership sets the fleet of the agent, the fleets whose inventories it takes over, and the
// identity of its cluster. If the cluster has an inventory of any other fleet, is not the one with
// that identity, or belongs to another member, the agent writes nothing. It never blocks; only the
// goroutine that calls Set may call it. Until it is called, the agent treats every inventory with
// its fleet name as its own.
func (a *Agent) SetMembership(m protocol.Membership) {
	replace(a.newMembership, m)
}

// SetDriftDecisions replaces the decisions about held drift. It never blocks; a newer call replaces one
// that has not been used yet. Only one goroutine may call it.
func (a *Agent) SetDriftDecisions(all protocol.DriftDecisions) {
	replace(a.newDriftDecisions, all)
}

// SetRecord sets what an earlier process recorded of the cluster, as loaded from a ledger. It may be
// called before Run, and does not change its argument.
func (a *Agent) SetRecord(r protocol.MemberRecord) {
	a.uid, a.version, a.serials = r.UID, r.Version, inventory.SerialsOf(r.Inventories)
	for p, list := range r.Drifts {
		for _, d := range list {
			if d.Addition && !a.config.Additions.Looks() {
				continue
			}
			a.drifted.Loaded(p, d)
		}
	}
}

// Check makes the agent check everything again, and retry failures at once. It never blocks,
// and any goroutine may call it.
func (a *Agent) Check() {
	select {
	case a.check <- struct{}{}:
	default:
	}
}

// Leave releases everything on the cluster: our labels are removed from objects, which
// otherwise stay as they are, and inventories are deleted. The returned channel is closed when
// that is done. Only the goroutine that calls Set may call it, once, and must not call Set
// afterwards.
func (a *Agent) Leave() <-chan struct{} {
	close(a.leave)
	return a.left
}

// logAnswer logs that the cluster does not answer and why, or that it answers again.
func (a *Agent) logAnswer(err error) {
	switch {
	case err == nil && a.silentFor != (retry.LogLimiter{}):
		a.silentFor = retry.LogLimiter{}
		a.config.Log.Info("cluster answers again", "cluster", a.config.Name)
	case err != nil && a.silentFor.Due(connection.WithoutPort(err)):
		a.config.Log.Warn("cluster lost; trying again", "cluster", a.config.Name, "err", connection.Cut(err.Error()))
	}
}

// seen returns the observation of a probe, with the permissions that are missing.
func (a *Agent) seen(p probe.Result) protocol.ClusterSeen {
	seen := p.Seen(a.config.Name)
	switch forbidden := a.access.Forbidden(); {
	case p.Err == nil:
		seen.Forbidden = forbidden
	case apierrors.IsForbidden(p.Err) && len(forbidden) > 0:
		seen.Forbidden, seen.Error = forbidden, connection.Cut((&ForbiddenError{p.Err, forbidden}).Error())
	}
	return seen
}

// publishProbe reports the result of a probe, and logs what has changed.
func (a *Agent) publishProbe(p probe.Result) {
	a.access.RecordRefusal(p.Err)
	a.config.Report(a.seen(p))
	a.logAnswer(p.Err)
}

// rememberState records the identity and the version of the cluster that a probe has found, and
// whether that shows a restore to an earlier state. Nothing that was known of the cluster is valid
// after a restore: the session ends, and a new one reads everything again. It reports whether the
// cluster is another one than before.
func (a *Agent) rememberState(p probe.Result) (another bool) {
	if another = p.UID != "" && a.uid != "" && p.UID != a.uid; another {
		a.version, a.serials, a.restored, a.unlisted = 0, nil, "", false
	}
	a.uid, a.version = cmp.Or(p.UID, a.uid), cmp.Or(p.Version, a.version)
	a.restored = cmp.Or(a.restored, p.Restored)
	return another
}

// rememberSetBack records that inventories were deleted, or are earlier ones than were written last. That
// is reported once, although an inventory of a suspended placement stays as it is.
func (a *Agent) rememberSetBack(back []api.PlacementKey) {
	before := a.reportedSetBack
	if a.reportedSetBack = nil; len(back) == 0 {
		return
	}
	a.reportedSetBack = map[api.PlacementKey]uint64{}
	for _, p := range back {
		a.reportedSetBack[p] = a.serials.Of(p)
	}
	a.unlisted, a.searched = true, time.Time{}
	back = slices.DeleteFunc(slices.Clone(back), func(p api.PlacementKey) bool { return before[p] == a.serials.Of(p) })
	if len(back) == 0 {
		return
	}
	a.restored = cmp.Or(a.restored, fmt.Sprintf("the inventories in the namespace %s were deleted or restored to an earlier state (%s)", api.Namespace, few(back)))
}

// few joins the first placements of a list.
func few(all []api.PlacementKey) string {
	const most = 3
	var names []string
	for _, p := range all[:min(most, len(all))] {
		names = append(names, p.String())
	}
	if n := len(all) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// takeRestore returns the restore that a new session was opened after, once; zero if there was none.
func (a *Agent) takeRestore() protocol.Restore {
	why := a.restored
	if a.restored = ""; why == "" {
		return protocol.Restore{}
	}
	a.config.Log.Warn("cluster was restored to an earlier state; everything is read again, and what differs is repaired", "cluster", a.config.Name, "why", why)
	return protocol.Restore{At: time.Now(), Why: why}
}

// logClaimant logs that another fleet has claimed the cluster, or no longer has.
func (a *Agent) logClaimant(store *inventory.Store, uid string) {
	switch claimant := store.OtherMember(); {
	case !store.ClaimedByOther() && a.claimLog != (retry.LogLimiter{}):
		a.claimLog = retry.LogLimiter{}
		a.config.Log.Info("cluster is not claimed by another fleet or member any more", "cluster", a.config.Name)
	case claimant != "":
		if a.claimLog.Due(claimant) {
			a.config.Log.Error("another member of the fleet is the same cluster and has claimed it; nothing is written to it under this name",
				"cluster", a.config.Name, "claimant", claimant, "uid", uid)
		}
	default:
		for _, o := range store.OtherFleets() {
			if a.claimLog.Due(o.ID) {
				a.config.Log.Error("cluster is claimed by another fleet of the same name; nothing is written to it",
					"cluster", a.config.Name, "fleet", a.config.Fleet, "claimant", cmp.Or(o.ID, protocol.NoID), "source", o.Source)
			}
		}
	}
}

// A ForbiddenError says that a member cannot be used because permissions are missing.
type ForbiddenError struct {
	err     error
	missing []string
}

// Error implements error.
func (f *ForbiddenError) Error() string {
	return "permissions are missing: " + strings.Join(f.missing, "; ")
}

// Unwrap returns the refusal of the API server.
func (f *ForbiddenError) Unwrap() error { return f.err }
