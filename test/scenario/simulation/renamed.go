package simulation

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A revisionContent is the content of a revision, and the name of its placement at that time.
type revisionContent struct {
	name    string
	content map[api.ID]string
}

// A rename gave a placement another name with a commit.
type rename struct{ from, to, commit string }

// nameAt returns the name of a placement at the i-th commit, given its name at the next one.
func (w *world) nameAt(b *model, i int, name string) string {
	c := w.source.commits[w.source.order[i]]
	if _, exists := c.placements[name]; exists {
		return name
	}
	for _, r := range b.renames {
		if r.to == name && slices.Index(w.source.order, r.commit) > i {
			return r.from
		}
	}
	return name
}

// currentName returns the name that a renamed placement has now.
func (b *model) currentName(name string) string {
	for _, r := range b.renames {
		if r.from == name {
			name = r.to
		}
	}
	return name
}

// noteContents records the content of the assigned revisions: that of the placement at the
// commit in force, under its current name.
func (w *world) noteContents(b *model) {
	head := w.source.commits[b.head]
	for key, page := range b.entries {
		for cluster, e := range page {
			r := e.Binding.Assigned
			if _, known := w.contents[r.Hash]; !known && head != nil && r.Commit == b.head {
				w.contents[r.Hash] = revisionContent{key.Name, head.content(key.Name, cluster)}
			}
		}
	}
}

// content returns the content of a revision, whichever name the placement had when it was
// assigned.
func (w *world) content(r placement.Revision, at bindingKey) map[api.ID]string {
	if noted, known := w.contents[r.Hash]; known {
		return noted.content
	}
	if c := w.source.commits[r.Commit]; c != nil {
		return c.content(at.key.Name, at.cluster)
	}
	return nil
}

// carryOver renames placements in the model: the rollout continues under the new name.
func (w *world) carryOver(l *ledger.Ledger) {
	was := w.decided.known
	for _, to := range l.Placements() {
		names := l.Placement(to).Formerly
		if len(names) == 0 || was[to] || l.Placement(to).Deleted {
			continue
		}
		from := names[len(names)-1]
		// A placement that was rebuilt from inventories is in no decision yet. The record of a placement that
		// was deleted and created again still lists the names from earlier renames.
		if record := l.Placement(from); !was[from] && w.decided.entries[from] == nil || record != nil && (!record.Deleted || record.Into != to) {
			continue
		}
		w.decided = w.decided.copy()
		b := w.decided
		page := maps.Clone(b.entries[to])
		if page == nil {
			page = map[string]*ledger.Entry{}
		}
		for name, e := range b.entries[from] {
			if e.Binding.Removing {
				continue
			}
			if removed := page[name]; removed != nil && removed.Binding.HasRevision() {
				b.leftover[bindingKey{to, name}] = removed.Binding.Assigned.Hash
			}
			page[name] = e
		}
		b.entries[to] = page
		if stops := b.recordedStops[from]; len(stops) > 0 {
			b.recordedStops = maps.Clone(b.recordedStops)
			b.recordedStops[to] = stops
			delete(b.recordedStops, from)
		}
		b.renamed = maps.Clone(b.renamed)
		b.renamed[from] = l.InForce()
		delete(b.renamed, to)
		b.renames = append(slices.Clip(b.renames), rename{from: from.Name, to: to.Name, commit: l.InForce()})
		b.observations.carryOver(from, to)
		move(w.exposed, from, to)
	}
}

func (m *observations) carryOver(from, to api.PlacementKey) {
	move(m.reports, from, to)
	move(m.risked, from, to)
	move(m.failedUpdates, from, to)
	move(m.excused, from, to)
	move(m.outages, from, to)
	move(m.counted, from, to)
	move(m.disturbed, from, to)
	move(m.leaving, from, to)
	if m.found[from] {
		m.found[to] = true
	}
	for _, s := range slices.Collect(maps.Keys(m.requestedSuspensions)) {
		if s.Placement == from {
			next := s
			next.Placement = to
			if _, taken := m.requestedSuspensions[next]; !taken {
				m.requestedSuspensions[next] = m.requestedSuspensions[s]
			}
			delete(m.requestedSuspensions, s)
		}
	}
}

func move[V any](of map[bindingKey]V, from, to api.PlacementKey) {
	for at, v := range maps.Clone(of) {
		if at.key == from {
			delete(of, at)
			of[bindingKey{to, at.cluster}] = v
		}
	}
}
