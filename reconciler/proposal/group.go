package proposal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
)

const (
	// mostGrouped is the maximum number of changes in one pull request.
	mostGrouped = 50
	// longestDiffs is how long the diffs in the body of a group may be together.
	longestDiffs = 30_000
)

// A group is the changes that one pull request has.
type group struct {
	// name is that of its placement, and hash is part of the name of its branch.
	name, hash string
	// changes are ordered like their edits, each of which was made in the files as the one before left them.
	changes []*change
	files   []edit.FileChange
}

// An offer is what a pull request or an issue has: a change, or a group.
type offer interface {
	title() string
	labels() []string
	message(marker string) string
	body(fleet string, waiting []*change) string
	// edit returns the changed files, and all the changes, of which there is at least one.
	edit() []edit.FileChange
	all() []*change
}

func (c *change) edit() []edit.FileChange { return c.files }
func (c *change) all() []*change          { return []*change{c} }

func (g *group) edit() []edit.FileChange { return g.files }
func (g *group) all() []*change          { return g.changes }

// sorted returns the changes by object, as people read them.
func (g *group) sorted() []*change {
	return slices.SortedStableFunc(slices.Values(g.changes), func(a, b *change) int {
		return cmp.Or(strings.Compare(a.id.String(), b.id.String()), strings.Compare(a.hash, b.hash))
	})
}

// title counts the changes, or is that of the only one.
func (g *group) title() string {
	if len(g.changes) == 1 {
		return g.changes[0].title()
	}
	return forge.Shorten(fmt.Sprintf("Drift: %s: %s on %s", g.name, markdown.Count(len(g.changes), "change"), g.share()), longestTitle)
}

// share counts the clusters that have any of the changes.
func (g *group) share() string {
	clusters := map[string]bool{}
	for _, c := range g.changes {
		for _, name := range c.clusters() {
			clusters[name] = true
		}
	}
	return markdown.Count(len(clusters), "cluster")
}

