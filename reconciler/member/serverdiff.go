package member

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// ServerChanges lists what would change like Changes, but the API server decides by a dry run
// of each object whether it differs, instead of gitfleet's records and comparisons. It lists
// every difference, also of objects that gitfleet would not take over, or whose drift it would
// not revert.
func (p *Preview) ServerChanges(ctx context.Context, works []work.Work) ([]Change, error) {
	tasks, err := p.tasks(ctx, works)
	if err != nil {
		return nil, err
	}
	manager, err := p.resourceManager(tasks)
	if err != nil {
		return nil, err
	}
	return p.changes(ctx, tasks, func(ctx context.Context, t task) (*Change, error) { return p.askServer(ctx, manager, t) })
}

// resourceManager returns a manager that uses the connection of the preview, which cannot
// write. It knows the kinds of some tasks.
func (p *Preview) resourceManager(tasks []task) (*ssa.ResourceManager, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, t := range tasks {
		scope := meta.RESTScopeRoot
		if t.res.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural := t.res.GroupVersionResource
		mapper.AddSpecific(t.manifest.Object.Object.GroupVersionKind(), plural, plural, scope)
	}
	c, err := p.s.conn.Unstructured(mapper)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return ssa.NewResourceManager(c, nil, ssa.Owner{Field: api.FieldManager, Group: "gitfleet.dev"}), nil
}

// askServer returns the change of one object according to the API server; nil if there is none.
// An object of which no dry run may be requested is compared as in Changes.
func (p *Preview) askServer(ctx context.Context, manager *ssa.ResourceManager, t task) (*Change, error) {
	if t.res == (connection.Resource{}) || p.s.untried[t.manifest.Object.Object.GroupVersionKind()] != "" {
		return p.look(ctx, t)
	}
	live, err := p.s.conn.Read(ctx, t.res, t.manifest.ID) // Diff treats an object that cannot be read as a new one
	if err != nil {
		return nil, err
	}
	rivals := p.s.executor().rivals(ctx, t, live)
	desired, err := p.asApplied(t, snapshot{live, rivals})
	if err != nil {
		return nil, err
	}
	c := &Change{ID: t.manifest.ID, Placement: t.placement, Manifest: t.manifest, Effect: Adds}
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
func (p *Preview) asApplied(t task, saw snapshot) (*unstructured.Unstructured, error) {
	raw, err := p.s.executor().body(t, p.s.works[t.placement].Revision.Commit, saw)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decode %s: %w", t.manifest.ID, err)
	}
	if saw.live == nil {
		return o, nil
	}
	notes := o.GetAnnotations()
	for _, name := range []string{api.SourceAnnotation, api.CommitAnnotation, api.PathAnnotation} {
		if value, has := saw.live.GetAnnotations()[name]; has {
			notes[name] = value
		}
	}
	o.SetAnnotations(notes)
	return o, nil
}
