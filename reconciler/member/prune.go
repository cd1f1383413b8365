package member

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/content"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
)

// A pruner removes objects that placements no longer want. Its recorder records the outcomes.
type pruner struct {
	*cluster
	desired.View
	owned       owned.View
	progress    progress.View
	blocker     *deletionBlocker
	inventories *inventories
	record      *recorder
	content     *content.Checker
	// waves are those of the present call of prune; nil until they are needed.
	waves *deletion.Waves
	// containers are the stale Namespaces and definitions, by placement, as they were when the present call of prune first asked for them.
	containers map[api.PlacementKey][]api.ID
}

// prune removes stale objects, and those that waited for others to be gone, in the reverse of the
// order in which they are applied; see package deletion. It deletes only objects that are in an
// inventory and still have our label, each by its UID. The inventory lists an object until it is
// gone.
func (p *pruner) prune(ctx context.Context, stales []owned.Stale, touched map[api.PlacementKey]bool) {
	stales, p.waves, p.containers = p.withWaiting(stales), nil, map[api.PlacementKey][]api.ID{}
	slices.SortFunc(stales, func(a, b owned.Stale) int { return work.DeleteOrder(a.ID(), b.ID()) })
	failed := p.inventories.handOver(ctx, stales, touched)
	if p.inventories.store.ClaimedByOther() {
		return
	}
	p.record.pruning(stales)
	p.record.notHandedOver(stales, failed)
	for _, st := range stales {
		if failed[st.NewOwner] == nil && p.due(st) {
			p.record.removal(p.remove(ctx, st), touched)
		}
	}
}

// due reports whether the removal of an object is to be tried now.
func (p *pruner) due(st owned.Stale) bool {
	if st.PassesOn() {
		return true
	}
	f, failed := p.progress.Failure(st.ID())
	return !p.blocker.stillBlocked(st.Item) && (!failed || !time.Now().Before(f.Next) || !p.mayExist(st.Item))
}

// remove removes an object.
func (p *pruner) remove(ctx context.Context, st owned.Stale) removal {
	id := st.ID()
	switch {
	case st.HandedOver:
		w, _ := p.Wanted().Of(id)
		return removal{Stale: st, gone: p.owned.Owns(w.Placement, id)}
	case st.NewOwner != (api.PlacementKey{}):
		return removal{Stale: st, gone: p.owned.Owns(st.NewOwner, id)}
	case id.Namespace == api.Namespace || id == inventory.Namespace:
		return removal{Stale: st, gone: true} // inventories of older versions may list it; it is never content
	}
	l, err := p.present(ctx, st.Item)
	if err != nil {
		return p.result(ctx, st, "", err)
	}
	facts := decide.Stale{Gone: l == nil || l.Fleet != p.cfg.Fleet}
	var res connection.Resource
	if !facts.Gone {
		var served bool
		if res, served, err = p.finder.Serves(ctx, st.Item.GroupVersionKind()); err != nil || !served {
			return p.result(ctx, st, "", err)
		}
		p.describe(&facts, st, l)
	}
	step, kept := decide.Delete(facts)
	if step == decide.Look {
		facts.Looked, facts.Remains = true, p.remainingIn(ctx, st.Item)
		if facts.Remains == "" {
			facts.Content = p.content.Of(ctx, res, id)
		}
		step, kept = decide.Delete(facts)
	}
	switch step {
	case decide.Forget:
		return removal{Stale: st, gone: true}
	case decide.Release:
		released, err := p.release(ctx, res, st)
		if !released && err == nil {
			return p.result(ctx, st, "", nil)
		}
		return p.result(ctx, st, history.Released, err)
	case decide.Await:
		return p.lingering(ctx, res, removal{Stale: st})
	case decide.Keep:
		if _, remains := kept.(*decide.RemainsError); remains {
			return p.result(ctx, st, "", kept) // it is tried again
		}
		return removal{Stale: st, kept: kept}
	}
	return p.delete(ctx, res, st, l)
}

// result returns the outcome of what was requested of the cluster to remove an object.
func (p *pruner) result(ctx context.Context, st owned.Stale, requested history.Event, err error) removal {
	p.cfg.Metrics.done(p.cfg.Name, "Delete", err)
	o := removal{Stale: st, gone: err == nil, requested: requested, err: err}
	if err != nil {
		o.shown = p.scrubRemoval(ctx, st, err)
	}
	return o
}

