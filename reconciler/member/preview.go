package member

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

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
// are blocked.
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
		if b, blocked := p.s.blocker.blocked[c.ID]; blocked && c.Effect == Recreates {
			changes[i].Message = (&decide.BlockedError{Why: b.why}).Error()
		}
	}
	return append(changes, gone...), err
}

// learn determines how the cluster serves the needed kinds.
func (p *Preview) learn(ctx context.Context, works []*work.Work) error {
	gvks := kindsOf(works)
	p.s.owned.AddKinds(gvks)
	asking, cancel := context.WithTimeout(ctx, p.s.cfg.Timeout)
	defer cancel()
	return p.s.kinds.Resolve(asking, gvks)
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

// removals lists the objects that are no longer desired, in the order in which they would be
// removed, and decides which of these, and of the objects that would be recreated, are kept.
func (p *Preview) removals(ctx context.Context, recreated []api.ID) ([]Change, error) {
	ids := p.s.owned.Objects()
	var stales []owned.Stale
	there := map[api.ID]*observed.Object{}
	listing := p.s.owned.ListingsFor(len(ids))
	for id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, st := range p.s.owned.StalesIn(id, listing(id)) {
			l, err := p.s.present(ctx, st.Item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			there[id] = l
			if !st.PassesOn() && l != nil && l.Fleet == p.s.cfg.Fleet && !l.Terminating {
				stales = append(stales, st)
			}
		}
	}
	p.s.blocker.decide(ids, func(st owned.Stale) bool { return p.s.blocker.deletesLive(st, there[st.ID()]) }, recreated)
	slices.SortFunc(stales, func(a, b owned.Stale) int { return work.DeleteOrder(a.ID(), b.ID()) })
	var out []Change
	for _, st := range stales {
		out = append(out, p.removal(ctx, st, there[st.ID()]))
	}
	return out, nil
}

func (p *Preview) removal(ctx context.Context, st owned.Stale, l *observed.Object) Change {
	c := Change{ID: st.ID(), Placement: st.Placement(), Effect: Deletes}
	facts := decide.Stale{Released: p.s.blocker.releases(st, l), Allowed: p.s.owned.DeletionAllowed(st), Blocked: p.s.blocker.blocked[c.ID].why}
	step, kept := decide.Delete(facts)
	if step == decide.Look {
		r, _ := p.s.kinds.Of(st.Item.GroupVersionKind())
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
	p.s.lastWorks = works
	for _, namespace := range namespaces {
		p.s.Jobs.Need(namespace)
	}
	needs, _ := p.s.needs()
	missing, err := permission.Lacking(ctx, p.s.conn, p.s.cfg.Concurrency, needs)
	return rbac.Describe(missing), err
}

// A Target is one object of a placement.
type Target struct {
	Placement api.PlacementKey
	ID        api.ID
}

// Try returns what would happen to some objects if the cluster had these works. Objects that
// would not change, or are suspended, are left out. In contrast to Changes, the API server also
// checks objects that do not exist yet, and an object whose effect cannot be determined has the
// effect Unknown. An object is tried only if a dry run is known to store nothing. An error
// means that the cluster does not answer.
func (p *Preview) Try(ctx context.Context, works []*work.Work, targets []Target) ([]Change, error) {
	tasks, err := p.tasks(ctx, works, append([]Target{}, targets...))
	if err != nil {
		return nil, err
	}
	return p.each(ctx, tasks, func(ctx context.Context, t apply.Task) (*Change, error) {
		if why := p.s.applier.untried[t.GVK()]; why != "" {
			c := newChange(t)
			c.Effect, c.Message = Unknown, why
			return c, nil
		}
		return p.try(ctx, t)
	})
}

// unsafe returns the kinds whose objects must not be tried, with the reason: an aggregated API
// server may ignore dryRun and store the object. Built-in kinds, and those that a
// CustomResourceDefinition of the cluster defines, are safe. The group extensions is no longer built in.
func (p *Preview) unsafe(ctx context.Context, tasks []apply.Task) (map[schema.GroupVersionKind]string, error) {
	unsafe := map[schema.GroupVersionKind]string{}
	for _, t := range tasks {
		gvk := t.GVK()
		if _, known := unsafe[gvk]; known || t.Res == (connection.Resource{}) || api.BuiltInGroup(gvk.Group) && gvk.Group != "extensions" {
			continue
		}
		crd, err := p.s.conn.Read(ctx, discovery.CustomResourceDefinitions, api.ID{Group: discovery.Definitions.Group, Kind: discovery.Definitions.Kind, Name: t.Res.GroupResource().String()})
		switch {
		case connection.IsUnreachable(err):
			return nil, err
		case err != nil:
			unsafe[gvk] = "whether its API may ignore dry runs cannot be told: " + err.Error()
		case crd == nil || !discovery.Defines(crd, gvk):
			unsafe[gvk] = "it is served by an API that may ignore dry runs"
		default:
			unsafe[gvk] = ""
		}
	}
	return unsafe, nil
}

// ServerChanges lists what would change like Changes, but the API server decides by a dry run
// of each object whether it differs, instead of gitfleet's records and comparisons. It lists
// every difference, also of objects that gitfleet would not take over, or whose drift it would
// not revert.
func (p *Preview) ServerChanges(ctx context.Context, works []*work.Work) ([]Change, error) {
	tasks, err := p.tasks(ctx, works, nil)
	if err != nil {
		return nil, err
	}
	manager, err := p.resourceManager(tasks)
	if err != nil {
		return nil, err
	}
	return p.changes(ctx, tasks, func(ctx context.Context, t apply.Task) (*Change, error) { return p.askServer(ctx, manager, t) })
}

// resourceManager returns a manager that uses the connection of the preview, which cannot
// write. It knows the kinds of some tasks.
func (p *Preview) resourceManager(tasks []apply.Task) (*ssa.ResourceManager, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, t := range tasks {
		scope := meta.RESTScopeRoot
		if t.Res.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural := t.Res.GroupVersionResource
		mapper.AddSpecific(t.GVK(), plural, plural, scope)
	}
	c, err := p.s.conn.Unstructured(mapper)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return ssa.NewResourceManager(c, nil, ssa.Owner{Field: api.FieldManager, Group: "gitfleet.dev"}), nil
}

// askServer returns the change of one object according to the API server; nil if there is none.
// An object of which no dry run may be requested is compared as in Changes.
func (p *Preview) askServer(ctx context.Context, manager *ssa.ResourceManager, t apply.Task) (*Change, error) {
	if t.Res == (connection.Resource{}) || p.s.applier.untried[t.GVK()] != "" {
		return p.changeOf(ctx, t)
	}
	live, known, decided, err := p.read(ctx, t) // Diff treats an object that cannot be read as a new one
	if decided || err != nil {
		return known, err
	}
	t = t.Beside(live)
	rivals := autoscaler.Rivals(ctx, p.s.conn, t.Manifest.Object.Content, live, t.Scaler)
	desired, err := p.asApplied(t, apply.Snapshot{Live: live, Rivals: rivals})
	if err != nil {
		return nil, err
	}
	c := newChange(t)
	c.Effect = Adds
	asking, cancel := context.WithTimeout(ctx, p.s.cfg.Timeout)
	verdict, _, _, err := manager.Diff(asking, desired, ssa.DefaultDiffOptions())
	cancel()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case live == nil && err != nil:
		return p.try(ctx, t) // which finds out why the object is refused
	case live == nil:
		return c, nil
	case err == nil && verdict.Action != ssa.ConfiguredAction:
		return nil, nil
	}
	found, err := p.applied(ctx, t, c, live, rivals)
	if err == nil && found == nil {
		c.Message = "the API server would change metadata that gitfleet does not compare"
		return c, nil
	}
	return found, err
}

// asApplied returns the object that is sent to apply a manifest. It has the live object's
// annotations about its origin, since another file or commit is not a difference.
func (p *Preview) asApplied(t apply.Task, read apply.Snapshot) (*unstructured.Unstructured, error) {
	raw, err := p.executor().DryRunBody(t, read)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decode %s: %w", t.Manifest.ID, err)
	}
	if read.Live == nil {
		return o, nil
	}
	notes := o.GetAnnotations()
	for _, name := range []string{api.SourceAnnotation, api.CommitAnnotation, api.PathAnnotation} {
		if value, has := read.Live.GetAnnotations()[name]; has {
			notes[name] = value
		}
	}
	o.SetAnnotations(notes)
	return o, nil
}
