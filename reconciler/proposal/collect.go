package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// maxEdits is the maximum number of edits that one pass computes, since each of them loads the
// files. Other changes wait for the next pass.
const maxEdits = 10

// A collector groups the held drifts of reports into changes. It caches the edits for the commit
// in force, each of which was verified.
type collector struct {
	fleet string
	load  func(fs.FS) (*hub.Snapshot, error)

	commit string
	edits  map[string]cachedEdit
	// left is the number of edits that this pass may still compute. next is the hash of the first
	// change for which none was left, with which the next pass begins; empty if all were computed.
	left int
	next string
	// unreadable says that a file could not be read in the last pass.
	unreadable bool
	// used are the keys of the edits that the last pass needed.
	used map[string]bool
	// rollbacks are the edits that undo the failed contents of the last report.
	rollbacks map[string]cachedRollback
}

// cachedEdit is the result of computing an edit. partial says that it fails only because not all
// clusters that get the object have the change.
type cachedEdit struct {
	edit    *edit.Result
	err     error
	partial bool
	// source is the line of the first field if there is no edit.
	source api.Origin
}

// collect groups the held drifts of a report. The files must be those of the commit in force.
func (col *collector) collect(r *status.Report, files fs.FS) (offers []*change, others []notOffered) {
	if col.commit != r.InForce.Commit.Hash {
		col.commit, col.edits = r.InForce.Commit.Hash, map[string]cachedEdit{}
	}
	byHash := map[string]*change{}
	for i := range r.Drifts {
		d := &r.Drifts[i]
		if !d.State.AwaitsDecision(d.Rule) {
			continue
		}
		c := newChange(col.fleet, d)
		if byHash[c.hash] == nil {
			byHash[c.hash] = c
			if _, m := r.TraceDrift(d); m != nil {
				c.object, c.source = m.Object.Content.Object, m.Origin
			}
		}
		c = byHash[c.hash]
		c.drifts = append(c.drifts, d)
	}
	editor := &edit.Editor{Load: col.load, Files: files, Head: r.InForce}
	hashes := slices.Sorted(maps.Keys(byHash))
	first, _ := slices.BinarySearch(hashes, col.next)
	col.left, col.next, col.unreadable, col.used = maxEdits, "", false, map[string]bool{}
	for _, hash := range slices.Concat(hashes[first:], hashes[:first]) {
		c := byHash[hash]
		if rule := driftRule(c.drifts[0]); rule.Mode == api.DriftReport {
			others = append(others, notOffered{change: c, state: Reported, message: rule.HeldMessage()})
			continue
		}
		err := col.computeEdit(c, r, editor)
		if errors.Is(err, errNotTried) && col.next == "" {
			col.next = hash
		}
		col.unreadable = col.unreadable || errors.Is(err, edit.ErrUnreadable)
		inGit := errors.Is(err, edit.ErrInManifest)
		if inGit {
			err = fmt.Errorf("commit %.8s has it; left as it is until the rollout reaches the cluster", col.commit)
		}
		undecided := errors.Is(err, edit.ErrUnreadable) || errors.Is(err, errUnknown) || errors.Is(err, errNotTried)
		if inGit || undecided {
			others = append(others, notOffered{c, Unsettled, err.Error(), undecided})
			continue
		}
		c.reason = err
		offers = append(offers, c)
	}
	findPutBack(offers, byHash)
	maps.DeleteFunc(col.edits, func(memo string, _ cachedEdit) bool { return !col.used[memo] })
	slices.SortFunc(offers, func(a, b *change) int { return cmp.Compare(a.hash, b.hash) })
	return offers, others
}

// findPutBack finds the changes that the merge of each offer puts back: those of the same object on a cluster that gets a new
// version of it. What was added beside a manifest stays.
func findPutBack(offers []*change, all map[string]*change) {
	byID := map[api.ID][]*change{}
	for _, hash := range slices.Sorted(maps.Keys(all)) {
		if c := all[hash]; !c.addition {
			byID[c.id] = append(byID[c.id], c)
		}
	}
	for _, c := range offers {
		if c.reason != nil {
			continue
		}
		reached := slices.Concat(c.clusters(), c.others)
		for _, other := range byID[c.id] {
			if other != c && slices.ContainsFunc(other.clusters(), func(cluster string) bool { return slices.Contains(reached, cluster) }) {
				c.putsBack = append(c.putsBack, other)
			}
		}
	}
}

// errUnknown is returned if the desired content of the clusters is not known yet, for instance
// after a restart until their commits are loaded.
var errUnknown = errors.New("not known yet")

// errNotTried is returned if the edit was not computed yet because other changes come first.
var errNotTried = errors.New("left as it is; whether it can be offered as a pull request is found out after other changes")

