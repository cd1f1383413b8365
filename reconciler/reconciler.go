// Package reconciler is the loop: it takes in commits and what members say,
// thinks the fleet through, writes down what it decided, tells the members,
// and publishes a report.
//
// One goroutine owns the ledger and the current snapshot. Everything it needs
// to know reaches it as values; nothing it does waits for Git or a cluster.
package reconciler

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// A Source is all the loop needs to know of Git.
type Source interface {
	// Run calls head with each new commit until ctx is done.
	Run(ctx context.Context, head func(gitsource.Commit)) error
	Files(ctx context.Context, commit string) (fs.FS, error)
	Commit(ctx context.Context, hash string) (gitsource.Commit, error)
	Status() gitsource.Status
}

// A Member keeps one cluster as it is told.
type Member interface {
	// SetFleet says which fleet the member acts for, and the others whose
	// inventories it takes over. Inventories of everybody else have it write
	// nothing. It is called before the first Set, and never blocks.
	SetFleet(f ledger.Fleet, adopted []ledger.Adoption)
	// Set replaces all that the cluster should hold; it never blocks.
	Set([]work.Work)
	// Leave gives up everything on the cluster and closes what it returns when
	// that is done.
	Leave() <-chan struct{}
	// Check has it look again at all it holds, and try at once what failed; it
	// never blocks.
	Check()
	// Run works until ctx is done.
	Run(ctx context.Context) error
}

// A Rememberer is a member that says in each report of a placement all that is
// remembered of drifts, also from before it was started.
type Rememberer interface {
	// Recall is called once, before Run, with what was remembered.
	Recall(map[api.PlacementKey][]ledger.Drift)
}

// A Resolver is a member that holds what others change until it is decided what becomes
// of it.
type Resolver interface {
	// Resolve replaces what is decided about held drifts; it never blocks.
	Resolve(ledger.Resolutions)
}

// Config is what the loop is made of. All fields but Now, Record, Metrics and Traces must be set.
type Config struct {
	// Fleet is the name and the source of this fleet, and the ID that it gets if it
	// has none.
	Fleet  ledger.Fleet
	Source Source
	// Loader loads new commits, Past those that are still assigned somewhere;
	// two, because they work at the same time.
	Loader, Past *hub.Loader
	Store        ledger.Store
	// Attempts is the file that remembers which commits are being loaded, so that one
	// that ends the process is not loaded for ever; empty for none.
	Attempts string
	// Member makes the agent of a cluster. report never blocks.
	Member func(c *hub.Cluster, report func(ledger.Observation)) Member
	// Conditions say which names conditions have in reports.
	Conditions status.Conditions
	// MaxUnreachable is how many clusters that do not answer, or which share of
	// those a placement wants, no rollout waits for; nil means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before
	// its update counts as failed; zero means any time.
	AvailableTimeout time.Duration
	// Now is what the clock says; nil means the one of this machine.
	Now func() time.Time
	// Told is called after members were told something new.
	Told func()
	// Publish takes each new report, which nobody changes afterwards.
	Publish func(*status.Report)
	// Record takes what is to be remembered of what happened; it never blocks.
	Record  func(...history.Entry)
	Metrics *Metrics
	// Traces sends the traces of commits; nil sends none.
	Traces *tracing.Tracer
	Log    *slog.Logger
}

// A Reconciler runs the loop. Run may be called once.
type Reconciler struct {
	cfg    Config
	ledger *ledger.Ledger
	events *events

	// head is the commit in force; nil until one has loaded.
	head   *hub.Snapshot
	seen   time.Time // when the head was first seen
	past   map[string]*hub.Snapshot
	lost   map[string]error // assigned commits that cannot be loaded
	again  map[string]retry // when to try those again
	source status.Source
	// untraced is when the head was loaded, while its trace has not been sent; zero once it has.
	untraced time.Time
	memo     *plan.Memo
	told     *status.Memo
	faults   map[api.PlacementKey]string
	// deleted are the deletions that members have reported and that have no event yet.
	deleted []status.Deleted
	// decided is what the history does not know yet, because it is not saved.
	decided []history.Entry
	// acts are what persons did since the ledger was last saved.
	acts []history.Entry
	// last is when the last turn was, due when the next has to be, whatever
	// happens, and saveBy when what was only seen is to be saved; zero if nothing
	// waits.
	last, due, saveBy time.Time

	// works are what clusters were last told, unseen how many clusters a
	// placement leaves room for, because they have not answered since the ledger
	// was lost.
	works  map[string][]work.Work
	unseen map[api.PlacementKey]int
	// obeyed are commands whose answers are due.
	obeyed []obeyed

	// fresh says that the ledger knew nothing at the start, and members may still
	// say what they hold: nothing is saved meanwhile, or who starts after a crash
	// would not know that it was lost. rebuilt says that they were found to hold
	// something, and nothing was decided yet.
	fresh   bool
	rebuilt bool
	started time.Time

	members map[string]*running
	// resolutions are what is decided about held drifts, by cluster.
	resolutions map[string]ledger.Resolutions
	// ending are closed when the last agent of a cluster, told to stop, has
	// ended.
	ending map[string]<-chan struct{}
	wanted chan string // commits for the loader of the past
	asked  map[string]bool
	// attempts records loads in progress, retries are commits to load again. deadly
	// is set while the newest commit is refused because loading it ended the process.
	attempts *attempts
	deadly   bool
	retries  chan gitsource.Commit
	running  sync.WaitGroup
	calm     *calm
}

