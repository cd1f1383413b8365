package ledger

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Rename says that a placement has a new key.
type Rename struct{ From, To api.PlacementKey }

// Rename moves the record of a placement to a new key, with its bindings, revisions, stops and
// suspensions. The record under the old key is marked as deleted. It keeps a binding for each
// cluster, which is being removed until the cluster has handed over the objects. A removal that
// is in progress under the new key continues, except on clusters that have been assigned a
// revision of the renamed placement, where what was being removed becomes the leftover revision;
// the others are selected again, so that no object is left behind, and keep the objects that the
// renamed placement has there early. Rename does nothing if the placement is not known.
func (l *Ledger) Rename(r Rename) {
	old := l.placements[r.From]
	if old == nil {
		return
	}
	next, left := *old, *old
	names := old.Formerly
	next.entries, left.entries = &entries{}, &entries{}
	if was := l.placements[r.To]; was != nil {
		next.entries = was.entries.clone()
		names = slices.Concat(was.Formerly, names)
		next.LostRuns = was.LostRuns
	}
	next.Formerly = nil
	for _, key := range names {
		if key != r.To && key != r.From && !slices.Contains(next.Formerly, key) {
			next.Formerly = append(next.Formerly, key)
		}
	}
	next.Formerly = append(next.Formerly, r.From)
	left.Deleted, left.Into, left.Stops = true, r.To, nil
	for _, e := range old.entries.list {
		if e.Binding.Removing {
			left.entries.put(e)
			continue
		}
		was := next.entries.of(e.Binding.Cluster)
		if was != nil && !e.Binding.HasRevision() && !was.Removed() {
			next.entries.put(was.withEarly(e.Unusual().Early))
		} else {
			moved := *e
			moved.Binding.Change(func(in *placement.Circumstances) { in.Leftover = leftover(was, e) })
			next.entries.put(&moved)
		}
		if e.Binding.HasRevision() || len(e.Unusual().Early) > 0 {
			going := &Entry{Binding: e.Binding}
			going.Binding.Unscheduled, going.Binding.Removing, going.Binding.AllowDelete = true, true, false
			left.entries.put(going)
		}
	}
	next.version, left.version = l.next(), l.next()
	next.own, left.own = next.version, left.version
	l.placements[r.To], l.placements[r.From] = &next, &left
	l.placementsVersion++
	l.markPlacement(r.To, &next)
	l.markPlacement(r.From, old)
	for key, p := range l.placements { // earlier renames lead to the new key
		if p.Into == r.From {
			redirected := *p
			redirected.Into = r.To
			l.SetPlacement(key, redirected)
		}
	}
	l.suspensions.rename(r.From, r.To)
}

// leftover returns the revision that a cluster still has under the new key of a placement, besides
// the one of the entry that is moved there; nil if there is none. was may be nil.
func leftover(was, moved *Entry) *placement.Revision {
	switch {
	case was == nil || was.Removed() || !was.Binding.HasRevision():
		return nil
	case was.Binding.Assigned.Hash == moved.Binding.Assigned.Hash:
		return was.Binding.Unusual().Leftover
	}
	return &was.Binding.Assigned
}

// withEarly returns a copy of the entry with objects that were assigned early besides its own.
func (e *Entry) withEarly(ids []api.ID) *Entry {
	next, in := *e, *e.Unusual()
	in.Early = slices.Concat(in.Early, ids)
	slices.SortFunc(in.Early, api.ID.Compare)
	in.Early = slices.Compact(in.Early)
	next.setCircumstances(in)
	return &next
}

// Renamed returns a copy of the ledger after some renames, for reading: changes to the
// copy are never saved.
func (l *Ledger) Renamed(renames []Rename) *Ledger {
	next := *l
	next.changes = &changes{dirty: map[string]bool{}, count: l.count}
	next.placements = maps.Clone(l.placements)
	next.suspensions = suspensions{next.changes, maps.Clone(l.suspended)}
	next.eventLog.changes, next.members.changes = next.changes, next.changes
	for _, r := range renames {
		next.Rename(r)
	}
	return &next
}

// RenameCluster moves what is recorded of a member to another name of the same cluster: its bindings, stops and
// suspensions. Placements that do not select the cluster under its new name release what they have there.
func (l *Ledger) RenameCluster(from, to string) {
	for _, key := range l.Placements() {
		p := l.placements[key]
		if e := p.entries.of(from); e != nil && p.entries.of(to) == nil {
			l.setEntry(p, to, e.copyForCluster(to))
			l.markUrgent(entryKey(key, to))
			l.Unbind(key, from)
		}
		if slices.ContainsFunc(p.Stops, func(s placement.Stop) bool { return s.Cluster == from }) {
			next := *p
			next.Stops = slices.Clone(p.Stops)
			for i := range next.Stops {
				if next.Stops[i].Cluster == from {
					next.Stops[i].Cluster = to
				}
			}
			l.SetPlacement(key, next)
		}
	}
	l.suspensions.renameCluster(from, to)
	next := Cluster{}
	if c := l.clusters[to]; c != nil {
		next = *c
	}
	l.ForgetCluster(from)
	l.rebuild(&next) // what the ledger did not have
	l.setCluster(&next)
}

// copyForCluster returns a copy of the entry for another name of its cluster.
func (e *Entry) copyForCluster(name string) *Entry {
	next := *e
	next.Binding.Cluster, next.Binding.Policy = name, "" // a policy may name its clusters
	next.Binding.Inherited = !e.Binding.Removing
	return &next
}
