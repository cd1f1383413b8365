package proposal

import "github.com/gitfleet/gitfleet/gitsource/forge"

// Versions without offer.rest gave changes that differ only in what is cut off the same hash. What
// they have offered counts for such a change, so that an upgrade neither closes it nor loses what was
// decided about it.

// isOf reports whether a pull request or an issue is about a change. One with the former hash is about
// the first change that follows it while it is open.
func (f *follower) isOf(pr trackedRequest, o *offer) bool {
	if pr.hash == o.hash || o.former == "" || pr.hash != o.former {
		return pr.hash == o.hash
	}
	for other, c := range f.changes {
		if other != o.hash && c.branch == pr.Branch && c.state == forge.Open {
			return false
		}
	}
	return true
}

// formerHashes are the former hashes of the held changes.
func (k *collected) formerHashes() map[string]bool {
	out := map[string]bool{}
	for _, o := range k.all() {
		out[o.former] = true
	}
	delete(out, "")
	return out
}
