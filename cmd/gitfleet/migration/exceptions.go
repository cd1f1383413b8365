package migration

import (
	"maps"
	"path"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// maxExceptions limits the directories that an overlay leaves out.
const maxExceptions = 500

// leaveOut leaves a directory, and all below it, out of an overlay with wildcards, and reports whether it may leave out so many.
func (u *unit) leaveOut(dir string) bool {
	if len(u.except) == maxExceptions {
		return false
	}
	i, found := slices.BinarySearch(u.except, dir)
	if !found {
		u.except = slices.Insert(u.except, i, dir)
	}
	return true
}

// leavesOut reports whether an overlay with wildcards leaves a directory out.
func (u *unit) leavesOut(dir string) bool {
	return slices.ContainsFunc(u.except, func(except string) bool { return dir == except || within(except, dir) })
}

func setOf(dirs []string) map[string]bool {
	set := map[string]bool{}
	for _, dir := range dirs {
		set[dir] = true
	}
	return set
}

// isIn reports whether a directory is one of some, or below one.
func isIn(set map[string]bool, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if set[dir] {
			return true
		}
	}
	return false
}

// outermost returns the directories that are not below others, sorted.
func outermost(dirs []string) []string {
	set := setOf(dirs)
	for dir := range setOf(dirs) {
		if isIn(set, path.Dir(dir)) {
			delete(set, dir)
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// leaveOutFailed leaves directories that cannot be built out of an overlay with wildcards, since a cluster would get nothing of it. What
// is not locked yet may be built later.
func (p *Proposal) leaveOutFailed(u *unit, o *api.BuiltOverlay, s *hub.Snapshot) {
	f := p.finder
	unlocked := 0
	for _, b := range s.Bases {
		if b.Commit == "" || b.Missing {
			unlocked++
		}
	}
	for _, c := range s.Charts {
		if c.Digest == "" || c.Missing {
			unlocked++
		}
	}
	if unlocked > 0 {
		f.changed = true
		f.leave("remote bases and charts that are not locked (%d): run gitfleet lock, and this command again, which leaves out directories that cannot be built for other reasons", unlocked)
		return
	}
	for _, c := range s.Clusters {
		keys, _ := overlay.BuildsFor(o, overlay.Cluster{Name: c.Name, Labels: c.Labels})
		for _, key := range keys {
			b := o.Builds[key]
			if b == nil || b.Err == "" || u.leavesOut(key) {
				continue
			}
			f.changed = true
			if u.leaveOut(key) {
				f.leave("%s: it cannot be built (%s); when it can, remove it from spec.except of ClusterOverlay %s", key, b.Err, u.name)
			} else {
				f.leave("%s: it cannot be built (%s), so that its clusters get nothing of ClusterOverlay %s; correct it", key, b.Err, u.name)
			}
		}
	}
}

// leaveOutNested leaves directories out whose objects others above them have as well, for each cluster that gets them: they are parts of
// those. It reports others that share objects.
func (p *Proposal) leaveOutNested(u *unit, o *api.BuiltOverlay, s *hub.Snapshot) {
	n := newNesting(o)
	for _, c := range s.Clusters {
		keys, _ := overlay.BuildsFor(o, overlay.Cluster{Name: c.Name, Labels: c.Labels})
		n.add(c.Name, keys)
	}
	for _, key := range slices.Sorted(maps.Keys(n.twice)) {
		p.finder.changed = true
		if u.leavesOut(key) {
			continue
		}
		if !n.needed[key] && u.leaveOut(key) {
			p.finder.leave("%s: it has objects of %s, which is built for the same clusters", key, n.above[key])
		} else {
			p.finder.leave("%s: cluster %s gets some of its objects twice, also from %s; leave them in one of the two", key, few(n.twice[key]), n.above[key])
		}
	}
}

// A nesting says which directories of an overlay are parts of others above them.
type nesting struct {
	overlay *api.BuiltOverlay
	known   map[[2]string]sharing
	// above is a directory that has objects of another one, and twice the clusters that get both.
	above map[string]string
	twice map[string][]string
	// needed are the directories without which a cluster would lack objects, and those that these are in.
	needed map[string]bool
}

func newNesting(o *api.BuiltOverlay) *nesting {
	return &nesting{overlay: o, known: map[[2]string]sharing{}, above: map[string]string{}, twice: map[string][]string{}, needed: map[string]bool{}}
}

// add adds the directories that a cluster gets.
func (n *nesting) add(cluster string, keys []string) {
	gets := setOf(keys)
	for _, key := range keys {
		covered := false
		for above := path.Dir(key); above != "." && !covered; above = path.Dir(above) {
			if !gets[above] {
				continue
			}
			with := n.sharing(above, key)
			covered = with == sharesAll
			if with != sharesNone {
				n.above[key] = above
				if c := n.twice[key]; len(c) == 0 || c[len(c)-1] != cluster {
					n.twice[key] = append(c, cluster)
				}
			}
		}
		if b := n.overlay.Builds[key]; covered || b != nil && b.Err == "" && len(b.Objects) == 0 {
			continue
		}
		for dir := key; dir != "." && !n.needed[dir]; dir = path.Dir(dir) {
			n.needed[dir] = true
		}
	}
}

// A sharing tells whether a directory shares none, some or all of its objects with another one.
type sharing int

const (
	sharesNone sharing = iota + 1
	sharesSome
	sharesAll
)

func (n *nesting) sharing(above, key string) sharing {
	pair := [2]string{above, key}
	if known := n.known[pair]; known != 0 {
		return known
	}
	a, b := n.overlay.Builds[above], n.overlay.Builds[key]
	n.known[pair] = sharesNone
	if a == nil || b == nil {
		return sharesNone
	}
	has, shared := map[api.ID]bool{}, 0
	for _, object := range a.Objects {
		has[object.ID] = true
	}
	for _, object := range b.Objects {
		if has[object.ID] {
			shared++
		}
	}
	switch {
	case shared > 0 && shared == len(b.Objects):
		n.known[pair] = sharesAll
	case shared > 0:
		n.known[pair] = sharesSome
	}
	return n.known[pair]
}
