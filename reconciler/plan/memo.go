package plan

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/intern"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
)

// A Memo caches results between calls of Resolve. It affects only how long a call takes, with one exception: content
// that was rendered once remains known without its commit. A Memo must not be used concurrently.
type Memo struct {
	inForce *commitCache
	commits map[*hub.Snapshot]*commitCache
	// contents are the known contents of each placement, beginning with that of the commit in force. The others are
	// kept while a cluster is assigned to them or was until now.
	contents map[api.PlacementKey][]*prepared

	order *order
	// results are those of the last call, and overlap the objects that several of them have. resolved are the
	// placements that claim such objects, with the owners decided.
	results  results
	overlap  overlap
	resolved map[api.PlacementKey]*Placement
	// spareResults is a list kept for the next call.
	spareResults []*result
	last         *Plan
	// planned is what the last call was made with.
	planned common

	members fleet.Members
	// spareClusters are not used by any plan. Their memory is that of the next ones.
	spareClusters []*OnCluster
	// bindings and before are buffers that each placement uses while it is planned: for the bindings of its clusters, and for
	// those that it had.
	bindings, before []placement.Binding
	// rolling is memory for the input of the next rollout.
	rolling []rollout.Target
	// texts are the reasons of decisions. Those about a cluster are the same for many placements. decisions are those of the placements
	// that were scheduled last, and latest the newest revision of the cluster that was planned last.
	texts       intern.Texts
	decisions   intern.Recent[[]placement.Decision]
	latest      *placement.Revision
	paused      map[string]string
	suspensions fleet.Suspensions
	// check is called as Check says; nil checks nothing.
	check func(key api.PlacementKey, difference string)
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{texts: intern.Texts{}, commits: map[*hub.Snapshot]*commitCache{}, contents: map[api.PlacementKey][]*prepared{}, order: &order{}, last: &Plan{Works: map[string][]*work.Work{}}}
}

// Check calls a function for each placement of which only some clusters are planned again, with what is different if all of them
// are; empty if nothing is.
func (m *Memo) Check(differs func(key api.PlacementKey, difference string)) { m.check = differs }

// A result is the plan of one placement, before conflicts with other placements are resolved, together with the inputs
// that it depends on. It is reused as long as they are the same.
type result struct {
	resultKey
	placement *Placement
	// commit is the commit in force with which it was planned.
	commit string
	// contentsInUse are the contents that clusters are assigned or held until now.
	contentsInUse []*prepared
	// missing are the commits that clusters are assigned to and whose content is not known.
	missing map[string]commitState
	// wake is when the result could change without new input; zero means never.
	wake time.Time
}

func (r *result) onAnyOf(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(cluster string) bool { return r.placement.On(cluster) != nil })
}

// A resultKey is what a result depends on; fields that do not matter to it are zero.
type resultKey struct {
	spec               *hub.Placement
	prepared           *prepared
	recordVersion      uint64 // of the record in the ledger
	fleetVersion       uint64 // of the fleet
	propertiesVersion  uint64 // of the cluster properties; zero if the policy uses none
	namespacesVersion  uint64 // of the namespaces of clusters; zero for ClusterResourcePlacements
	suspensionsVersion uint64 // of the suspensions
	deleteAllowed      bool   // the commit allows deletions
	unclearRename      string // why it is uncertain whether the placement was renamed
	// windows are the RolloutWindows for the placement, as text.
	windows string
	// successor is the result for the new key of a renamed placement.
	successor *result
	// others are the clusters of the placements that an affinity names, as text.
	others string
	// runs are the declared staged update runs, and evictions the declared evictions with the budget, as text.
	runs, evictions string
}

// scheduling returns the part of the key that the decisions of the scheduler depend on, apart from the policy and the
// bindings of the request.
func (k resultKey) scheduling() resultKey {
	return resultKey{spec: k.spec, fleetVersion: k.fleetVersion, propertiesVersion: k.propertiesVersion, namespacesVersion: k.namespacesVersion, others: k.others}
}

// common is what the keys of all results depend on.
type common struct {
	inForce                                    *commitCache
	fleet, properties, namespaces, suspensions uint64 // versions
}

func (m *Memo) common() common {
	return common{m.inForce, m.members.Version, m.members.PropertiesVersion, m.members.NamespacesVersion, m.suspensions.Version}
}

// An order has the keys of all placements, as they are planned. It is the same until a placement is added or
// removed.
type order struct {
	inForce           *hub.Snapshot
	ledger            *ledger.Ledger
	placementsVersion uint64 // of the list of placements in the ledger
	planned           []api.PlacementKey
	sorted            []int                    // the positions in planned, by key
	at                map[api.PlacementKey]int // the position of each
}

// results are the results for placements, in an order. Those of placements that are not planned yet are nil.
type results struct {
	*order
	list []*result
}

// of returns the result for a placement; nil if there is none.
func (r results) of(key api.PlacementKey) *result {
	if r.order == nil {
		return nil
	}
	if i, planned := r.at[key]; planned {
		return r.list[i]
	}
	return nil
}

