package proposal

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// beginPass forgets what is of earlier commits.
func beginPass(f *follower) {
	f.budget, f.unfinished, f.updated = maxEdits, false, map[string]bool{}
	maps.DeleteFunc(f.combinations, func(_ string, k *combination) bool { return k.commit != f.known.commit })
	maps.DeleteFunc(f.alone, func(_, commit string) bool { return commit != f.known.commit })
}

// groupOf returns the placement with whose other changes one is offered; empty if it is offered alone.
func groupOf(f *follower, c *change) string {
	if !f.tracker.cfg.ByPlacement || c.rollback != nil || c.reason != nil || f.alone[c.hash] == f.known.commit || f.known.files == nil {
		return ""
	}
	for _, d := range c.drifts {
		if d.Placement != c.drifts[0].Placement {
			return ""
		}
	}
	return c.drifts[0].Placement
}

func groupHash(fleet, placement string) string { return hashOf(fleet, "placement", placement) }

// findInGroups returns the pull request that has ended and in which a change was offered with the others of its placement, as
// far as it still counts; nil if there is none.
func findInGroups(f *follower, ctx context.Context, placement, hash string, since time.Time) (*thread, error) {
	group := groupHash(f.tracker.cfg.Fleet, placement)
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		branch := branchOf(branchPrefix, group, attempt)
		if _, open := f.open[branch]; open {
			continue
		}
		hashes, known := f.ended[branch]
		if !known {
			if f.free[group] == branch {
				return nil, nil
			}
			pr, err := f.tracker.find(ctx, branch)
			if err != nil {
				return nil, err
			}
			if pr == nil {
				f.free[group] = branch
				return nil, nil
			}
			hashes, _ = offeredIn(pr.Body)
			f.ended[branch] = hashes
		}
		if !slices.Contains(hashes, hash) {
			continue
		}
		pr, err := f.tracker.find(ctx, branch)
		if err != nil || pr != nil && !isOver(pr, since) && stillOffers(pr, hash) {
			return pr, err
		}
	}
	f.alone[hash] = f.known.commit // too many
	return nil, nil
}

// stillOffers reports whether a pull request decides about a change. People may have closed it before it had the change, and
// may have removed the line that says so.
func stillOffers(pr *thread, hash string) bool {
	hashes, grouped := offeredIn(pr.Body)
	return !grouped || slices.Contains(hashes, hash) || branchHash(pr.name) == hash
}

// mayStay reports whether a change can be in an open pull request: its own, or one that it shares.
func mayStay(f *follower, c *change, pr *thread) bool {
	return pr.isIssue() || !c.isIn(pr.name) || c.reason == nil && f.putBack[c.hash] == "" && f.alone[c.hash] != f.known.commit
}

// offeredBy returns the changes that the pull request of a branch offers, in the order in which its body has them.
func offeredBy(f *follower, branch string) []*change {
	hashes, _ := offeredIn(f.open[branch].Body)
	var out []*change
	for _, c := range f.changesByAge() {
		if s := f.states[c.hash]; s.name == branch && s.State == forge.Open && c.reason == nil && f.putBack[c.hash] == "" {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *change) int { return rank(hashes, a.hash) - rank(hashes, b.hash) })
	return out
}

// rank returns the index of a text in a list, or the length of the list.
func rank(list []string, text string) int {
	if i := slices.Index(list, text); i >= 0 {
		return i
	}
	return len(list)
}

// combine makes the edits of some changes of a placement in one tree. It returns nil if that takes more passes, or if none of
// them can be made.
func combine(f *follower, placement string, changes []*change) (*group, error) {
	hash := groupHash(f.tracker.cfg.Fleet, placement)
	k := f.combinations[hash]
	if k == nil || !k.continues(f.known.commit, changes) {
		k = newCombination(f.known.commit, f.known.files, f.known.head, f.known.load)
		f.combinations[hash] = k
	}
	for _, c := range changes[len(k.memos):] {
		if f.budget--; f.budget < 0 {
			f.unfinished = true
			return nil, nil
		}
		if err := k.extend(c); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if k.failed[c.hash] {
			f.alone[c.hash] = f.known.commit
			f.states[c.hash].offerAnew()
		}
	}
	if len(k.made) == 0 {
		return nil, nil
	}
	g := &group{name: placement, hash: hash, files: k.edits.Files()}
	for i, made := range k.made {
		c := *made // with what may have changed since
		at := slices.IndexFunc(changes, func(c *change) bool { return c.memo == made.memo })
		c.drifts, c.source, c.object, c.putsBack = changes[at].drifts, changes[at].source, changes[at].object, nil
		for _, other := range changes[at].putsBack {
			if !slices.ContainsFunc(k.made, func(m *change) bool { return m.hash == other.hash }) {
				c.putsBack = append(c.putsBack, other)
			}
		}
		k.made[i] = &c
		g.changes = append(g.changes, &c)
	}
	return g, nil
}

// currentOffer returns what the pull request or issue of a change has to have now; nil if that is not known yet, or if this
// pass has updated the group.
func currentOffer(f *follower, c *change, s *offerState) (offer, error) {
	if !c.isIn(s.name) {
		return c, nil
	}
	if f.updated[s.name] {
		return nil, nil
	}
	f.updated[s.name] = true
	pr := f.open[s.name]
	changes := offeredBy(f, s.name)
	changes = changes[:min(len(changes), maxGrouped)]
	if len(changes) == 0 || f.known.lost || mayListAny(pr.Body, f.known.unanswered) || hasUndecided(f, s.name) {
		return nil, nil
	}
	g, err := combine(f, changes[0].drifts[0].Placement, changes)
	if err != nil || g == nil {
		return nil, err
	}
	g.hash = branchHash(s.name)
	return g, nil
}

// offeredWith returns the names of the other changes in the pull request of one.
func offeredWith(f *follower, c *change, s *offerState) []string {
	if !c.isIn(s.name) {
		return nil
	}
	var out []string
	for hash, other := range f.states {
		if hash != c.hash && other.name == s.name {
			out = append(out, hash)
		}
	}
	slices.Sort(out)
	return out
}

// hasUndecided reports whether a pull request has a change about which not enough is known yet.
func hasUndecided(f *follower, branch string) bool {
	for hash := range f.known.undecided() {
		if s := f.states[hash]; s != nil && s.name == branch {
			return true
		}
	}
	return false
}