// New returns a loop that has not begun.
func New(cfg Config) *Reconciler {
	if cfg.Record == nil {
		cfg.Record = func(...history.Entry) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	return &Reconciler{
		cfg: cfg, events: newEvents(&cfg.Metrics.waiting), past: map[string]*hub.Snapshot{}, lost: map[string]error{}, again: map[string]retry{},
		memo: plan.NewMemo(), told: status.NewMemo(), members: map[string]*running{}, ending: map[string]<-chan struct{}{}, wanted: make(chan string, 1), asked: map[string]bool{},
		attempts: readAttempts(cfg.Attempts, cfg.Log), retries: make(chan gitsource.Commit, 1),
	}
}

// Run works until ctx is done; by then all it started has ended and the ledger
// is saved. An error means that it cannot go on.
func (r *Reconciler) Run(ctx context.Context) error {
	var err error
	if r.ledger, err = r.cfg.Store.Load(); err != nil {
		return err
	}
	r.fresh, r.started = r.ledger.Empty(), r.cfg.Now()
	r.identify()
	r.ledger.Rebase(r.started)
	ctx, cancel := context.WithCancelCause(ctx)
	r.calm = newCalm(freeMemory)
	defer r.calm.stop()
	defer r.running.Wait()
	defer cancel(nil)
	last := r.ledger.Head()
	r.spawn(func() { r.resume(ctx, last); cancel(r.follow(ctx)) })
	r.spawn(func() { r.recall(ctx) })
	r.spawn(func() { r.retry(ctx) })
	r.loop(ctx)
	if err := context.Cause(ctx); err != nil && err != context.Canceled {
		return err
	}
	return nil
}

// identify writes down which fleet this is. If the ledger knows nothing, members may
// still say which ID it had.
func (r *Reconciler) identify() {
	f := r.cfg.Fleet
	switch id := r.ledger.Fleet().ID; {
	case id != "":
		f.ID = id
	case r.fresh:
		f.ID = ""
	}
	r.ledger.SetFleet(f)
}

// Resolve replaces what is decided about held drifts, by cluster. It never blocks, and
// any goroutine may call it.
func (r *Reconciler) Resolve(all map[string]ledger.Resolutions) {
	r.events.put(func() { r.events.resolutions = all })
}

// Notice makes the loop turn soon, and tell how the source does. It never
// blocks, and any goroutine may call it.
func (r *Reconciler) Notice() { r.events.put(func() {}) }

func (r *Reconciler) spawn(f func()) {
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		f()
	}()
}

// resume puts the commit in force that was in force before a restart: what has
// come since may be one that is refused.
func (r *Reconciler) resume(ctx context.Context, hash string) {
	if hash == "" {
		return
	}
	c, err := r.cfg.Source.Commit(ctx, hash)
	if err != nil {
		r.cfg.Log.Warn("the commit last in force cannot be read; waiting for the newest", "commit", hash, "err", err)
		return
	}
	l := r.load(ctx, r.cfg.Loader, c)
	if l.err != nil {
		r.cfg.Log.Warn("the commit last in force does not load; waiting for the newest", "commit", hash, "err", l.err)
		return
	}
	l.resumed = true
	r.tell(l)
}

// follow runs the source. Each new commit is loaded right there, so that the
// loop waits for neither Git nor kustomize.
func (r *Reconciler) follow(ctx context.Context) error {
	err := r.cfg.Source.Run(ctx, func(c gitsource.Commit) {
		r.tell(r.load(ctx, r.cfg.Loader, c))
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow the repository: %w", err)
	}
	return nil
}

// recall loads commits that are still assigned to some cluster.
func (r *Reconciler) recall(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case hash := <-r.wanted:
			c, err := r.cfg.Source.Commit(ctx, hash)
			l := loaded{commit: hub.Commit{Hash: hash}, err: err}
			if err == nil {
				l = r.load(ctx, r.cfg.Past, c)
			}
			l.past = true
			r.tell(l)
		}
	}
}

// retry loads commits again that somebody asked for.
func (r *Reconciler) retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-r.retries:
			l := r.load(ctx, r.cfg.Loader, c)
			l.again = true
			r.tell(l)
		}
	}
}

// tell hands a commit to the loop.
func (r *Reconciler) tell(l loaded) {
	r.events.load(l)
	r.calm.after(l.took)
}

// loaded is a commit, understood or not.
type loaded struct {
	commit   hub.Commit
	snapshot *hub.Snapshot
	err      error
	past     bool
	resumed  bool
	// again says that it was loaded once more, and a newer one may have come since.
	again bool
	took  time.Duration
}

func (r *Reconciler) load(ctx context.Context, loader *hub.Loader, c gitsource.Commit) (l loaded) {
	start := time.Now()
	l = loaded{commit: hub.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message}}
	defer func() { r.cfg.Metrics.loaded(l) }()
	end, err := r.attempts.begin(c.Hash)
	if err != nil {
		l.err = err
		return l
	}
	defer end()
	files, err := r.cfg.Source.Files(ctx, c.Hash)
	if err == nil {
		l.snapshot, err = loader.Load(l.commit, files)
	}
	l.err, l.took = err, time.Since(start)
	return l
}
