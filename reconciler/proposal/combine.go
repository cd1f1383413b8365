package proposal

import (
	"errors"
	"io/fs"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

// A combination has the edits of several changes at one commit, in order.
type combination struct {
	commit string
	edits  *edit.Combination
	// memos are the changes that were tried, in order.
	memos []string
	// made are those that the edits make, and failed those that no edit makes beside the others, by hash.
	made   []*change
	failed map[string]bool
}

func newCombination(commit string, base fs.FS, head *hub.Snapshot, load func(fs.FS) (*hub.Snapshot, error)) *combination {
	return &combination{commit: commit, edits: edit.NewCombination(base, head, load), failed: map[string]bool{}}
}

// continues reports whether the combination can be extended to one of some changes at a commit.
func (k *combination) continues(commit string, changes []*change) bool {
	if k.commit != commit || len(k.memos) > len(changes) {
		return false
	}
	for i, memo := range k.memos {
		if memo != changes[i].memo {
			return false
		}
	}
	return true
}

// extend makes one more change. The error is edit.ErrUnreadable if the files cannot be read at the moment.
func (k *combination) extend(c *change) error {
	result, err := k.edits.Add(c.target)
	if errors.Is(err, edit.ErrUnreadable) {
		return err
	}
	k.memos = append(k.memos, c.memo)
	if err != nil {
		k.failed[c.hash] = true
		return nil
	}
	made := *c // the source stays that in the commit in force
	made.files, made.override, made.others = result.Files, result.Override, nil
	if result.Override == "" {
		for _, h := range c.target.Others {
			made.others = append(made.others, h.Cluster)
		}
	}
	k.made = append(k.made, &made)
	return nil
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