// labels returns the labels of all changes. Of the severities, the first in their order counts.
func (g *group) labels() []string {
	all := []string{driftLabel, severityLabel + defaultSeverity}
	for _, s := range slices.Backward(severities) {
		if slices.ContainsFunc(g.changes, func(c *change) bool { return c.severity() == s.name }) {
			all[1] = severityLabel + s.name
		}
	}
	for _, c := range g.changes {
		for _, l := range c.labels() {
			if !strings.HasPrefix(l, severityLabel) && !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// trailers returns the trailers that allow the deletions among the changes.
func (g *group) trailers() []string {
	var out []string
	for _, c := range g.changes {
		for _, line := range c.allowTrailers() {
			if !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

func (g *group) message(marker string) string {
	if len(g.changes) == 1 {
		return g.changes[0].message(marker)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: take over drift of %s\n\nWhat was changed on member clusters:\n", g.name, markdown.Count(len(g.changes), "object"))
	for _, c := range g.sorted() {
		fmt.Fprintf(&b, "- %s %s: %s\n", c.id.Kind, markdown.Plain(nameOf(c.id)), c.what())
	}
	b.WriteString("\n")
	for _, line := range g.trailers() {
		b.WriteString(line + "\n")
	}
	b.WriteString(marker + "\n")
	return b.String()
}

// body has a section for each change, and then what merging and closing do to all of them.
func (g *group) body(fleet string, waiting []*change) string {
	end := marker(fleet, g.hash) + "\n" + offersLine(g.changes)
	if len(g.changes) == 1 {
		return g.changes[0].text(waiting) + end
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** of objects of %s on %s are left as they are until this pull request is merged or closed.\n\n",
		markdown.Count(len(g.changes), "change"), markdown.Code(g.name), g.share())
	diffs := 0
	for _, c := range g.sorted() {
		fmt.Fprintf(&b, "### %s: %s on %s (%s)\n\n", markdown.Code(c.id.Kind+" "+nameOf(c.id)), c.what(), c.share(), markdown.Code(c.shortName()))
		diff := markdown.CodeBlock("diff", c.diff())
		if diffs += len(diff); diffs > longestDiffs {
			diff = "The values are left out, since there are many: see " + markdown.Code("gitfleet proposals show "+c.shortName()) + ".\n"
		}
		b.WriteString(diff)
		c.writeFacts(&b)
		var effects strings.Builder
		c.writeEffects(&effects)
		if effects.Len() > 0 {
			b.WriteString("- **Merging:**" + effects.String() + "\n")
		}
		b.WriteString("\n")
	}
	writeSquashing(&b, g.trailers())
	b.WriteString("**Merging** takes all of this over into Git. Except where it says so above, nothing is written to these objects on these clusters.\n\n")
	fmt.Fprintf(&b, "**Closing** reverts all of it, also if somebody makes the same changes once more. To revert only one of them, use %s: it then leaves this pull request.\n\n", markdown.Code("gitfleet proposals close NAME"))
	writeDetails(&b, g.sorted(), waiting)
	return b.String() + end
}

const offersPrefix = "<!-- gitfleet offers:"

// offersLine is the line of a body that says which changes it has, where nobody sees it.
func offersLine(changes []*change) string {
	var b strings.Builder
	b.WriteString(offersPrefix)
	for _, c := range changes {
		b.WriteString(" " + c.hash)
	}
	return b.String() + " -->\n"
}

// offeredIn returns the hashes of the changes in the body of a group; grouped is false if it is not that of a group.
func offeredIn(body string) (hashes []string, grouped bool) {
	_, rest, found := strings.Cut(body, "\n"+offersPrefix)
	list, _, ended := strings.Cut(rest, " -->")
	if !found || !ended {
		return nil, false
	}
	return strings.Fields(list), true
}

// withoutOffer returns the body of a group without a change.
func withoutOffer(body, hash string) string {
	before, rest, _ := strings.Cut(body, "\n"+offersPrefix)
	return before + "\n" + offersPrefix + strings.Replace(rest, " "+hash, "", 1)
}

// isIn reports whether a change is offered by a pull request together with others, or could be.
func (c *change) isIn(branch string) bool {
	return isPullRequest(branch) && branchHash(branch) != c.hash
}

// A grouper is the state of pull requests with several changes.
type grouper struct {
	// combinations are the edits of groups, by hash. Changes that cannot be combined are offered alone, as long as the commit in
	// alone is in force, by hash.
	combinations map[string]*combination
	alone        map[string]string
	// ended has the hashes of the changes in pull requests that have ended, by branch, and free the first branch of a group
	// without a pull request, as of the last list.
	ended map[string][]string
	free  map[string]string
	// updated are the branches that this pass has updated.
	updated map[string]bool
	// budget is the number of edits that this pass may still combine; unfinished says that it was not enough.
	budget     int
	unfinished bool
}

func newGrouper() grouper {
	return grouper{combinations: map[string]*combination{}, alone: map[string]string{}, ended: map[string][]string{}, free: map[string]string{}}
}

// beginPass forgets what is of earlier commits.
func beginPass(f *follower) {
	f.budget, f.unfinished, f.updated = mostEdits, false, map[string]bool{}
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
	for attempt := 1; attempt <= mostAttempts; attempt++ {
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

// isJoining reports whether a change is to be offered with others, and nothing was decided about it before.
func isJoining(f *follower, c *change, s *offerState, now time.Time) bool {
	return s.name == "" && s.neverOffered && f.putBack[c.hash] == "" && groupOf(f, c) != "" && (s.asked || !s.due(f.tracker.cfg.MinAge).After(now))
}

// join opens the pull request of a placement with all changes that are due, or adds them to it.
func join(f *follower, ctx context.Context, c *change, s *offerState, now time.Time) error {
	placement := groupOf(f, c)
	hash := groupHash(f.tracker.cfg.Fleet, placement)
	pr := f.findOpen(hash)
	if pr == nil && f.atLimit(s) {
		return nil
	}
	var changes []*change
	if pr != nil {
		if mayListAny(pr.Body, f.known.unheard) {
			s.waits = "not all clusters with changes in " + pr.URL + " have answered yet"
			return nil
		}
		changes = offeredBy(f, pr.name)
	}
	for _, other := range f.changesByAge() {
		if groupOf(f, other) == placement && isJoining(f, other, f.states[other.hash], now) {
			changes = append(changes, other)
		}
	}
	for _, c := range changes[min(len(changes), mostGrouped):] {
		f.states[c.hash].waits = fmt.Sprintf("the pull request of %s has %d changes, which is the most", placement, mostGrouped)
	}
	g, err := combine(f, placement, changes[:min(len(changes), mostGrouped)])
	if err != nil || g == nil {
		return err
	}
	if pr == nil {
		branch := f.free[hash]
		if branch == "" { // it is found by the next search
			s.neverOffered = false
			return nil
		}
		if pr, err = f.create(ctx, g, branch, now); err != nil {
			return err
		}
		delete(f.free, hash)
		f.open[branch] = *pr
		f.written[branch] = written{files: g.files, message: f.commit(g, branch, now).Message}
	}
	for _, c := range g.changes {
		s := f.states[c.hash]
		s.found(*pr)
		if s.askedBy != "" {
			f.record(history.ProposalOpened, heldItem{change: c}, s.askedBy, s.URL)
			s.askedBy = ""
		}
	}
	return nil
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

// leavesGroup reports whether a change cannot be part of its pull request any more, since no edit makes it or a user wants it back.
func leavesGroup(f *follower, c *change, s *offerState, _ time.Time) bool {
	return c.isIn(s.name) && s.State == forge.Open && (c.reason != nil || f.putBack[c.hash] != "")
}

// leaveGroup makes a change leave its pull request, which is updated afterwards.
func leaveGroup(f *follower, _ context.Context, _ *change, s *offerState, _ time.Time) error {
	s.offerAnew()
	return nil
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
	changes = changes[:min(len(changes), mostGrouped)]
	if len(changes) == 0 || f.known.lost || mayListAny(pr.Body, f.known.unheard) || hasUndecided(f, s.name) {
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

// isNeeded reports whether a pull request or an issue offers a change that is held, or may be.
func isNeeded(f *follower, pr thread, undecided map[string]bool) bool {
	hashes, _ := offeredIn(pr.Body)
	for _, hash := range hashes {
		if s := f.states[hash]; s != nil && s.name == "" || undecided[hash] {
			return true
		}
	}
	if hash := branchHash(pr.name); f.states[hash] != nil || undecided[hash] {
		return true
	}
	for _, s := range f.states {
		if s.name == pr.name {
			return true
		}
	}
	return !isRollback(pr.name) && !slices.Contains(pr.Labels, rollback.Label) && mayListAny(pr.Body, f.known.unheard)
}
