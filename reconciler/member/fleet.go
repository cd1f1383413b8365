package member

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// Two daemons with the same fleet name see each other's inventories as their own. They are
// distinguished by the fleet's ID, which every inventory and the claim have. If a cluster has
// an inventory or a claim with another ID, nothing is written there: no object, no label, no
// inventory, no namespace.

// A membership is the fleet of an agent, with the adopted fleets whose inventories it takes
// over.
type membership struct {
	ledger.Fleet
	adopted []ledger.Adoption
}

// SetFleet sets the fleet of the agent, and the fleets whose inventories it takes over. If the
// cluster has an inventory of any other fleet, the agent writes nothing. It never blocks; only
// the goroutine that calls Set may call it. Until it is called, the agent treats every
// inventory with its fleet name as its own.
func (a *Agent) SetFleet(f ledger.Fleet, adopted []ledger.Adoption) {
	select {
	case <-a.memberships:
	default:
	}
	a.memberships <- membership{f, adopted}
}

// owner returns the owner that inventories of this fleet name.
func (a *Agent) owner() ledger.Owner { return ledger.Owner{ID: a.fleet.ID, Source: a.fleet.Source} }

// adoption returns the adoption because of which inventories of an owner are taken over; nil if
// there is none.
func (a *Agent) adoption(o ledger.Owner) *ledger.Adoption {
	i := slices.IndexFunc(a.fleet.adopted, func(x ledger.Adoption) bool { return x.ID == o.ID })
	if i < 0 {
		return nil
	}
	return &a.fleet.adopted[i]
}

// receiveFleet uses the membership of the last call of SetFleet.
func (s *session) receiveFleet() {
	select {
	case s.fleet = <-s.memberships:
	default:
	}
}

// foreign reports whether the cluster has an inventory of another fleet.
func (s *session) foreign() bool {
	return s.fleet.ID != "" && slices.ContainsFunc(s.owners, func(o ledger.Owner) bool {
		return o.ID != s.fleet.ID && s.adoption(o) == nil
	})
}

// mayWrite reports whether no other fleet holds the cluster. It marks adopted inventories, so
// that deletions of their objects are held from the first pass on.
func (s *session) mayWrite() bool {
	if s.foreign() {
		return false
	}
	for _, inv := range s.inv {
		s.adoptInventory(inv)
	}
	return true
}

// foreignRetry is the time between two checks whether another fleet still holds the cluster.
const foreignRetry = time.Minute

// observeOnly replaces a turn on a cluster that another fleet holds. It writes nothing. Once no
// other fleet holds the cluster, everything is reconciled.
func (s *session) observeOnly(ctx context.Context, woken waking) error {
	look := !s.foreign() // a new membership says that the cluster is ours
	switch woken {
	case byLeave:
		s.leaving = true
	case byWorks:
		s.want(s.last)
	case byChanges:
		look = len(s.inventoriesOfOthers(s.absorb())) > 0 || look
	case byCheck, byRetry:
		look = true
	case bySweep:
		s.pauseSweep()
	case byProbe:
		p := *s.found
		s.found = nil
		if err := s.probed(ctx, p); err != nil {
			return err
		}
	}
	switch {
	case s.leaving:
		s.endMembership(ctx) // there is nothing of ours to release
		return nil
	case look:
		if err := s.reload(ctx); err != nil {
			return err
		}
	}
	s.logForeign()
	s.observingOnly = s.foreign()
	if s.observingOnly {
		s.schedule(foreignRetry)
	} else if s.last != nil {
		s.sync(ctx)
	}
	return nil
}

// checkForeign begins to observe only if this turn has found that another fleet has claimed the
// cluster.
func (s *session) checkForeign(ctx context.Context) error {
	if !s.foreign() || s.observingOnly {
		return nil
	}
	s.observingOnly = true
	return s.observeOnly(ctx, byCheck)
}

// reload reads all inventories again, forgets the state of all objects, and reports the owners
// of the inventories.
func (s *session) reload(ctx context.Context) error {
	s.inv, s.parts = map[api.PlacementKey]*inventory{}, nil
	clear(s.verified)
	clear(s.trouble)
	clear(s.done)
	if err := s.inventories(ctx); err != nil {
		return reconnect(err)
	}
	s.cfg.Report(s.clusterReport())
	return nil
}

// clusterReport returns the report of a session that has read the inventories.
func (s *session) clusterReport() ledger.ClusterSeen {
	seen := s.seen(s.health)
	seen.At, seen.Owners = time.Now(), s.owners
	for p, inv := range s.inv {
		seen.Holds = append(seen.Holds, ledger.Held{Placement: p, Revision: inv.Revision, Abandon: inv.Abandon})
	}
	return seen
}

