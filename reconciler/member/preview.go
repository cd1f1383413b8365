package member

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	removing "github.com/gitfleet/gitfleet/reconciler/member/removal"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Preview reads the state of a cluster, and determines what an agent would do there. Nothing
// can be written through its connection.
type Preview struct{ s *session }

// An Effect says what would happen to an object.
type Effect string

// The effects.
const (
	// Adds: it does not exist, and would be created.
	Adds Effect = "add"
	// Changes: fields of it would be set or removed, or it would be taken over.
	Changes Effect = "change"
	// Recreates: it would be deleted and created again, since an immutable field changes.
	Recreates Effect = "recreate"
	// Deletes: it would be removed, or released and left on the cluster.
	Deletes  Effect = "delete"
	Releases Effect = "release"
	// Differs: it differs and would not be changed, because the strategy only reports
	// differences or gitfleet may not write it; Message has the reason.
	Differs Effect = "differ"
	// Fails: the API server would refuse it; Message has the reason.
	Fails Effect = "fail"
	// Unknown: the effect cannot be determined; Message has the reason. Only Try returns it.
	Unknown Effect = "unknown"
	// Alters: an apply would not change it, but the API server or an admission webhook stores
	// other values than those that are applied.
	Alters Effect = "alter"
)

// A Change is the effect of a sync on one object.
type Change struct {
	ID        api.ID
	Placement api.PlacementKey
	// Manifest is the desired object; nil for one that would be removed.
	Manifest *work.Manifest
	Effect   Effect
	// TakesOver says that gitfleet does not own the object yet.
	TakesOver bool
	// Refused says that gitfleet would not take the object over; Message has the reason.
	Refused bool
	// Message has additional information, without secrets.
	Message string
	// Diffs are the differences between the object that would result and the present one.
	// Values of Secrets are masked.
	Diffs []api.Difference
	// serverError says that the reason is a server error (5xx), such as a webhook that is down.
	serverError bool
}

// Peek connects to a cluster in order to inspect it, and returns its state and inventories. It
// uses the fields Name, Fleet, Connect, Encoder and Log of the configuration. The caller must
// close the preview.
func Peek(ctx context.Context, cfg Config) (*Preview, protocol.ClusterSeen, error) {
	var seen protocol.ClusterSeen
	cfg.Report = func(o protocol.Observation) {
		if c, ok := o.(protocol.ClusterSeen); ok {
			seen = c
		}
	}
	s, err := New(cfg.readOnly()).open(ctx)
	if err != nil {
		return nil, seen, err
	}
	return &Preview{s}, seen, nil
}

// readOnly returns a configuration with which nothing can be written.
func (c Config) readOnly() Config {
	wrap := c.Wrap
	c.Wrap = func(rt http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			rt = wrap(rt)
		}
		return connection.ReadOnly(rt)
	}
	return c
}

// Read reads objects of a cluster, through a connection that cannot write. It returns nil for one that
// does not exist or is not gitfleet's. It uses the same fields of the configuration as Peek, and Memory.
func Read(ctx context.Context, cfg Config, objects []*api.Object) ([]*unstructured.Unstructured, error) {
	connect := New(cfg.readOnly()).connection
	connect.Memory = cfg.Memory.Share()
	defer connect.Memory.Close()
	c, err := connect.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	wanted := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		wanted[o.Content.GroupVersionKind()] = true
	}
	known := discovery.New(c.Discovery)
	if err := known.Resolve(ctx, wanted); err != nil {
		return nil, connection.Plain(err)
	}
	live := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		r, ok := known.Of(o.Content.GroupVersionKind())
		if !ok {
			return nil, known.Why(o.Content.GroupVersionKind())
		}
		if live[i], err = c.Read(ctx, r, o.ID); err != nil {
			return nil, connection.Plain(err)
		}
		if live[i] != nil && live[i].GetLabels()[api.ManagedByLabel] != cfg.Fleet {
			live[i] = nil
		}
	}
	return live, nil
}

// Close ends the connection.
func (p *Preview) Close() { p.s.conn.Close() }

// Changes lists what would change if the cluster had exactly these works: first what would be
// applied, in that order, and then what would be removed. An error means that it cannot be
// determined.
func (p *Preview) Changes(ctx context.Context, works []*work.Work) ([]Change, error) {
	tasks, err := p.tasks(ctx, works, nil)
	if err != nil {
		return nil, err
	}
	return p.changes(ctx, tasks, p.changeOf)
}

