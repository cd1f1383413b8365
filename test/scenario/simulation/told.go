package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The laws of what members are told, as they are broken.
const (
	lawSaved   = "nobody is told what is not saved"
	lawListens = "nothing is told before everybody was heard, if the ledger was lost"
	lawOne     = "an object on a cluster has one owner"
	lawGit     = "members are told what a commit says"
	lawDelete  = "nothing is deleted that a placement wants, or that nobody asked to go"
	lawAllowed = "what looks like a mistake deletes nothing until a commit allows it"
)

// checkTold checks the works that a member is sent.
func (w *world) checkTold(a *agent, works []work.Work) {
	if a.d.rebuilt && !a.d.spoke && time.Since(a.d.started) < 30*time.Second {
		for name := range w.source.commits[w.books.head].clusters {
			if !w.books.heard[name] {
				w.breaks(lawListens, "%s is told something and %s said nothing yet", a.name, name)
			}
		}
	}
	a.d.spoke = true
	owners := map[api.ID]api.PlacementKey{}
	for i := range works {
		w.checkWork(a, &works[i], owners)
	}
}

func (w *world) checkWork(a *agent, told *work.Work, owners map[api.ID]api.PlacementKey) {
	at := bindingKey{told.Placement, a.name}
	e := w.books.pages[told.Placement][a.name]
	switch {
	case e == nil:
		w.breaks(lawSaved, "%s is told of %s, which does not hold it", a.name, told.Placement)
		return
	case told.Remove && !e.Binding.Removing:
		w.breaks(lawSaved, "%s is told to remove %s", a.name, told.Placement)
	case told.Suspended == "" && w.books.suspended(at, w.now()):
		w.breaks(lawAlone, "%s is told nothing of %s being suspended", a.name, told.Placement)
	case !told.Remove && (e.Binding.Assigned != told.Revision || e.Binding.Removing && !told.Keep):
		w.breaks(lawSaved, "%s is told %v of %s, and assigned %v", a.name, told.Revision, told.Placement, e.Binding.Assigned)
	}
	for _, m := range told.Manifests {
		if other, taken := owners[m.ID]; taken && !told.Keep && told.Strategy.Type != api.ReportDiff {
			w.breaks(lawOne, "%s is told to hold %s for %s and %s", a.name, title(m.ID), other, told.Placement)
		}
		if told.Strategy.Type != api.ReportDiff {
			owners[m.ID] = told.Placement
		}
	}
	if !told.Remove && !told.Keep {
		w.checkContent(at, told, e)
	}
}

// checkContent compares a work with the content of its commit, without the objects that are left
// to others, and with those that others left.
func (w *world) checkContent(at bindingKey, told *work.Work, e *ledger.Entry) {
	want := maps.Clone(w.content(told.Revision, at))
	if want == nil {
		want = map[api.ID]string{}
	}
	for _, y := range e.Yields {
		delete(want, y.ID)
	}
	head := w.source.commits[w.books.head].gives(at.key.Name, at.cluster)
	for _, id := range e.Early {
		want[id] = head[id]
	}
	got := map[api.ID]string{}
	for _, m := range told.Manifests {
		got[m.ID] = valueOf(m.Object.Object)
		if _, ok := want[m.ID]; ok && !slices.Contains(e.Early, m.ID) && !w.says(told.Revision.Commit, at, m.ID, got[m.ID]) {
			w.breaks(lawGit, "%s is told that %s is %q, and %s says %q", at.cluster, title(m.ID), got[m.ID], told.Revision.Commit, want[m.ID])
		}
	}
	for id := range want {
		if _, ok := got[id]; !ok {
			w.breaks(lawGit, "%s is not told of %s, which is in %s of %s", at.cluster, title(id), told.Revision.Commit, at.key)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			w.breaks(lawGit, "%s is told to hold %s, which is not in %s of %s", at.cluster, title(id), told.Revision.Commit, at.key)
		}
	}
}

// says reports whether a commit gives an object a value. That of an override counts for every
// cluster, since labels change.
func (w *world) says(commit string, at bindingKey, id api.ID, value string) bool {
	c := w.source.commits[commit]
	if c == nil {
		return false
	}
	o, overridden := c.overrides[id]
	return c.spaces[id.Namespace][id.Name] == value || overridden && o.value == value
}