// logForeign logs that another fleet holds the cluster, or no longer does.
func (s *session) logForeign() {
	switch {
	case !s.foreign() && s.heldBy != (retry.LogLimiter{}):
		s.heldBy = retry.LogLimiter{}
		s.cfg.Log.Info("cluster is not held by another fleet any more", "cluster", s.cfg.Name)
	case s.foreign():
		for _, o := range s.owners {
			if o.ID != s.fleet.ID && s.adoption(o) == nil && s.heldBy.Due(o.ID) {
				s.cfg.Log.Error("cluster is held by another fleet of the same name; nothing is written to it",
					"cluster", s.cfg.Name, "fleet", s.cfg.Fleet, "holder", cmp.Or(o.ID, ledger.NoID), "source", o.Source)
			}
		}
	}
}

// inventoriesOfOthers returns the touched objects that are inventories with our fleet name and
// that others have written. Another gitfleet owns the same fields as we do, so that only the
// version shows this.
func (s *session) inventoriesOfOthers(touched map[api.ID]bool) []api.ID {
	var out []api.ID
	for id := range touched {
		if id.Kind != "ConfigMap" || id.Group != "" || id.Namespace != api.Namespace {
			continue
		}
		l, p := s.live.Of(id), s.parts.Of(id)
		if l != nil && l.Fleet == s.cfg.Fleet && (p == nil || p.managed != l.Managed || p.version < l.Version) || l == nil && p != nil {
			out = append(out, id)
		}
	}
	return out
}

// lostToOtherFleet reports whether an inventory that others have written belongs to another
// fleet, so that the cluster must no longer be written.
func (s *session) lostToOtherFleet(ctx context.Context, touched map[api.ID]bool) bool {
	if s.fleet.ID == "" || len(s.inventoriesOfOthers(touched)) == 0 {
		return false
	}
	list, err := s.listInventories(ctx)
	if err != nil {
		return true // until the cluster is known to be ours
	}
	for i := range list {
		o := s.ownerOf(list[i].GetAnnotations(), "")
		if o.ID != "" && o.ID != s.fleet.ID && s.adoption(o) == nil {
			return true
		}
	}
	return false
}

// ownerOf returns the owner of an inventory. commit is a commit that the inventory names.
func (s *session) ownerOf(annotations map[string]string, commit string) ledger.Owner {
	o := ledger.Owner{ID: annotations[api.FleetIDAnnotation], Source: annotations[api.FleetSourceAnnotation]}
	if o.ID == "" && commit != "" && s.cfg.HasCommit != nil && !s.cfg.HasCommit(commit) {
		o.UnknownCommit = commit
	}
	return o
}

// ownersOf sorts owners, and removes duplicates.
func ownersOf(list []ledger.Owner) []ledger.Owner {
	slices.SortFunc(list, func(a, b ledger.Owner) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Source, b.Source), strings.Compare(a.UnknownCommit, b.UnknownCommit))
	})
	return slices.Compact(list)
}

// reportOwners reports the owners of the inventories if they have changed.
func (s *session) reportOwners() {
	now := slices.Clone(s.damaged)
	if s.claim != nil {
		now = append(now, s.claim.owner)
	}
	for _, inv := range s.inv {
		if inv.written != "" {
			now = append(now, inv.owner)
		}
	}
	if now = ownersOf(now); !slices.Equal(now, s.owners) {
		s.owners = append([]ledger.Owner{}, now...)
		seen := s.clusterReport()
		seen.Holds = nil
		s.cfg.Report(seen)
	}
}

// adoptInventory treats an inventory of another owner as ours. If a user has adopted it, it is
// marked: its objects were never in our repository, and none of them is deleted until a commit
// allows it.
func (s *session) adoptInventory(inv *inventory) {
	if a := s.adoption(inv.owner); a != nil && a.By != "" {
		inv.Adopted = true
	}
}

// adoptedWhy is the reason why an object of an adopted inventory is not deleted.
const adoptedWhy = "it was taken over from another fleet (gitfleet adopt-fleet), and is not in the repository"

// finishAdoption removes the mark of an adopted inventory once all of its objects are desired.
func (s *session) finishAdoption(inv *inventory) {
	if !inv.Adopted || !s.complete(inv.Placement) {
		return
	}
	for id := range inv.items.IDs() {
		if w, ok := s.wanted.of(id); !ok || w.placement != inv.Placement {
			return
		}
	}
	inv.Adopted = false
}

// endMembership ends the membership of a cluster on which there is nothing of ours to release.
func (s *session) endMembership(ctx context.Context) {
	close(s.left)
	s.cfg.Report(s.health.Seen(s.cfg.Name)) // wakes those who wait for a report
	<-ctx.Done()
}

// fleetAnnotations adds the annotations about the fleet that each part of an inventory has.
func (a *Agent) fleetAnnotations(to map[string]any) {
	if a.fleet.ID != "" {
		to[api.FleetIDAnnotation], to[api.FleetSourceAnnotation] = a.fleet.ID, a.fleet.Source
	}
}