// tasks sets what the cluster is to hold, and returns a task for each object of it that is not
// suspended and among the targets; nil means all. It determines which kinds must not be tried.
func (p *Preview) tasks(ctx context.Context, works []*work.Work, targets []Target) (tasks []apply.Task, err error) {
	p.s.setWorks(works)
	if err := p.learn(ctx, works); err != nil {
		return nil, err
	}
	chosen := sets.New(targets...)
	for _, w := range works {
		for _, m := range w.Manifests {
			if w.SuspendedReason(m.ID) == "" && (targets == nil || chosen.Has(Target{w.Placement, m.ID})) {
				tasks = append(tasks, p.task(w.Placement, m))
			}
		}
	}
	p.s.applier.untried, err = p.unsafe(ctx, tasks)
	return tasks, err
}

// changes looks at the objects of some tasks, adds the removals, and marks the recreations that
// would be held.
func (p *Preview) changes(ctx context.Context, tasks []apply.Task, look func(context.Context, apply.Task) (*Change, error)) ([]Change, error) {
	changes, err := p.each(ctx, tasks, look)
	if err != nil {
		return nil, err
	}
	var recreated []api.ID
	for _, c := range changes {
		if c.Effect == Recreates && !p.s.Works().Of(c.Placement).AllowDelete {
			recreated = append(recreated, c.ID)
		}
	}
	gone, err := p.removals(ctx, recreated)
	for i, c := range changes {
		if b, held := p.s.brake.braked[c.ID]; held && c.Effect == Recreates {
			changes[i].Message = (&decide.HeldError{Why: b.why}).Error()
		}
	}
	return append(changes, gone...), err
}

// learn determines how the cluster serves the needed kinds.
func (p *Preview) learn(ctx context.Context, works []*work.Work) error {
	gvks := kindsOf(works)
	p.s.owned.addKindsOfInventories(gvks)
	asking, cancel := context.WithTimeout(ctx, p.s.cfg.Timeout)
	defer cancel()
	return p.s.kinds.Resolve(asking, gvks)
}

func (p *Preview) task(key api.PlacementKey, m *work.Manifest) apply.Task {
	return p.s.applier.withInputs(p.s.applier.newTask(desired.Object{Placement: key, Manifest: m}))
}

