package simulation

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// mutants each make one mistake, and violate the invariant that forbids it.
var mutants = map[string]Mutant{
	invariantUnavailable: {Saves: func(_ *desired, l *ledger.Ledger) {
		rebind(l, func(b *placement.Binding, to placement.Revision) { b.Assigned, b.AssignedAt = to, time.Now() })
	}},
	invariantUntried: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			entries := l.Placement(key).Entries()
			for _, from := range entries {
				for _, e := range entries {
					b := e.Binding
					if to := from.Binding.Assigned; to.Commit == l.InForce() && b.HasRevision() && b.Assigned.Hash != to.Hash && !b.Removing && e.Seen != nil && e.Seen.Done && !e.Seen.Available() {
						b.Assigned, b.AssignedAt = to, time.Now()
						l.Bind(key, b)
					}
				}
			}
		}
	}},
	invariantSurge: {Saves: func(_ *desired, l *ledger.Ledger) {
		eachBinding(l, func(b *placement.Binding) bool {
			if b.HasRevision() || b.Unscheduled {
				return false
			}
			b.Assigned, b.AssignedAt = placement.Revision{Commit: l.InForce(), Hash: "any"}, time.Now()
			return true
		})
	}},
	invariantUnreachable: {Saves: func(_ *desired, l *ledger.Ledger) {
		eachBinding(l, func(b *placement.Binding) bool {
			c := l.Cluster(b.Cluster)
			if !b.HasRevision() || c == nil || c.Healthy || b.Assigned.Commit == l.InForce() {
				return false
			}
			b.Assigned, b.AssignedAt = placement.Revision{Commit: l.InForce(), Hash: "any"}, time.Now()
			return true
		})
	}},
	invariantKept: {Saves: func(_ *desired, l *ledger.Ledger) {
		eachBinding(l, func(b *placement.Binding) bool {
			c := l.Cluster(b.Cluster)
			if b.Unscheduled || c == nil || c.Healthy {
				return false
			}
			b.Unscheduled = true
			return true
		})
	}},
	invariantStopped: {Saves: func(_ *desired, l *ledger.Ledger) {
		eachBinding(l, func(b *placement.Binding) bool {
			was := b.Risked
			b.Risked = false
			return was
		})
	}},
	invariantInvalid: {Saves: func(head *desired, l *ledger.Ledger) {
		for name, p := range head.placements {
			key := api.PlacementKey{Name: name}
			if !p.invalid || l.Placement(key) == nil {
				continue
			}
			for _, b := range l.Placement(key).Bindings() {
				b.Assigned, b.AssignedAt = placement.Revision{Commit: l.InForce(), Hash: "any"}, time.Now()
				l.Bind(key, b)
			}
		}
	}},
	invariantUnanswered: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			if p := *l.Placement(key); p.Rebuilt {
				p.Rebuilt = false
				l.SetPlacement(key, p)
			}
		}
	}},
	invariantWaits: {Loads: func(l *ledger.Ledger) {
		if l.Empty() {
			l.SetPlacement(api.PlacementKey{Name: "ghost"}, ledger.Placement{Created: time.Now()})
		}
	}},
	invariantDelete: {Applies: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].Manifests = works[i].Manifests[:len(works[i].Manifests)/2]
		}
		return works
	}},
	invariantAllowed: {Applies: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].DeletionBlocks = nil
		}
		return works
	}},
	invariantIgnored: {Applies: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].Manifests = slices.Clone(works[i].Manifests)
			for j, m := range works[i].Manifests {
				next, object := *m, *m.Object
				object.Content = m.Object.Content.DeepCopy()
				object.Content.SetAnnotations(nil) // the value of Git is sent
				next.Object = &object
				works[i].Manifests[j] = &next
			}
		}
		return works
	}},
	invariantRemoved:   {Removes: func(diff.Removal) diff.Removal { return diff.Removal{} }},
	invariantWaves:     {DeletesAtOnce: true},
	invariantConverges: {Applies: func([]*work.Work) []*work.Work { return nil }},
	invariantSaved: {Sends: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].Revision.Commit += "?"
		}
		return works
	}},
	invariantOwner: {Sends: func(works []*work.Work) []*work.Work {
		for i := range works {
			if len(works) > 1 && len(works[0].Manifests) > 0 && !works[i].Remove {
				works[i].Manifests = works[0].Manifests
			}
		}
		return works
	}},
	invariantGit: {Sends: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].Manifests = works[i].Manifests[:len(works[i].Manifests)/2]
		}
		return works
	}},
	invariantWaitReason: {Publishes: func(r *status.Report) {
		for _, d := range r.Details {
			for i := range d.Clusters {
				d.Clusters[i].Waits = ""
			}
		}
	}},
	invariantFailed: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			p := *l.Placement(key)
			for _, e := range l.Placement(key).Entries() {
				if e.Seen != nil && e.Seen.Done && !e.Seen.Available() && e.Seen.Failed() == nil && len(p.Stops) == 0 {
					p.Stops = []placement.Stop{{Cluster: e.Binding.Cluster, Failed: e.Binding.Assigned}}
					l.SetPlacement(key, p)
				}
			}
		}
	}},
	invariantCompared: {Saves: func(head *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			p := *l.Placement(key)
			if b := l.Placement(key).Bindings(); head.placements[key.Name].reportDiff && len(b) > 0 && len(p.Stops) == 0 {
				p.Stops = []placement.Stop{{Cluster: b[0].Cluster, Failed: b[0].Assigned}}
				l.SetPlacement(key, p)
			}
		}
	}},
	invariantStopEnds: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			p := *l.Placement(key)
			if len(p.Stops) == 0 || len(l.Suspensions()) == 0 {
				continue
			}
			p.Stops = nil
			l.SetPlacement(key, p)
			for _, b := range l.Placement(key).Bindings() {
				b.Risked = false
				l.Bind(key, b)
			}
		}
	}},
	invariantForeign: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, name := range l.Clusters() {
			for _, o := range l.Cluster(name).Rivals {
				l.Adopt(protocol.Adoption{Cluster: name, ID: o.ID, By: "nobody", At: time.Now()})
			}
		}
	}},
	invariantSound: {Publishes: func(r *status.Report) {
		for _, p := range r.Placements {
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Message = ""
			}
		}
	}},
	invariantSuspension: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, s := range l.Suspensions() {
			l.Resume(s.Subject, time.Now())
		}
	}},
	invariantSuspended: {Sends: func(works []*work.Work) []*work.Work {
		for i := range works {
			works[i].Suspended = ""
		}
		return works
	}},
	invariantResumed: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			if !l.Placement(key).Resumed.IsZero() {
				l.ResumeRollout(key, time.Time{})
			}
		}
	}},
	invariantFresh: {Publishes: func(r *status.Report) {
		for _, p := range r.Placements {
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Reason = "ForNoReason"
			}
		}
	}},
	invariantInternal: {Publishes: func(r *status.Report) {
		for _, d := range r.Details {
			d.Internal = "internal error: division by zero"
		}
	}},
	invariantHolder: {Joins: func(m *protocol.Membership) { m.Fleet = protocol.Fleet{} }},
	invariantTerm: {Updates: func(s *secrets, name string, value []byte, _ string) (string, error) {
		return s.Update(name, value, strconv.Itoa(s.versions[name]))
	}},
	invariantShared: {Updates: func(_ *secrets, _ string, _ []byte, version string) (string, error) { return version, nil }},
}

