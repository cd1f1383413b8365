package edit

import (
	"errors"
	"fmt"
	"maps"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// verify loads the edited tree. The clusters that have the change must get the wanted object, and
// those that are untouched what they have.
func (a *attempt) verify(files []FileChange, untouched []status.Holder) error {
	after, err := a.editor.Load(treeWith(a.editor.Files, files))
	if broken, ok := errors.AsType[*hub.LoadError](err); ok {
		return fmt.Errorf("the edited files would not load: %s", broken.Problems.Summary())
	}
	if err != nil {
		return a.notRead(err)
	}
	if p := newProblem(a.editor.Head, after); p != nil {
		return fmt.Errorf("the edited files would have a new problem: %w", p)
	}
	if err := checkOthersUnchanged(a.editor.Head, after, affected(a)); err != nil {
		return err
	}
	now := render(after)
	for at, object := range a.want {
		if err := now.gives(at, a.ID, object); err != nil {
			return err
		}
		if err := a.keepsOthers(now, at, a.ID); err != nil {
			return err
		}
	}
	for _, at := range untouched {
		if err := a.keepsOthers(now, at, api.ID{}); err != nil {
			return err
		}
	}
	a.verified = after
	return nil
}

// affected are the objects that the edit may change: the object or its envelope, or what overlays build for the clusters
// that have the change.
func affected(a *attempt) map[position]bool {
	out := map[position]bool{{id: a.ID}: true}
	if holder := a.editor.before.holder(a.manifest); holder != nil && holder.Overlay == nil {
		out[position{id: holder.ID}] = true
	}
	for _, at := range a.Changed {
		if m, err := a.editor.before.object(at, a.ID); err == nil {
			out[position{a.ID, m.Origin.Kustomization}] = true
		}
	}
	return out
}

// keepsOthers returns an error if a cluster gets other objects than before, except for one.
func (a *attempt) keepsOthers(now *rendering, at status.Holder, but api.ID) error {
	was, err := a.editor.before.objects(at)
	if err != nil {
		return err
	}
	is, err := now.objects(at)
	if err != nil {
		return err
	}
	if !maps.Equal(hashes(was, but), hashes(is, but)) {
		return fmt.Errorf("the edit would change other objects on %s as well", at.Cluster)
	}
	return nil
}

// newProblem returns a problem that the snapshot after has and before does not have.
func newProblem(before, after *hub.Snapshot) error {
	type problem struct{ path, field, message string }
	known := map[problem]int{}
	for _, p := range before.Warnings {
		known[problem{p.Path, p.Field, p.Message}]++
	}
	for _, p := range after.Warnings {
		key := problem{p.Path, p.Field, p.Message}
		if known[key]--; known[key] < 0 {
			return p
		}
	}
	return nil
}