// describe adds what is known of a stale object that exists.
func (p *pruner) describe(facts *decide.Stale, st owned.Stale, l *observed.Object) {
	facts.Released, facts.Deleting, facts.Allowed = p.blocker.releases(st, l), l.Terminating, p.owned.DeletionAllowed(st)
	if facts.Released || facts.Deleting {
		return
	}
	if !facts.Allowed {
		facts.Blocked = p.owned.DeletionBlocked(st, p.containersOf(st.Inventory))
	}
	if facts.Blocked == "" {
		facts.After, _ = p.currentWaves().Before(p.object(st.Placement(), st.ID(), true))
	}
}

// containersOf is that of the blocker, which goes through the whole inventory, once for each placement.
func (p *pruner) containersOf(inv inventory.View) []api.ID {
	with, known := p.containers[inv.Placement()]
	if !known {
		with = p.blocker.containersOf(inv)
		p.containers[inv.Placement()] = with
	}
	return with
}

// delete deletes a stale object.
func (p *pruner) delete(ctx context.Context, res connection.Resource, st owned.Stale, l *observed.Object) removal {
	result, err := p.conn.Delete(ctx, res, st.ID(), l.UID, p.propagation(st))
	if err == nil && result == connection.AlreadyGone {
		return removal{Stale: st, gone: true} // somebody else has deleted it
	}
	o := p.result(ctx, st, history.Deleted, err)
	if err != nil || result == connection.Deleted {
		return o
	}
	if p.watch.Of(st.Item.GroupVersionKind()).Complete() {
		going := *l
		going.Terminating, going.Deleted = true, time.Now().Unix()
		o.deleting = &going
	}
	return p.lingering(ctx, res, o)
}

// withWaiting adds the stale objects that have waited for others to be gone.
func (p *pruner) withWaiting(stales []owned.Stale) []owned.Stale {
	listed := map[progress.Deletion]bool{}
	for _, st := range stales {
		listed[progress.Deletion{ID: st.ID(), Placement: st.Placement()}] = true
	}
	waiting := p.record.progress.TakeWaiting()
	listing := p.owned.ListingsFor(len(waiting))
	for w := range waiting {
		if listed[w] {
			continue
		}
		for _, st := range p.owned.StalesIn(w.ID, listing(w.ID)) {
			if st.Placement() == w.Placement {
				stales = append(stales, st)
			}
		}
	}
	return stales
}

// currentWaves returns the waves of everything that is to be deleted now.
func (p *pruner) currentWaves() *deletion.Waves {
	if p.waves == nil {
		var all []deletion.Object
		listing := p.owned.ListingsFor(p.owned.Items())
		for inv := range p.owned.All() {
			placement := inv.Placement()
			for id := range inv.IDs() {
				all = append(all, p.object(placement, id, p.leaves(placement, id, listing(id))))
			}
		}
		p.waves = deletion.NewWaves(all, p.awaited)
	}
	return p.waves
}

func (p *pruner) object(placement api.PlacementKey, id api.ID, leaving bool) deletion.Object {
	return deletion.Object{ID: id, Placement: placement, Leaving: leaving, Commit: p.Works().Of(placement).Cause.Commit}
}

// leaves reports whether an object is to be deleted for a placement, now or after a suspension. listing are the inventories that list it.
func (p *pruner) leaves(placement api.PlacementKey, id api.ID, listing []inventory.View) bool {
	if _, isWanted := p.Wanted().Of(id); isWanted || !p.Works().Prunes(placement) {
		return false
	}
	_, passesOn := p.owned.NewOwner(id, placement, listing)
	return !passesOn
}

// awaited reports whether an object that is to be deleted may still exist, and is neither blocked nor
// released.
func (p *pruner) awaited(o deletion.Object) bool {
	inv, found := p.owned.Of(o.Placement)
	if !found || !inv.Has(o.ID) {
		return false
	}
	if _, blocked := p.blocker.blocked[o.ID]; blocked {
		return false
	}
	it, l := inv.Of(o.ID), p.live.Of(o.ID)
	if l == nil {
		return p.mayExist(it)
	}
	return l.Fleet == p.cfg.Fleet && !p.blocker.releases(owned.Stale{Inventory: inv, Item: it}, l)
}