// computeEdit computes the edit of a change, and sorts its clusters.
func (col *collector) computeEdit(c *change, r *status.Report, editor *edit.Editor) error {
	slices.SortFunc(c.drifts, func(a, b *status.Drift) int { return cmp.Compare(a.Cluster, b.Cluster) })
	t := edit.Target{ID: c.id, Drift: c.paths, Deleted: c.deleted}
	changed := map[string]bool{}
	var first *work.Manifest
	for _, d := range c.drifts {
		trace, m := r.TraceDrift(d)
		if trace == nil { // a member drops the drift of an object that it no longer gets
			return fmt.Errorf("left as it is; what Git wants on %s is %w", d.Cluster, errUnknown)
		}
		first = cmp.Or(first, m)
		if err := Adoptable(trace); err != nil {
			return err
		}
		key, err := api.ParsePlacement(d.Placement)
		if err != nil {
			return err
		}
		changed[d.Cluster] = true
		t.Changed = append(t.Changed, status.Holder{Cluster: d.Cluster, Placement: key})
	}
	holders, unknown := r.HoldersOf(c.id)
	if len(unknown) > 0 {
		return fmt.Errorf("left as it is; what Git wants on %s is %w", unknown[0], errUnknown)
	}
	for _, h := range holders {
		if !changed[h.Cluster] {
			t.Others = append(t.Others, h)
		}
	}
	c.holders = len(t.Changed) + len(t.Others)
	memo := hashOf(c.hash, t.Changed, t.Others)
	c.target, c.memo = t, memo
	col.used[memo] = true
	done, known := col.edits[memo]
	if !known {
		if col.left == 0 {
			return errNotTried
		}
		col.left--
		done = tryEdit(editor, t)
		if done.err != nil {
			done.source = editor.LineOf(first, c.paths)
		}
		if !errors.Is(done.err, edit.ErrUnreadable) {
			col.edits[memo] = done
		}
	}
	if c.partial = done.partial; done.err != nil {
		c.source = done.source
		return done.err
	}
	c.files, c.override, c.source = done.edit.Files, done.edit.Override, done.edit.Origin
	if c.override == "" {
		for _, h := range t.Others {
			c.others = append(c.others, h.Cluster)
		}
	}
	return nil
}

// tryEdit computes an edit. If there is none, it finds out whether one for all clusters that get the
// object would work. The error is edit.ErrUnreadable if the files cannot be read at the moment.
func tryEdit(editor *edit.Editor, t edit.Target) cachedEdit {
	result, err := editor.Edit(t)
	if err == nil || len(t.Others) == 0 || errors.Is(err, edit.ErrUnreadable) {
		return cachedEdit{edit: result, err: err}
	}
	t.Changed, t.Others = slices.Concat(t.Changed, t.Others), nil
	_, all := editor.Edit(t)
	if errors.Is(all, edit.ErrUnreadable) {
		err = all
	}
	return cachedEdit{err: err, partial: all == nil}
}

// Adoptable returns the reason why the drift of an object cannot be adopted by editing its
// file; nil if it can.
func Adoptable(t *status.Trace) error {
	id := t.ID()
	masked := func(d api.Difference) bool {
		return strings.Contains(d.ValueInMember, diff.Mask) || strings.Contains(d.ValueInHub, diff.Mask)
	}
	switch {
	case t.Drift == nil || len(t.Drift.Paths) == 0 && !t.Drift.Deleted:
		return fmt.Errorf("%s on %s: no drift is known", id, t.Cluster)
	case slices.ContainsFunc(t.Drift.Paths, masked):
		return fmt.Errorf("%s: gitfleet does not know values of Secrets, nor writes those that are encrypted in Git; edit %s by hand, with sops if it is encrypted", id, t.Origin)
	}
	return nil
}

// decisions are those about all drifts, by cluster.
type decisions map[string]protocol.DriftDecisions

// add adds the decision about a change. A drift whose rule has ended is compared again.
func (all decisions) add(c *change, putBack bool, message string, now time.Time) {
	for _, d := range c.drifts {
		key, err := api.ParsePlacement(d.Placement)
		if err != nil {
			continue // every placement in a report has a valid key
		}
		r := protocol.DriftDecision{Fingerprint: protocol.Fingerprint(d.Paths, d.Digest), PutBack: putBack, Message: message}
		if driftRule(d).Ended(now) {
			r.PutBack, r.CompareAgain, r.Message = false, true, "its drift mode has ended: "+d.Rule
		}
		if all[d.Cluster] == nil {
			all[d.Cluster] = protocol.DriftDecisions{}
		}
		all[d.Cluster][protocol.DriftKey{Placement: key, ID: d.ID(), Addition: d.Addition}] = r
	}
}

// collected is the result of collect for the drifts at one commit.
type collected struct {
	key        string
	commit     string
	offers     []*change
	notOffered []notOffered
	// files and head are the tree of the commit and what load returns for it; files is nil if they are not known.
	files fs.FS
	head  *hub.Snapshot
	load  func(fs.FS) (*hub.Snapshot, error)
	// lost says that the ledger was lost, so that nothing is decided yet. unanswered are the known
	// clusters that have never answered: they may have drift of any kind.
	lost       bool
	unanswered []string
}

// all returns all held changes.
func (k *collected) all() []*change {
	out := slices.Clone(k.offers)
	for _, n := range k.notOffered {
		out = append(out, n.change)
	}
	return out
}

// undecided are the hashes of the changes for which it is not known yet whether a pull request
// can be opened.
func (k *collected) undecided() map[string]bool {
	out := map[string]bool{}
	for _, n := range k.notOffered {
		if n.undecided {
			out[n.change.hash] = true
		}
	}
	return out
}

// A cachedRollback is the edit that undoes a content at one commit.
type cachedRollback struct {
	paths []string
	files []edit.FileChange
	err   error
}