// deletes is called before every deletion. An object that a placement in force wants on the
// cluster must not be deleted, nor one whose deletion nobody asked for. The newest commit always
// counts. The commit that a cluster still has counts too, unless it cannot be read any more:
// then its content is not known.
func (w *world) deletes(a *agent, by work.Work, id api.ID) {
	b := a.passing
	if what := w.mistake(a, by, id); what != "" && !w.allows(b, by, a.name) {
		w.breaks(lawAllowed, "%s deletes %s for %s: %s", a.name, title(id), by.Placement, what)
	}
	head := w.source.commits[b.head]
	for _, key := range slices.SortedFunc(maps.Keys(b.pages), byKey) {
		at := bindingKey{key, a.name}
		p, exists := head.places[key.Name]
		if !b.live(at) || exists && p.report {
			continue
		}
		for _, r := range []placement.Revision{b.revision(at), {Commit: head.Hash}} {
			c := w.source.commits[r.Commit]
			if c == nil || c == head && p.invalid || c != head && c.lost {
				continue
			}
			if _, wanted := w.content(r, at)[id]; wanted {
				w.breaks(lawDelete, "%s deletes %s for %s, and %s has it at %s", a.name, title(id), by.Placement, key, c.Hash)
			}
		}
	}
	if _, wanted := w.content(by.Revision, bindingKey{by.Placement, a.name})[id]; wanted && !by.Remove {
		w.breaks(lawDelete, "%s deletes %s for %s, and nobody asked for that", a.name, title(id), by.Placement)
	}
}

// mistake returns why the deletion of an object for an existing placement, under any of its
// names, looks like a mistake; empty if it does not.
func (w *world) mistake(a *agent, by work.Work, id api.ID) string {
	b := a.passing
	p, exists := w.source.commits[b.head].places[by.Placement.Name]
	switch {
	case !exists && b.renamed[by.Placement] != "" && id.Kind == "Namespace":
		return "all in the namespace goes with it, and the placement was renamed"
	case !exists || p.report:
		return ""
	}
	if by.Remove {
		for name := range b.pages[by.Placement] {
			if b.live(bindingKey{by.Placement, name}) {
				return "" // it has moved
			}
		}
		return "it is on no cluster any more"
	}
	space := namespaceID(id.Namespace)
	inv := a.holds[by.Placement]
	switch unmatched := w.unmatched(by, id); {
	case unmatched != "":
		return unmatched + " matches nothing, and may have selected it"
	case w.source.commits[by.Revision.Commit] != nil && len(w.content(by.Revision, bindingKey{by.Placement, a.name})) == 0:
		return "nothing is left of it"
	case id.Kind == "Namespace":
		return "all in the namespace goes with it"
	case inv != nil && inv.items[space] && a.things[space] != nil && a.things[space].ours && !a.wantedByAny(space) && !a.kept(space, by.Placement):
		return "its namespace goes as well"
	}
	return ""
}

// unmatched returns a selector that no longer matches anything and that the object may have been
// selected by, which is any object outside of the namespaces that are still selected; empty if
// there is none.
func (w *world) unmatched(by work.Work, id api.ID) string {
	c, name := w.source.commits[by.Revision.Commit], by.Placement.Name
	if c == nil {
		return ""
	}
	if _, selected := c.gives(name, "")[namespaceID(id.Namespace)]; selected {
		return ""
	}
	for _, space := range c.unmatched(name) {
		return space
	}
	return ""
}

// kept reports whether another placement has an object and keeps it.
func (a *agent) kept(id api.ID, but api.PlacementKey) bool {
	for _, w := range a.pass {
		if w.Placement != but && a.owns(w.Placement, id) && w.Keep {
			return true
		}
	}
	return false
}

// allows reports whether a commit could have allowed the deletions of a work: one with the
// content that the cluster was given, under any name of the placement, or a later one. Under an
// earlier name, that is the content under the current one, if it is the newest.
func (w *world) allows(b *books, by work.Work, on string) bool {
	at, commit, renamed := bindingKey{by.Placement, on}, by.Revision.Commit, b.renamed[by.Placement] != ""
	if renamed {
		at.key.Name, commit = b.currentName(at.key.Name), b.renamed[by.Placement]
		head := w.source.commits[b.head].gives(at.key.Name, on)
		if r := b.revision(at); b.live(at) && sameContent(w.content(r, at), head) {
			commit, renamed = r.Commit, false
		}
	}
	head, first := slices.Index(w.source.order, b.head), slices.Index(w.source.order, commit)
	if first < 0 {
		return true
	}
	name := at.key.Name
	if _, named := w.source.commits[commit].places[name]; !named {
		name = w.contents[by.Revision.Hash].name // it had another then
	}
	content := func(i int, name string) map[api.ID]string { return w.source.commits[w.source.order[i]].gives(name, "") }
	for !renamed && first > 0 {
		before := w.nameAt(b, first-1, name)
		if !sameContent(content(first-1, before), content(first, name)) {
			break
		}
		first, name = first-1, before
	}
	for i := first; i <= head; i++ {
		if !w.source.commits[w.source.order[i]].silent {
			return true
		}
	}
	return false
}