// mayExist reports whether an object exists, or no watch reports whether it does.
func (p *pruner) mayExist(it *inventory.Item) bool {
	return p.live.Of(it.ID()) != nil || !p.watch.Of(it.GroupVersionKind()).Complete()
}

// lingering returns the outcome of the removal of an object that was deleted and still exists. From the second time on it reads why,
// if the conditions of such objects say that.
func (p *pruner) lingering(ctx context.Context, res connection.Resource, o removal) removal {
	id := o.ID()
	o.gone, o.lingers = false, true
	if f, failed := p.progress.Failure(id); failed && f.NotDeleted == "" && deletion.Explains(id.GroupKind()) {
		if why, err := deletion.Stays(ctx, p.conn, res, id); err == nil {
			why = connection.Cut(p.Secrets().Scrub(why))
			o.stays = &why
		}
	}
	return o
}

// remainingIn returns an object of ours in a namespace; empty if there is none, or if the item
// is not a namespace. Objects that were to be deleted together with the namespace are gone at
// that point. The remaining ones are blocked or desired, or could not be removed yet.
func (p *pruner) remainingIn(ctx context.Context, it *inventory.Item) string {
	if (it.ID().GroupKind() != schema.GroupKind{Kind: "Namespace"}) {
		return ""
	}
	namespace, stays := it.Name, ""
	for inv := range p.owned.All() {
		for it := range inv.All() {
			if name := it.Kind + " " + it.Name; it.Namespace == namespace && (stays == "" || name < stays) {
				if l, err := p.present(ctx, &it); err != nil || l != nil && !l.Terminating {
					stays = name
				}
			}
		}
	}
	return stays
}

// childless are the API groups whose objects have no dependents that would outlive them.
var childless = map[string]bool{
	"": true, "admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "autoscaling": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "policy": true, "rbac.authorization.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
}

// propagation returns the propagation policy for the deletion of an object. When a whole
// placement is removed, an object counts as gone only when its dependents are, so that the Pods
// of a Deployment no longer run. Otherwise dependents are deleted in the background. The
// server's default must not be used: for some kinds it is neither, and would for instance leave
// the Pods of a Job.
func (p *pruner) propagation(st owned.Stale) metav1.DeletionPropagation {
	kind := st.ID().GroupKind()
	if p.Works().Placed(st.Placement()) || childless[kind.Group] && kind != (schema.GroupKind{Kind: "ReplicationController"}) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// release removes our label, our annotations and our entry in managedFields from an object, and
// leaves the rest. If somebody changes the object meanwhile, it tries again. released is false
// if the object is gone, or another object has its name.
func (p *pruner) release(ctx context.Context, res connection.Resource, st owned.Stale) (released bool, err error) {
	id := st.ID()
	found, err := p.conn.Read(ctx, res, id)
	if err != nil || found == nil || found.GetUID() != st.Item.UID {
		return false, err
	}
	labels, notes := found.GetLabels(), found.GetAnnotations()
	delete(labels, api.ManagedByLabel)
	for _, name := range []string{api.PlacementAnnotation, api.SourceAnnotation, api.CommitAnnotation, api.PathAnnotation} {
		delete(notes, name)
	}
	found.SetLabels(labels)
	found.SetAnnotations(notes)
	found.SetManagedFields(slices.DeleteFunc(found.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == api.FieldManager
	}))
	body, err := json.Marshal(found.Object)
	if err != nil {
		return false, err
	}
	return p.conn.Replace(ctx, res, id, body, "gitfleet-release")
}

// scrubRemoval removes values of Secrets from an error: an admission webhook sees the object
// whose deletion it denies.
func (p *pruner) scrubRemoval(ctx context.Context, st owned.Stale, err error) error {
	if !connection.Answered(err) {
		return err
	}
	id := st.ID()
	if res, ok := p.kinds.Of(st.Item.GroupVersionKind()); ok && id.Group == "" && id.Kind == "Secret" {
		if found, readErr := p.conn.Read(ctx, res, id); readErr == nil && found != nil {
			err = diff.SecretsOf(found).Error(err)
		}
	}
	return p.Secrets().Error(err)
}
