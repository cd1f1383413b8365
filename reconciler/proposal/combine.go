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
