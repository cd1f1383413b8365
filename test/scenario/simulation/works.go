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

// The invariants of works.
const (
	invariantSaved   = "works are sent only after the ledger is saved"
	invariantWaits   = "after a lost ledger no works are sent before all clusters have reported"
	invariantOwner   = "an object on a cluster has one owner"
	invariantGit     = "works have the content of a commit"
	invariantDelete  = "no object is deleted that a placement still has"
	invariantAllowed = "a deletion that is probably a mistake is held until a commit allows it"
)

// checkWorks checks the works that a member is sent.
func (w *world) checkWorks(a *agent, works []*work.Work) {
	if a.d.rebuilt && !a.d.sentWorks && time.Since(a.d.started) < 30*time.Second {
		for name := range w.source.commits[w.saved.head].clusters {
			if !w.saved.reported[name] {
				w.violate(invariantWaits, "%s is sent works, and %s has not reported yet", a.name, name)
			}
		}
	}
	a.d.sentWorks = true
	owners := map[api.ID]api.PlacementKey{}
	for i := range works {
		w.checkWork(a, works[i], owners)
	}
}

func (w *world) checkWork(a *agent, sent *work.Work, owners map[api.ID]api.PlacementKey) {
	at := bindingKey{sent.Placement, a.name}
	e := w.saved.entries[sent.Placement][a.name]
	switch {
	case e == nil:
		w.violate(invariantSaved, "%s is sent work of %s, which does not hold it", a.name, sent.Placement)
		return
	case sent.Remove && !e.Binding.Removing:
		w.violate(invariantSaved, "%s is sent the removal of %s", a.name, sent.Placement)
	case sent.Suspended == "" && w.saved.suspended(at, w.now()):
		w.violate(invariantSuspended, "%s is not sent the suspension of %s", a.name, sent.Placement)
	case !sent.Remove && (e.Binding.Assigned != sent.Revision || e.Binding.Removing && !sent.Keep):
		w.violate(invariantSaved, "%s is sent %v of %s, and assigned %v", a.name, sent.Revision, sent.Placement, e.Binding.Assigned)
	}
	for _, m := range sent.Manifests {
		if other, taken := owners[m.ID]; taken && !sent.Keep {
			w.violate(invariantOwner, "%s is sent %s for %s and %s", a.name, title(m.ID), other, sent.Placement)
		}
		owners[m.ID] = sent.Placement
	}
	if !sent.Remove && !sent.Keep {
		w.checkContent(at, sent, e)
	}
}

// checkContent compares a work with the content of its commit, without the objects that are
// left to other placements, and with those that others left to it.
func (w *world) checkContent(at bindingKey, sent *work.Work, e *ledger.Entry) {
	want := maps.Clone(w.content(sent.Revision, at))
	if want == nil {
		want = map[api.ID]string{}
	}
	for _, y := range e.Unusual().Yields {
		delete(want, y.ID)
	}
	head := w.source.commits[w.saved.head].content(at.key.Name, at.cluster)
	for _, id := range e.Unusual().Early {
		want[id] = head[id]
	}
	got := map[api.ID]string{}
	for _, m := range sent.Manifests {
		got[m.ID] = valueOf(m.Object.Content)
		if _, ok := want[m.ID]; ok && !slices.Contains(e.Unusual().Early, m.ID) && !w.commitHasValue(sent.Revision.Commit, at, m.ID, got[m.ID]) {
			w.violate(invariantGit, "%s is sent %s as %q, and %s has %q", at.cluster, title(m.ID), got[m.ID], sent.Revision.Commit, want[m.ID])
		}
	}
	for id := range want {
		if _, ok := got[id]; !ok {
			w.violate(invariantGit, "%s is not sent %s, which is in %s of %s", at.cluster, title(id), sent.Revision.Commit, at.key)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			w.violate(invariantGit, "%s is sent %s, which is not in %s of %s", at.cluster, title(id), sent.Revision.Commit, at.key)
		}
	}
}

// commitHasValue reports whether a commit gives an object a value. The value of an override
// counts for every cluster, since labels change.
func (w *world) commitHasValue(commit string, at bindingKey, id api.ID, value string) bool {
	c := w.source.commits[commit]
	if c == nil {
		return false
	}
	o, overridden := c.overrides[id]
	return c.configMaps[id.Namespace][id.Name] == value || overridden && o.value == value
}

