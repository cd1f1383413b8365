package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// If one commit adds a placement and removes another one of the same kind and namespace, and the new one selects at
// least one object that the other one holds, it is the same placement under a new name: it takes over the record of the
// other, with its bindings, revisions and stops. So a rename causes no rollout, and cannot be used to bypass one. If
// more than one placement qualifies, it is not known which one is meant: then nothing is removed, and nothing new is
// placed, until a commit makes it clear.

// A candidate is a placement that is gone, with the new placements that may be its new name.
type candidate struct {
	key        api.PlacementKey
	successors []successor
}

// A successor is a new placement that selects objects of a placement that is gone.
type successor struct {
	*hub.Placement
	// uncertain is why that is not certain; empty if it is.
	uncertain string
}

// predecessors maps each new placement to the placements that may have been renamed to it.
type predecessors map[api.PlacementKey][]api.PlacementKey

// rename finds the renamed placements, and continues with a copy of the ledger that has them under their new keys.
func (pl *planner) rename() {
	all := pl.candidates()
	if len(all) == 0 {
		return
	}
	of := predecessorsOf(all)
	// An uncertain rename of a placement whose deletion the commit allows is a deletion.
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.newName(of) == nil && Allows(pl.InForce.Commit.Message, c.key) })
	of = predecessorsOf(all)
	for _, c := range all {
		if to := c.newName(of); to != nil {
			pl.renamed = append(pl.renamed, ledger.Rename{From: c.key, To: to.Key})
		}
	}
	pl.unclear = unclearRenames(all, of)
	for _, key := range pl.Ledger.Placements() { // earlier keys of those that are gone
		if text := pl.unclear[pl.Ledger.Placement(key).Into]; text != "" && pl.unclear[key] == "" {
			pl.unclear[key] = text
		}
	}
	if len(pl.renamed) > 0 {
		pl.Ledger = pl.Ledger.Renamed(pl.renamed)
		pl.memo.suspensions.Update(pl.Ledger, pl.Now) // suspensions are renamed as well
	}
}

// candidates returns the placements that may have been renamed, by key.
func (pl *planner) candidates() []candidate {
	var added []*hub.Placement
	for _, p := range pl.InForce.Placements {
		record := pl.Ledger.Placement(p.Key)
		if record == nil || record.Deleted || record.Generation == 0 && len(record.Entries()) == 0 { // without entries, only its lost runs are recorded
			added = append(added, p)
		}
	}
	if len(added) == 0 {
		return nil
	}
	var out []candidate
	for _, key := range pl.Ledger.Placements() {
		record := pl.Ledger.Placement(key)
		if pl.memo.spec(key) != nil || record.Deleted || len(record.Entries()) == 0 {
			continue
		}
		c, owned := candidate{key: key}, pl.ownedBy(key)
		for _, p := range added {
			if p.Key.Namespace != key.Namespace {
				continue
			}
			if selects, uncertain := pl.selectsAny(p, owned); selects || uncertain != "" {
				c.successors = append(c.successors, successor{p, uncertain})
			}
		}
		if len(c.successors) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func predecessorsOf(all []candidate) predecessors {
	of := predecessors{}
	for _, c := range all {
		for _, s := range c.successors {
			of[s.Key] = append(of[s.Key], c.key)
		}
	}
	return of
}

// certain returns the successors that select objects of the placement with certainty.
func (c candidate) certain() []successor {
	return slices.DeleteFunc(slices.Clone(c.successors), func(s successor) bool { return s.uncertain != "" })
}

// newName returns the only certain successor, if it succeeds no other placement; nil if there is none.
func (c candidate) newName(of predecessors) *hub.Placement {
	if to := c.certain(); len(to) == 1 && len(of[to[0].Key]) == 1 {
		return to[0].Placement
	}
	return nil
}

// unclearRenames returns the reason for each placement of an uncertain rename: for those that are gone and for their
// successors.
func unclearRenames(all []candidate, of predecessors) map[api.PlacementKey]string {
	out := map[api.PlacementKey]string{}
	for _, c := range all {
		if c.newName(of) != nil {
			continue
		}
		text, to := c.explainUncertainty(of)
		out[c.key] = text
		for _, s := range to {
			out[s.Key] = text
		}
	}
	return out
}

// explainUncertainty says why the rename is uncertain and what to do. to are the successors that the text names.
func (c candidate) explainUncertainty(of predecessors) (text string, to []successor) {
	why, fix := "", ""
	switch to = c.certain(); len(to) {
	case 0:
		to = c.successors
		why, fix = fmt.Sprintf("%s may be its new name, but %s", named(to), to[0].uncertain), "Let exactly one new placement select what it holds"
	case 1:
		others := slices.DeleteFunc(slices.Clone(of[to[0].Key]), func(key api.PlacementKey) bool { return key == c.key })
		why = fmt.Sprintf("%s selects what it holds and what %s holds, which is gone as well", named(to), others[0])
		fix = "Let a new placement select what only one of them holds"
	default:
		why, fix = named(to)+" select what it holds: each of them may be its new name", "Let only one of them select it"
	}
	return fmt.Sprintf("%s is gone from Git, and %s. It keeps what it holds, and nothing new is placed. %s, bring %s back, or allow its deletion with the trailer %q",
		c.key, why, fix, c.key, api.AllowTrailer+": "+c.key.String()), to
}

func named(all []successor) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Key.String() + " (" + s.Origin.String() + ")"
	}
	return strings.Join(names, " and ")
}

