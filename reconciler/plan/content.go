package plan

import (
	"iter"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// look finds out what a cluster has been told to hold so far, or was before it
// was told to remove it: some of that may be there still.
func (t *thinker) look(c *OnCluster) {
	if c.Entry == nil || !c.Entry.Binding.Released() {
		return
	}
	b := c.Entry.Binding
	if p, content, known := t.find(b); known {
		t.use(p)
		c.had, c.unmade = content, content == nil
		return
	}
	c.unread = t.readable(b.Assigned.Commit)
	t.miss(b.Assigned.Commit)
}

// find finds what a binding's revision stands for: what the placement gives the
// cluster at any commit that we know, if it has the hash: with the labels that
// the cluster has today, or with those it had then. The content is nil if the
// revision is one that cannot be made.
func (t *thinker) find(b placement.Binding) (from *prepared, content *work.Rendered, known bool) {
	cluster, _ := t.memo.fleet.cluster(b.Cluster)
	for p := range t.contents(b.Assigned.Commit) {
		if content, known := p.gave(cluster, b.Assigned); known {
			t.memo.keep(t.now.p.Key, p)
			return p, content, true
		}
	}
	return nil, nil, false
}

// contents iterates over the known contents of the placement, under its key and its
// earlier keys: first those in memory, then those of the loaded commits, beginning
// with the given commit.
func (t *thinker) contents(commit string) iter.Seq[*prepared] {
	keys := append([]api.PlacementKey{t.now.p.Key}, t.now.p.Record.Formerly...)
	return func(yield func(*prepared) bool) {
		for _, key := range keys {
			for _, p := range t.known(key) {
				if !yield(p) {
					return
				}
			}
		}
		for _, s := range t.snapshots(commit) {
			for _, key := range keys {
				if p := t.memo.prepareAt(s, key); p != nil && p.renderer != nil && !yield(p) {
					return
				}
			}
		}
	}
}

// gave returns what a cluster gets, or got with the labels of a revision, if it
// has the hash.
func (p *prepared) gave(c placement.Cluster, r placement.Revision) (content *work.Rendered, known bool) {
	rendered, err := p.renderer.For(c)
	if rendered.Hash != r.Hash && p.renderer.Labels(c) != r.Labels {
		rendered, err = p.renderer.For(work.WithLabels(c, r))
	}
	switch {
	case rendered.Hash != r.Hash:
		return nil, false
	case err != nil:
		return nil, true
	}
	return &rendered, true
}

// known are the contents of a placement that we know, the newest first.
func (t *thinker) known(key api.PlacementKey) []*prepared {
	var all []*prepared
	if now := t.now.now; now != nil && now.renderer != nil {
		all = append(all, now)
	}
	if last := t.memo.last[key]; last != nil && !slices.Contains(all, last) {
		all = append(all, last)
	}
	return append(all, t.memo.earlier[key]...)
}

// snapshots are the commits we have besides the head, first the one that is
// meant.
func (t *thinker) snapshots(commit string) []*hub.Snapshot {
	var all []*hub.Snapshot
	if s := t.Past[commit]; s != nil {
		all = append(all, s)
	}
	for _, hash := range slices.Sorted(maps.Keys(t.Past)) {
		if hash != commit && hash != t.Head.Commit.Hash {
			all = append(all, t.Past[hash])
		}
	}
	return all
}

// use notes that clusters hold, or held until now, what something gives.
func (t *thinker) use(p *prepared) {
	if !slices.Contains(t.now.uses, p) {
		t.now.uses = append(t.now.uses, p)
	}
}

// miss notes that nobody knows what a commit gave.
func (t *thinker) miss(commit string) {
	if slices.Contains(t.now.commits, commit) {
		return
	}
	t.now.commits = append(t.now.commits, commit)
	switch {
	case t.readable(commit):
		t.now.awaited = append(t.now.awaited, commit)
	case t.Past[commit] == nil:
		t.now.lost = append(t.now.lost, commit)
	}
}

// readable reports whether a commit that we do not have may still be read.
func (t *thinker) readable(commit string) bool {
	return commit != t.Head.Commit.Hash && t.Past[commit] == nil && t.Lost[commit] == nil
}