// An overlap has the objects that belong to more than one placement on any cluster: in the latest content, in an older
// content that a cluster is assigned to, or in the claims so far.
type overlap struct {
	shared map[api.ID]bool
	// claimants are the placements that have any of these objects, and those that claimed one until now, by key.
	claimants []api.PlacementKey
}

// A commitState says whether a commit can be read.
type commitState string

const (
	commitLoaded  commitState = "loaded"
	commitLoading commitState = "loading"
	commitLost    commitState = "lost"
)

// newCluster returns a cluster in memory that is not used, if there is any.
func (m *Memo) newCluster(c OnCluster) *OnCluster {
	if n := len(m.spareClusters); n > 0 {
		last := m.spareClusters[n-1]
		m.spareClusters = m.spareClusters[:n-1]
		*last = c
		return last
	}
	fresh := c // the parameter is not moved to the heap
	return &fresh
}

// newBinding returns a copy of a binding that may be changed until the placement is planned. Then keepBinding is called.
func (m *Memo) newBinding(b placement.Binding) *placement.Binding {
	m.bindings = append(m.bindings, b)
	return &m.bindings[len(m.bindings)-1]
}

// maxSharedDecisions limits how many lists of decisions another one is compared with.
const maxSharedDecisions = 4

// sharedDecisions returns the equal decisions of another placement if there are any, since many placements select the same clusters.
// Otherwise the decisions share the texts of their reasons with others.
func (m *Memo) sharedDecisions(all []placement.Decision) []placement.Decision {
	return m.decisions.Share(maxSharedDecisions, func(earlier []placement.Decision) bool {
		return slices.EqualFunc(earlier, all, sameDecision)
	}, func() []placement.Decision {
		for i := range all {
			m.texts.Share(&all[i].Reason)
		}
		return all
	})
}

func sameDecision(a, b placement.Decision) bool {
	score := a.Score.Equal(b.Score)
	a.Score, b.Score = nil, nil
	return score && a == b
}

func (m *Memo) setInForce(s *hub.Snapshot) {
	if m.inForce == nil || m.inForce.Snapshot != s {
		delete(m.commits, s) // its contents become the newest again
		m.inForce = m.commit(s)
	}
}

func (m *Memo) commit(s *hub.Snapshot) *commitCache {
	if m.commits[s] == nil {
		m.commits[s] = newCommitCache(s)
	}
	return m.commits[s]
}

// pruneCommits drops the commits that are not needed.
func (m *Memo) pruneCommits(needed func(*hub.Snapshot) bool) {
	maps.DeleteFunc(m.commits, func(s *hub.Snapshot, _ *commitCache) bool { return s != m.inForce.Snapshot && !needed(s) })
}

// pruneContents drops the contents of some placements that these do not use.
func (m *Memo) pruneContents(of iter.Seq[api.PlacementKey]) {
	for key := range of {
		all, r := m.contents[key], m.results.of(key)
		if len(all) == 0 {
			continue
		}
		newest := all[0]
		all = slices.DeleteFunc(all, func(p *prepared) bool {
			return (p != newest || m.spec(key) == nil) && (r == nil || !slices.Contains(r.contentsInUse, p))
		})
		if m.contents[key] = all; len(all) == 0 {
			delete(m.contents, key)
		}
	}
}

func (m *Memo) keepContent(key api.PlacementKey, p *prepared) {
	if !slices.Contains(m.contents[key], p) {
		m.contents[key] = append(m.contents[key], p)
	}
}

// spec returns a placement of the commit in force; nil if that does not have it.
func (m *Memo) spec(key api.PlacementKey) *hub.Placement { return m.inForce.specs[key] }

// prepare selects the objects of a placement at a commit and creates its renderer; nil if the commit does not have the
// placement. It returns the same value for commits between which nothing changed.
func (m *Memo) prepare(s *hub.Snapshot, key api.PlacementKey) *prepared {
	at := m.commit(s)
	p := at.specs[key]
	if p == nil || at.placements[key] != nil {
		return at.placements[key]
	}
	if at.index == nil {
		at.index = placement.NewIndex(s.Objects)
	}
	scope := Scope(s)
	current := &prepared{key: key, cros: at.cros, ros: at.ros, selection: placement.Select(placement.Terms{Key: key, Spec: &p.Spec, Scope: scope}, at.index),
		variables: s.Variables, substitutes: Substitutes(p)}
	switch known := m.contents[key]; {
	case current.selection.Invalid != "":
	case len(known) > 0 && known[0].equal(current):
		current = known[0]
	default:
		current.renderer = work.NewRenderer(key, current.selection.Objects, at.cros, at.ros, scope).WithVariables(current.variables, current.substitutes)
		if at == m.inForce {
			m.contents[key] = slices.Insert(known, 0, current)
		}
	}
	at.placements[key] = current
	return current
}