// ownedObjects are the known objects of a placement.
type ownedObjects struct {
	ids map[api.ID]bool
	// unknown is the reason why there may be others. reading says that a commit is still being loaded, and that they
	// will be known afterwards.
	unknown string
	reading bool
}

// ownedBy returns the objects that a placement last selected and those that were assigned to its clusters. Planning
// the placement requests the commits that are missing for that.
func (pl *planner) ownedBy(key api.PlacementKey) (owned ownedObjects) {
	if ids, known := pl.Owned[key]; known {
		owned.ids = make(map[api.ID]bool, len(ids))
		for _, id := range ids {
			owned.ids[id] = true
		}
		return owned
	}
	defer func() {
		if recover() != nil { // planning the placement reports the panic
			owned = ownedObjects{unknown: "because of an internal error it is not known what it holds"}
		}
	}()
	record := pl.Ledger.Placement(key)
	pp := placementPlanner{planner: pl, current: &result{placement: &Placement{Key: key, Record: *record}}}
	owned.ids = map[api.ID]bool{}
	add := func(ms []*work.Manifest) {
		for _, m := range ms {
			owned.ids[m.ID] = true
		}
	}
	for _, p := range pl.memo.contents[key] {
		add(p.renderer.Manifests())
	}
	seen := map[placement.Revision]bool{}
	for _, b := range record.Bindings() {
		if !b.HasRevision() || seen[b.Assigned] {
			continue
		}
		seen[b.Assigned] = true
		switch _, content, known := pp.findContent(b.Cluster, b.Assigned); {
		case content != nil:
			add(content.Manifests)
		case !known && pl.stateOf(b.Assigned.Commit) == commitLoading:
			owned.unknown, owned.reading = "commit "+b.Assigned.Commit+", which its content comes from, is still being loaded", true
		case !known && !owned.reading:
			owned.unknown = "commit " + b.Assigned.Commit + ", which its content comes from, cannot be loaded"
		}
	}
	return owned
}

// selectsAny reports whether a new placement selects any of the objects that another one holds. uncertain is the reason why
// that is not known.
func (pl *planner) selectsAny(p *hub.Placement, owned ownedObjects) (selects bool, uncertain string) {
	defer func() {
		if recover() != nil {
			selects, uncertain = false, "because of an internal error it is not known what it selects"
		}
	}()
	now := pl.memo.prepare(pl.InForce, p.Key)
	switch {
	case now.renderer == nil:
		return false, "its resource selectors are invalid"
	case len(now.renderer.Manifests()) == 0:
		return false, "selects nothing"
	case owned.reading:
		return false, owned.unknown
	case slices.ContainsFunc(now.renderer.Manifests(), func(m *work.Manifest) bool { return owned.ids[m.ID] }):
		return true, ""
	}
	return false, owned.unknown
}
