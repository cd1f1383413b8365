package reconciler

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// A Source follows the Git repository.
type Source interface {
	// Run calls head with each new commit of the tracked reference until ctx is done.
	Run(ctx context.Context, head func(gitsource.Commit)) error
	Files(ctx context.Context, commit string) (fs.FS, error)
	Commit(ctx context.Context, hash string) (gitsource.Commit, error)
	Status() gitsource.Status
}

// A Member keeps one cluster in the desired state.
type Member interface {
	// SetMembership sets the fleet that the member acts for, the other fleets whose inventories it adopts, and the
	// identity of its cluster. With inventories of any other fleet, or if the cluster is another one, it writes nothing.
	// It is called before the first Set, and never blocks.
	SetMembership(protocol.Membership)
	// Set replaces all works of the cluster; it never blocks.
	Set([]*work.Work)
	// Leave releases everything on the cluster and closes the channel when that is done.
	Leave() <-chan struct{}
	// Check checks all objects of the cluster, and retries failures at once; it never blocks.
	Check()
	// SetRecord sets what an earlier process recorded of the cluster. It is called once, before Run.
	SetRecord(protocol.MemberRecord)
	// SetDriftDecisions replaces the decisions about held drift; it never blocks.
	SetDriftDecisions(protocol.DriftDecisions)
	// Run works until ctx is done.
	Run(ctx context.Context)
}

// Config configures a Reconciler. A field must be set unless its comment says what happens without it.
type Config struct {
	// Fleet is the name and the source of this fleet, and the ID to use if it does not have one yet.
	Fleet  protocol.Fleet
	Source Source
	// Loader loads new commits, and Past those that clusters are still assigned to; they are used concurrently.
	Loader, Past *hub.Loader
	// FetchBase fetches a commit of another repository for the Loader and Past, and FetchChart a chart that is locked; nil
	// fetches none. They are called by several goroutines at the same time, and have to limit how many do something.
	FetchBase  func(ctx context.Context, url, commit string) error
	FetchChart func(ctx context.Context, chart hub.RemoteChart) error
	// LastChanges returns, by path, the commits that last changed some files, with their signers. It is nil if signatures are not required.
	LastChanges func(ctx context.Context, head string, paths []string) (map[string]gitsource.Commit, error)
	// Since returns the commits in which parts of files last changed. It is called only after the ledger was lost.
	Since func(ctx context.Context, head string, parts []gitsource.FilePart, read func(path string, content []byte) map[string]string) (map[gitsource.FilePart]gitsource.Commit, error)
	Store ledger.Store
	// LoadingFile is the file of the [crashguard.Guard] for the commits that are loaded; empty if there is none. It is
	// read when Run starts.
	LoadingFile string
	// Member creates the agent of a cluster. report never blocks.
	Member func(c *hub.Cluster, report func(protocol.Observation)) Member
	// Conditions are the condition names in reports.
	Conditions status.Conditions
	// MaxUnreachable is how many unreachable clusters, or which share of the wanted clusters, a rollout may skip; nil
	// means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before its update counts as failed; zero
	// means no limit.
	AvailableTimeout time.Duration
	// RepairAfter is how long a cluster has to be unavailable by itself before it is updated outside of the budget.
	RepairAfter time.Duration
	// ApprovalsInGit says that stages of update runs are approved by commits only.
	ApprovalsInGit bool
	// Memo keeps what plans have in common; nil means a new one.
	Memo *plan.Memo
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Publish receives each new report, which is immutable.
	Publish func(*status.Report)
	// Record receives entries for the history, and never blocks; nil drops them.
	Record func(...history.Entry)
	// AskGates receives the gates that have to be asked from now on, in place of those before, and what receives their answers. Neither
	// blocks. Nil asks none, so that those gates do not pass.
	AskGates func([]placement.GateQuestion, func(placement.GateAnswer))
	// Metrics are updated by the loop; nil measures nothing.
	Metrics *Metrics
	// Traces sends the traces of commits; nil sends none.
	Traces *tracing.Tracer
	Log    *slog.Logger
}

// withDefaults returns the configuration with the defaults of the fields that are not set.
func (c Config) withDefaults() Config {
	if c.Record == nil {
		c.Record = func(...history.Entry) {}
	}
	if c.AskGates == nil {
		c.AskGates = func([]placement.GateQuestion, func(placement.GateAnswer)) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Metrics, c.Memo = cmp.Or(c.Metrics, NewMetrics()), cmp.Or(c.Memo, plan.NewMemo())
	return c
}
