package member

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
)

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

// try determines the change of one object. If the object does not exist, the server creates it
// in a dry run.
func (p *Preview) try(ctx context.Context, t apply.Task) (*Change, error) {
	c, err := p.changeOf(ctx, t)
	if err == nil && c != nil && c.Effect == Adds && t.Res != (connection.Resource{}) {
		_, err = p.executor().Merged(ctx, t, apply.Snapshot{})
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c = p.untried(t, err)
	}
	if c != nil {
		p.markUnknown(t, c)
	}
	return c, nil
}

// markUnknown makes a change Unknown if the response of the server says nothing about the object: the
// server does not have what it needs to decide, or not the definition of the kind as it will
// be.
func (p *Preview) markUnknown(t apply.Task, c *Change) {
	gvk := t.GVK()
	unserved := t.Res == (connection.Resource{})
	by := definitionOf(gvk, p.s.Wanted())
	switch {
	case by != nil && (unserved || c.Effect == Fails && !p.applies(*by)):
		c.Effect, c.Message = Unknown, "the cluster does not have its CustomResourceDefinition "+by.Manifest.ID.Name+" as the plan has it"
	case unserved && p.s.kinds.Failure(gvk.GroupVersion()) != nil, c.Effect == Fails && c.serverError:
		c.Effect = Unknown
	}
}

// applies reports whether an object was applied with its desired content.
func (p *Preview) applies(w desired.Object) bool {
	t := p.task(w.Placement, w.Manifest)
	return t.Item != nil && t.Item.Hash == t.Manifest.Hash
}

// untried returns the change of an object whose dry run failed with an error.
func (p *Preview) untried(t apply.Task, err error) *Change {
	c := newChange(t)
	c.Effect, c.Message = Unknown, t.Mask(nil, err).Error()
	namespace, comes := p.s.Wanted().Of(api.ID{Kind: "Namespace", Name: t.Manifest.ID.Namespace})
	switch {
	case connection.IsUnreachable(err):
		c.Message = "the API server does not answer"
	case apierrors.IsNotFound(err) && comes:
		c.Effect, c.Message = Adds, namespace.Manifest.ID.String()+" is not there yet"
	case apierrors.IsNotFound(err) || apply.RefusesDryRun(err) && !apply.KnowsNoDryRun(err) && !apply.IsServerError(err):
		c.Effect = Fails
	}
	return c
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
