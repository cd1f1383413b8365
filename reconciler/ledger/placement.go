package ledger

import (
	"iter"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Placement is the record of a placement, without its bindings. Its slices and its Spec are
// read-only.
type Placement struct {
	Generation int64 // the changes of the canonical spec, from 1
	SpecHash   string
	Spec       *api.PlacementSpec `json:",omitempty"` // the last declared one; nil in records of older versions
	Commit     string             `json:",omitempty"` // the commit that last changed the spec
	Created    time.Time          // time of the commit that added the placement
	Index      int                // number of the newest content, from 0
	Content    string             // hash of the newest content
	// Revisions are the times at which the commits with the newest contents were first seen,
	// oldest first.
	Revisions []Revised `json:",omitempty"`
	// RolloutStarted is when the commit with the newest content was first seen. RolloutFinished is
	// when that content was available on every cluster; zero until it is.
	RolloutStarted  time.Time `json:",omitzero"`
	RolloutFinished time.Time `json:",omitzero"`
	// Proven is a commit with the last content that was available on every cluster, and the
	// fingerprint of that content; zero if there is none.
	Proven placement.Revision
	// ProvenBefore are the fingerprints of earlier contents that were available on every cluster,
	// oldest first. A commit that returns to one of them is a rollback.
	ProvenBefore []string              `json:",omitempty"`
	Transitions  map[string]Transition `json:",omitempty"` // the last changes of its conditions, by type
	Resumed      time.Time             `json:",omitzero"`  // a user last resumed a stopped rollout
	Stops        []placement.Stop      `json:",omitempty"` // the failed updates that stop the rollout, by cluster
	// Runs are the staged update runs that are declared, and the one in force, in the order in which they appeared.
	Runs []placement.Run `json:",omitempty"`
	// LostRuns are the names of the runs that Git had when the ledger was lost, until a run is recorded again. They may have
	// appeared in earlier commits, with other content.
	LostRuns []string `json:",omitempty"`
	// Evictions are the evictions in Git and the newest ones from gitfleet evict and drain, oldest first.
	Evictions []placement.Eviction `json:",omitempty"`
	// Rebuilt says that the bindings were rebuilt from inventories after the ledger was lost.
	// Clusters that have not answered since may also hold the placement.
	Rebuilt   bool      `json:"Found,omitempty"`
	Deleted   bool      // it is no longer in Git and is being removed
	DeletedAt time.Time `json:",omitzero"` // when that was first seen
	Abandon   bool      // its objects stay on clusters when it is removed
	// AllowedContent is the fingerprint of the content whose deletions a commit has allowed;
	// empty if that is not the newest content.
	AllowedContent string             `json:",omitempty"`
	Formerly       []api.PlacementKey `json:",omitempty"` // earlier keys of a renamed placement, oldest first
	// Into is the new key of a renamed placement, whose record under this key is Deleted; zero
	// if it was not renamed.
	Into api.PlacementKey `json:",omitzero"`

	entries *entries
	version uint64
	// own is the version of the record without its entries.
	own uint64
}

// A Revised records when the commit with a content of a placement was first seen.
type Revised struct {
	Index int
	At    time.Time
	// Content is that commit and the fingerprint of the content; zero unless staged update runs may ask for it.
	Content placement.Revision `json:",omitzero"`
}

// RollingOut reports whether the rollout of the newest content has started and is not finished.
func (p *Placement) RollingOut() bool {
	return !p.RolloutStarted.IsZero() && p.RolloutFinished.IsZero()
}

// RevisedAt returns when the commit with the content of an index was first seen. If that was not
// recorded, it returns the time of the next content that was recorded; zero if there is none.
func (p *Placement) RevisedAt(index int) time.Time {
	for _, r := range p.Revisions {
		if r.Index >= index {
			return r.At
		}
	}
	return time.Time{}
}

// Version changes with every change of the placement or its entries except transitions. It has
// no meaning after a restart.
func (p *Placement) Version() uint64 { return p.version }

// SameRecord reports whether a later record of the placement differs at most in its transitions and in its entries.
func (p *Placement) SameRecord(later *Placement) bool {
	return p.own == later.own && p.entries == later.entries
}

// Entries returns a placement's entries, sorted by cluster. They are read-only.
func (p *Placement) Entries() []*Entry {
	return slices.Clone(p.entries.list)
}

// EntriesThat returns the entries for which a condition holds, sorted by cluster. They are read-only.
func (p *Placement) EntriesThat(are func(*Entry) bool) []*Entry {
	var out []*Entry
	for _, e := range p.entries.list {
		if are(e) {
			out = append(out, e)
		}
	}
	return out
}

// AllEntries iterates over the entries, sorted by cluster, with their positions. They are read-only.
func (p *Placement) AllEntries() iter.Seq2[int, *Entry] { return slices.All(p.entries.list) }

// Entry returns the entry of one cluster; nil if the placement does not hold it.
func (p *Placement) Entry(cluster string) *Entry { return p.entries.of(cluster) }

// Bindings returns copies of a placement's bindings, sorted by cluster.
func (p *Placement) Bindings() []placement.Binding {
	return p.AppendBindings(make([]placement.Binding, 0, len(p.entries.list)))
}

// AppendBindings appends copies of a placement's bindings, sorted by cluster.
func (p *Placement) AppendBindings(to []placement.Binding) []placement.Binding {
	for _, e := range p.entries.list {
		to = append(to, e.Binding)
	}
	return to
}