// checkDeletion is called before every deletion. An object that a placement in force wants on
// the cluster must not be deleted, nor one that its own content still has. The newest commit
// always counts. The commit that a cluster still has counts too, unless it is lost: then its
// content is not known.
func (w *world) checkDeletion(a *agent, by *work.Work, id api.ID) {
	b := a.passModel
	if what := w.blockReason(a, by, id); what != "" && !w.deletionAllowed(b, by, a.name) {
		w.violate(invariantAllowed, "%s deletes %s for %s: %s", a.name, title(id), by.Placement, what)
	}
	head := w.source.commits[b.head]
	for _, key := range slices.SortedFunc(maps.Keys(b.entries), byKey) {
		at := bindingKey{key, a.name}
		p, exists := head.placements[key.Name]
		if !b.keeps(at) || exists && p.reportDiff {
			continue
		}
		for _, r := range []placement.Revision{b.revision(at), {Commit: head.Hash}} {
			c := w.source.commits[r.Commit]
			if c == nil || c == head && p.invalid || c != head && c.lost {
				continue
			}
			if _, wanted := w.content(r, at)[id]; wanted {
				w.violate(invariantDelete, "%s deletes %s for %s, and %s has it at %s", a.name, title(id), by.Placement, key, c.Hash)
			}
		}
	}
	if _, wanted := w.content(by.Revision, bindingKey{by.Placement, a.name})[id]; wanted && !by.Remove {
		w.violate(invariantDelete, "%s deletes %s for %s, whose content has it", a.name, title(id), by.Placement)
	}
}

// blockReason returns why the deletion of an object for an existing placement, under any of its
// names, must be blocked; empty if it need not be.
func (w *world) blockReason(a *agent, by *work.Work, id api.ID) string {
	b := a.passModel
	p, exists := w.source.commits[b.head].placements[by.Placement.Name]
	switch {
	case !exists && b.renamed[by.Placement] != "" && id.Kind == "Namespace":
		return "all in the namespace goes with it, and the placement was renamed"
	case !exists || p.reportDiff:
		return ""
	}
	if by.Remove {
		for name := range b.entries[by.Placement] {
			if b.keeps(bindingKey{by.Placement, name}) {
				return "" // it has moved to other clusters
			}
		}
		return "it is on no cluster any more"
	}
	space := namespaceID(id.Namespace)
	inv := a.inventories[by.Placement]
	switch unmatched := w.unmatched(by, id); {
	case unmatched != "":
		return unmatched + " matches nothing, and may have selected it"
	case w.source.commits[by.Revision.Commit] != nil && len(w.content(by.Revision, bindingKey{by.Placement, a.name})) == 0:
		return "nothing is left of it"
	case id.Kind == "Namespace":
		return "all in the namespace goes with it"
	case inv != nil && inv.items[space] && a.objects[space] != nil && a.objects[space].ours && !a.wantedByAny(space) && !a.keptByOther(space, by.Placement):
		return "its namespace goes as well"
	}
	return ""
}

// unmatched returns a selector that no longer matches anything and that may have selected the
// object, which is any object outside of the namespaces that are still selected; empty if there
// is none.
func (w *world) unmatched(by *work.Work, id api.ID) string {
	c, name := w.source.commits[by.Revision.Commit], by.Placement.Name
	if c == nil {
		return ""
	}
	if _, selected := c.content(name, "")[namespaceID(id.Namespace)]; selected {
		return ""
	}
	for _, space := range c.unmatched(name) {
		return space
	}
	return ""
}

// keptByOther reports whether another placement has an object and keeps it.
func (a *agent) keptByOther(id api.ID, but api.PlacementKey) bool {
	for _, w := range a.pass {
		if w.Placement != but && a.owns(w.Placement, id) && w.Keep {
			return true
		}
	}
	return false
}

// deletionAllowed reports whether a commit could have allowed the deletions of a work: one with
// the content that the cluster was assigned, under any name of the placement, or a later one.
// Under an earlier name, it is the content under the current name, if that is the newest.
func (w *world) deletionAllowed(b *model, by *work.Work, on string) bool {
	at, commit, renamed := bindingKey{by.Placement, on}, by.Revision.Commit, b.renamed[by.Placement] != ""
	if renamed {
		at.key.Name, commit = b.currentName(at.key.Name), b.renamed[by.Placement]
		head := w.source.commits[b.head].content(at.key.Name, on)
		if r := b.revision(at); b.keeps(at) && sameContent(w.content(r, at), head) {
			commit, renamed = r.Commit, false
		}
	}
	head, first := slices.Index(w.source.order, b.head), slices.Index(w.source.order, commit)
	if first < 0 {
		return true
	}
	name := at.key.Name
	if _, named := w.source.commits[commit].placements[name]; !named {
		name = w.contents[by.Revision.Hash].name // it had another name then
	}
	content := func(i int, name string) map[api.ID]string {
		return w.source.commits[w.source.order[i]].content(name, "")
	}
	for !renamed && first > 0 {
		before := w.nameAt(b, first-1, name)
		if !sameContent(content(first-1, before), content(first, name)) {
			break
		}
		first, name = first-1, before
	}
	for i := first; i <= head; i++ {
		if !w.source.commits[w.source.order[i]].withoutTrailer {
			return true
		}
	}
	return false
}
