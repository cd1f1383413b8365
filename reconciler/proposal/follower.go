package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

// maxRejected is the maximum number of rejected changes in memory. For others the forge is
// asked again.
const maxRejected = 1000

// A follower offers the held changes, and follows what becomes of their pull requests and issues.
type follower struct {
	tracker tracker
	grouper
	known  collected
	states map[string]*offerState
	// open are the open pull requests and issues of the fleet as last listed, by branch.
	open   map[string]thread
	listed time.Time
	// listedIssues says that only issues were listed last.
	listedIssues bool
	// woken requests a new list before the interval is over.
	woken bool
	// leftovers are the branches that may be left over from earlier; nil until they are listed.
	// leftoversAt is the time at which the forge was last asked about some.
	leftovers     []string
	leftoversAt   time.Time
	leftoverRetry poll.Backoff
	// missing has the time since when an open pull request has had no drift, by branch.
	missing map[string]time.Time
	// ending has the backoff of pull requests and issues that are to be closed and could not be, by branch.
	ending map[string]*poll.Backoff
	// rejected are the changes whose pull request was closed without being merged, by hash.
	rejected map[string]*offerState
	// written is what the open pull requests have, by branch.
	written map[string]written
	// putBack are the users who asked to revert a change that has no pull request, by hash.
	putBack map[string]string
	// waitingList are the changes that the newest pull request lists as waiting, since
	// waitingListed.
	waitingList   []*change
	waitingListed time.Time
}

// written is what gitfleet knows a pull request to have.
type written struct {
	// files are those that the branch was last found to have, and message is that of its commit.
	files   []edit.FileChange
	message string
	// reviewers are those of the pull request for the commit and the files in reviewersOf.
	reviewers   []string
	reviewersOf string
}

// track records the time since when each change has lasted.
func (f *follower) track(now time.Time) {
	last := f.states
	f.states = map[string]*offerState{}
	keep := func(hash string) {
		s := cmp.Or(f.states[hash], last[hash])
		if s == nil && f.rejected[hash] != nil {
			s = f.rejected[hash]
			s.recheck = true // it may have been labeled or reopened since
		}
		if s == nil {
			s = &offerState{since: now}
		}
		f.states[hash] = s
	}
	for _, c := range f.known.offers {
		keep(c.hash)
		switch s := f.states[c.hash]; {
		case c.reason == nil:
			s.manualSince = time.Time{}
		case s.manualSince.IsZero():
			s.manualSince = now
		}
	}
	for _, n := range f.known.notOffered {
		if s := last[n.change.hash]; s != nil && s.keepsObject() {
			keep(n.change.hash)
		}
	}
	all := f.known.all()
	maps.DeleteFunc(f.putBack, func(hash, _ string) bool {
		return !slices.ContainsFunc(all, func(c *change) bool { return c.hash == hash })
	})
	for hash := range f.known.undecided() {
		s := last[hash]
		if pr := f.findOpen(hash); s == nil && pr != nil { // opened before a restart
			s = &offerState{since: now}
			s.found(*pr)
		}
		if s != nil {
			f.states[hash] = s
		}
	}
	for hash, s := range last {
		if s.State == forge.Closed && f.states[hash] == nil && len(f.rejected) < maxRejected {
			if f.rejected[hash] = s; !s.expired() {
				s.Body = "" // it may be long
			}
		}
	}
}

// changesByAge are the changes that are offered or will be, the oldest first.
func (f *follower) changesByAge() []*change {
	return slices.SortedStableFunc(slices.Values(f.known.offers), func(a, b *change) int {
		// After a restart all have been followed for the same time.
		return cmp.Or(f.states[a.hash].since.Compare(f.states[b.hash].since), a.first().Compare(b.first()))
	})
}

// record adds to the history who decided about a change.
func (f *follower) record(event history.Event, it heldItem, by, message string) {
	e := history.Entry{Kind: history.Action, Event: event, Object: it.id.String(), By: by, Message: message}
	if it.whole > 1 {
		e.Object, e.Placement, e.Message = "", it.drifts[0].Placement, fmt.Sprintf("%s; %s", message, markdown.Count(it.whole, "change"))
		f.tracker.cfg.Record(e)
		return
	}
	if clusters := it.clusters(); len(clusters) == 1 {
		e.Cluster = clusters[0]
	} else {
		e.Message = fmt.Sprintf("%s; on %s: %s", message, markdown.Count(len(clusters), "cluster"), strings.Join(clusters[:min(len(clusters), most)], ", "))
	}
	if same := it.describe().Placements; len(same) == 1 {
		e.Placement = same[0]
	}
	f.tracker.cfg.Record(e)
}

// findOpen returns the open pull request or issue of a change or a group; nil if there is none.
func (f *follower) findOpen(hash string) (found *thread) {
	for branch, pr := range f.open {
		if branchHash(branch) == hash {
			return &pr
		}
		if hashes, _ := offeredIn(pr.Body); slices.Contains(hashes, hash) {
			found = &pr
		}
	}
	return found
}