// each calls look for all objects, several at a time, and returns the results in the order of
// the objects.
func (p *Preview) each(ctx context.Context, tasks []apply.Task, look func(context.Context, apply.Task) (*Change, error)) ([]Change, error) {
	all, errs := make([]*Change, len(tasks)), make([]error, len(tasks))
	p.s.inParallel(ctx, len(tasks), parallelCalls{do: func(i int) { all[i], errs[i] = look(ctx, tasks[i]) }})
	var out []Change
	for i, c := range all {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: %w", tasks[i].Manifest.ID, errs[i])
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

func (p *Preview) executor() *apply.Executor { return p.s.applier.executor() }

func newChange(t apply.Task) *Change {
	return &Change{ID: t.Manifest.ID, Placement: t.Placement, Manifest: t.Manifest}
}

// fails makes a change one that the API server refuses.
func (c *Change) fails(t apply.Task, live *unstructured.Unstructured, err error) *Change {
	c.Effect, c.Message, c.serverError = Fails, t.Mask(live, err).Error(), apply.IsServerError(err)
	return c
}

// changeOf returns the change of one object; nil if there is none.
func (p *Preview) changeOf(ctx context.Context, t apply.Task) (*Change, error) {
	c, gvk := newChange(t), t.GVK()
	if t.Res == (connection.Resource{}) {
		if c.Effect = Adds; definitionOf(gvk, p.s.Wanted()) == nil {
			c.Effect, c.Message = Fails, p.s.kinds.Why(gvk).Error()
		}
		return c, nil
	}
	live, known, decided, err := p.read(ctx, t)
	if decided || err != nil {
		return known, err
	}
	if live == nil {
		if c.Effect = Adds; p.s.Works().OnlyCompares(t.Placement) {
			c.Effect, c.Message = Differs, "it is only reported"
		}
		return c, nil
	}
	return p.compare(ctx, t, c, live)
}

// read reads the object of a task whose kind is served, as an agent would that knows nothing of it. decided says that its change is
// known already: the object would not be applied, whatever is there, or nothing would be done about it.
func (p *Preview) read(ctx context.Context, t apply.Task) (live *unstructured.Unstructured, known *Change, decided bool, err error) {
	f := decide.Facts{Exists: true}
	if f.Hook, _ = p.s.owned.mayApply(t.Object); f.Hook == hooks.Waits {
		f.Hook = hooks.Ready // it is applied in its turn
	}
	if t.Res.Namespaced && t.Manifest.ID.Namespace == "" {
		f.NoNamespace = t.Manifest.ID.Kind
	}
	if c := t.Manifest.Encrypted; c != nil {
		f.Encrypted = c.Message()
	}
	switch step, refusal := decide.Apply(f); step {
	case decide.Refuse:
		known = newChange(t)
		known.Effect, known.Message = Fails, refusal.Error()
		return nil, known, true, nil
	case decide.Finish:
		return nil, nil, true, nil
	}
	if live, err = p.s.conn.Read(ctx, t.Res, t.Manifest.ID); err != nil {
		return nil, nil, false, err
	}
	f.Exists, f.HasRun = live != nil, live == nil && p.s.progress.hasRun(t.Manifest, t.Item)
	step, _ := decide.Apply(f)
	return live, nil, step == decide.Finish, nil
}

// compare uses the same decision table as an agent.
func (p *Preview) compare(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured) (*Change, error) {
	t = t.Beside(live)
	rivals := autoscaler.Rivals(ctx, p.s.conn, t.Manifest.Object.Content, live, t.Scaler)
	facts := p.executor().Facts(t, live)
	var found apply.Comparison
	for {
		switch do, why := diff.Decide(facts); do {
		case diff.NeedRead:
			var err error
			if found, err = p.executor().Compare(ctx, t, live, rivals); err != nil {
				return nil, err
			}
			facts.Compared, facts.Diffs = true, len(found.Diffs)
		case diff.Nothing:
			if found, err := p.values(ctx, t, c, live, rivals); err != nil || found != nil {
				return found, err
			}
			return p.left(t, c, live), nil
		case diff.Report, diff.Refuse:
			if do == diff.Report && len(found.Diffs) == 0 {
				return nil, nil
			}
			c.Effect, c.Diffs, c.Message = Differs, found.Diffs, "it is only reported"
			if do == diff.Refuse {
				c.Refused = diff.OwnerOf(live, p.s.cfg.Fleet, t.Placement, p.s.Works().MarkerStale) != diff.Ours
				c.Message = diff.Refused(why, diff.Owners(live, p.s.cfg.Fleet, t.Placement), found.Degraded).Message()
			}
			return c, nil
		default:
			return p.applied(ctx, t, c, live, rivals)
		}
	}
}

// values returns the change of an object whose metadata shows no change or drift, since its
// values may still differ.
func (p *Preview) values(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured, rivals []autoscaler.Rival) (*Change, error) {
	if diff.CompareAfter(p.s.Works().Of(t.Placement).Strategy) || len(rivals) > 0 {
		return nil, nil
	}
	switch found := p.executor().CompareValues(ctx, t, live); {
	case found.Answer == drift.Unknown:
		return nil, fmt.Errorf("its values cannot be compared, as the API server does not answer to a dry run or it is just being changed; try again")
	case found.Answer == drift.Drifted && p.s.Works().Protects(t.Placement):
		c.Effect, c.Message = Differs, diff.Refused(diff.Drifts, "", false).Message()
	case found.Answer == drift.Drifted:
		return p.applied(ctx, t, c, live, rivals)
	case len(found.Altered) > 0:
		c.Effect, c.Message, c.Diffs = Alters, alteredMessage, diff.Differences(nil, api.FieldManager, found.Altered)
	default:
		return nil, nil
	}
	return c, nil
}

// left returns the change of an object that still has fields that Git has removed; nil if it has none.
func (p *Preview) left(t apply.Task, c *Change, live *unstructured.Unstructured) *Change {
	var o apply.Outcome
	if o.Task = t; t.Item == nil || t.Item.Left == "" {
		return nil
	}
	if p.executor().RecordLeft(&o, t.Item.Left, live); *o.Left == "" {
		return nil
	}
	c.Effect, c.Message, c.Diffs = Differs, o.Cond.Message(), o.Diffs
	return c
}

// applied returns the change that applying an object would make; nil if there is none.
func (p *Preview) applied(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured, rivals []autoscaler.Rival) (*Change, error) {
	c.Effect, c.TakesOver = Changes, diff.OwnerOf(live, p.s.cfg.Fleet, t.Placement, p.s.Works().MarkerStale) != diff.Ours
	opt := diff.Options{Ignore: autoscaler.Paths(rivals)}
	read := apply.Snapshot{Live: live, Rivals: rivals}
	removal := p.executor().Removal(t, read)
	desired, err := p.executor().Merged(ctx, t, read)
	if removing.Refused(err) && !immutable.ByAdmission(err) {
		if more := p.executor().Contradicting(ctx, t, read, err); !more.Empty() {
			desired, err, removal = t.Manifest.Object.Content, nil, removal.Union(more)
			opt.Structural = true
		}
	}
	isImmutable, unread := p.executor().IsImmutable(ctx, t, err)
	recreates := isImmutable && apply.AsksForRecreation(t.Manifest) && p.s.applier.notRecreated(t, live) == ""
	if recreates {
		if refusal := p.s.applier.tryRecreation(ctx, t, live); refusal != nil && connection.Answered(refusal) {
			return c.fails(t, live, refusal), nil
		} else if refusal != nil {
			recreates, err = false, refusal
		}
	}
	switch {
	case recreates:
		opt.Structural = true
		c.Effect, c.Diffs = Recreates, t.Attribute(live, diff.Compare(t.Manifest.Object.Content, live, opt))
		return c, nil
	case apply.RefusesDryRun(err) && !apply.KnowsNoDryRun(err):
		c.fails(t, live, err)
		if !c.TakesOver {
			c.Message = apply.ExplainRecreation(c.Message, t.Manifest, err, isImmutable, unread)
		}
		return c, nil
	case apply.RefusesDryRun(err):
		desired, opt.Structural = t.Manifest.Object.Content, true
		c.Message = apply.WithoutDryRun(t.Mask(live, err))
	case err != nil:
		return nil, t.Mask(live, err)
	}
	c.Diffs = t.Attribute(live, diff.Compare(removal.Without(desired), live, opt))
	if opt.Structural && !removal.Empty() { // fields that the manifest does not have are no difference then
		c.Diffs = append(c.Diffs, t.Attribute(live, diff.Compare(removal.Without(live), live, diff.Options{}))...)
	}
	if len(c.Diffs) == 0 && !c.TakesOver && c.Message == "" {
		return nil, nil
	}
	return c, nil
}

// removals lists the objects that are no longer desired, in the order in which they would be
// removed, and decides which of these, and of the objects that would be recreated, are kept.
func (p *Preview) removals(ctx context.Context, recreated []api.ID) ([]Change, error) {
	ids := p.s.owned.inventoried()
	var stales []stale
	there := map[api.ID]*observed.Object{}
	listing := p.s.owned.listingsFor(len(ids))
	for id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, st := range p.s.owned.stalesIn(id, listing(id)) {
			l, err := p.s.present(ctx, st.item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			there[id] = l
			if !st.passesOn() && l != nil && l.Fleet == p.s.cfg.Fleet && !l.Terminating {
				stales = append(stales, st)
			}
		}
	}
	p.s.brake.decide(ids, func(st stale) bool { return p.s.brake.deletesLive(st, there[st.item.ID()]) }, recreated)
	slices.SortFunc(stales, func(a, b stale) int { return work.DeleteOrder(a.item.ID(), b.item.ID()) })
	var out []Change
	for _, st := range stales {
		out = append(out, p.removal(ctx, st, there[st.item.ID()]))
	}
	return out, nil
}

func (p *Preview) removal(ctx context.Context, st stale, l *observed.Object) Change {
	c := Change{ID: st.item.ID(), Placement: st.inv.Placement(), Effect: Deletes}
	facts := decide.Stale{Released: p.s.brake.releases(st, l), Allowed: p.s.owned.allowed(st), Held: p.s.brake.braked[c.ID].why}
	step, kept := decide.Delete(facts)
	if step == decide.Look {
		r, _ := p.s.kinds.Of(st.item.GroupVersionKind())
		facts.Looked, facts.Content = true, p.s.pruner.content.Of(ctx, r, c.ID)
		step, kept = decide.Delete(facts)
	}
	if step == decide.Release {
		c.Effect = Releases
	}
	if kept != nil {
		c.Message = kept.Error()
	}
	return c
}

// Expiries returns when the credentials of the cluster, and what verifies its server, end.
func (p *Preview) Expiries() []connection.Expiry { return p.s.conn.Expiries() }

// MissingPermissions reviews all permissions that some works need, and Jobs of gates in some
// namespaces, and describes those that the cluster does not grant.
func (p *Preview) MissingPermissions(ctx context.Context, works []*work.Work, namespaces []string) ([]string, error) {
	if err := p.learn(ctx, works); err != nil {
		return nil, err
	}
	p.s.last = works
	for _, namespace := range namespaces {
		p.s.Jobs.Need(namespace)
	}
	needs, _ := p.s.needs()
	missing, err := permission.Lacking(ctx, p.s.conn, p.s.cfg.Concurrency, needs)
	return rbac.Describe(missing), err
}