// eachBinding calls change for each binding, and saves the binding if it returns true.
func eachBinding(l *ledger.Ledger, change func(b *placement.Binding) bool) {
	for _, key := range l.Placements() {
		for _, b := range l.Placement(key).Bindings() {
			if change(&b) {
				l.Bind(key, b)
			}
		}
	}
}

// rebind changes the assigned revision of all clusters of a placement as soon as one of them is
// assigned the head.
func rebind(l *ledger.Ledger, change func(b *placement.Binding, to placement.Revision)) {
	for _, key := range l.Placements() {
		var to placement.Revision
		for _, b := range l.Placement(key).Bindings() {
			if b.Assigned.Commit == l.InForce() {
				to = b.Assigned
			}
		}
		for _, b := range l.Placement(key).Bindings() {
			if to.Hash != "" && b.HasRevision() && b.Assigned.Hash != to.Hash {
				change(&b, to)
				l.Bind(key, b)
			}
		}
	}
}

// A typo in a selector that deletes objects is detected.
func TestDeletionByTypoViolatesAnInvariant(t *testing.T) {
	with := NewLoaders()
	for seed := uint64(1); seed <= 400; seed++ {
		sc := NewScenario(seed)
		sc.Mutant = mutants[invariantAllowed]
		if out := sc.Run(t, with, false); out.Violation != nil && out.Violation.Invariant == invariantAllowed && strings.Contains(out.Violation.Text, typo+" matches nothing") {
			return
		}
	}
	t.Error("none of 400 scenarios detects it")
}

// Each invariant is violated if gitfleet makes the mistake that it forbids, so no check is without
// effect.
func TestEveryInvariantFailsForItsMutant(t *testing.T) {
	for invariant, mutant := range mutants {
		t.Run(invariant, func(t *testing.T) {
			with := NewLoaders()
			for seed := uint64(1); seed <= 400; seed++ {
				sc := NewScenario(seed)
				sc.Mutant = mutant
				for i := range sc.Steps {
					if invariant == invariantResumed && i%2 == 1 {
						sc.Steps[i].kind = resumeStep // which is rare otherwise
					}
				}
				if out := sc.Run(t, with, false); out.Violation != nil && out.Violation.Invariant == invariant {
					return
				}
			}
			t.Error("none of 400 scenarios detects it")
		})
	}
}
