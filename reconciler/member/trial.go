package member

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// A Target is one object of a placement.
type Target struct {
	Placement api.PlacementKey
	ID        api.ID
}

// Try says what would become of some objects if the cluster were told to hold some works.
// Objects that are as they would be are left out. Beyond what Changes does, the API server
// tries objects that are not there yet, and an object that nothing can be told of has the
// effect Unknown. An error means that the cluster does not answer.
func (p *Preview) Try(ctx context.Context, works []work.Work, targets []Target) ([]Change, error) {
	p.s.want(works)
	if err := p.learn(ctx, works); err != nil {
		return nil, err
	}
	wanted := map[Target]bool{}
	for _, t := range targets {
		wanted[t] = true
	}
	var tasks []task
	for _, w := range works {
		for _, m := range w.Manifests {
			if wanted[Target{w.Placement, m.ID}] {
				tasks = append(tasks, p.task(w.Placement, m))
			}
		}
	}
	return p.each(ctx, tasks, p.try)
}

// try looks at one object, and has the server create it without a trace if it is not there.
func (p *Preview) try(ctx context.Context, t task) (*Change, error) {
	c, err := p.look(ctx, t)
	if err == nil && c != nil && c.Effect == Adds && t.res != (resource{}) {
		_, err = p.s.merged(ctx, t)
	}
	if err == nil || ctx.Err() != nil {
		return c, ctx.Err()
	}
	return p.untried(t, err), nil
}

// untried is what the error of a server says of an object.
func (p *Preview) untried(t task, err error) *Change {
	c := &Change{ID: t.manifest.ID, Placement: t.placement, Manifest: t.manifest, Effect: Unknown, Message: diff.SecretsOf(t.manifest.Object.Object).Error(err).Error()}
	namespace, comes := p.s.wanted.of(api.ID{Kind: "Namespace", Name: t.manifest.ID.Namespace})
	switch {
	case apierrors.IsNotFound(err) && comes:
		c.Effect, c.Message = Adds, "not tried: "+namespace.manifest.ID.String()+" is not there yet"
	case apierrors.IsNotFound(err) || refusesDryRun(err) && !knowsNoDryRun(err):
		c.Effect = Fails
	}
	return c
}
