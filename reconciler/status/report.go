package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// An Event is something that happened to an object of the hub. Events are kept in the ledger.
type Event = ledger.Event

// An EventKey identifies repetitions of the same event.
type EventKey = ledger.EventKey

// A Report is the state of the fleet at one moment. It is immutable. If an object is equal in
// two consecutive reports made with the same Memo, also in what OnDemand makes of it, it has the same pointer, so that
// changes can be found by comparing pointers.
type Report struct {
	At     time.Time
	Source Source
	Fleet  protocol.Fleet // identifies what the fleet owns on members
	// Placements and ResourcePlacements are sorted by namespace and name. A report that was built has none of them until Whole, Only
	// or On make what they say of clusters; EachClusterResourcePlacement and EachResourcePlacement are for every report.
	Placements         []*api.ClusterResourcePlacement
	ResourcePlacements []*api.ResourcePlacement
	// PlacementStatuses are the statuses that are also shown in the placed namespaces, in the
	// order of Placements. EachPlacementStatus is for every report.
	PlacementStatuses []*api.ClusterResourcePlacementStatus `json:"Statuses"`
	Clusters          []*api.MemberCluster                  // by name
	Details           []*Detail                             // what a placement's status has no field for
	Suspensions       []Suspension                          // those in force, by subject
	// Evictions are those of the commit in force and the last that users have ordered, by name.
	Evictions []*api.ClusterResourcePlacementEviction `json:",omitempty"`
	// Drifts are the objects that differ, or have differed, from the hub, by placement, cluster
	// and object.
	Drifts []Drift
	// UpdateRuns are the staged update runs, and ApprovalRequests the requests for their stages, of all placements, by namespace
	// and name. Both kinds of each have the same fields: those of ResourcePlacements have a namespace and another kind.
	UpdateRuns       []*api.ClusterStagedUpdateRun `json:",omitempty"`
	ApprovalRequests []*api.ClusterApprovalRequest `json:",omitempty"`
	// Events are the events that are kept, oldest first. Without new events it is the same
	// slice as before.
	Events      []Event
	Transitions []Transitions `json:"-"` // the conditions that changed, to be recorded in the ledger
	// InForce is the commit in force; nil before there is one. Declared are the records of its
	// objects other than placements.
	InForce  *hub.Snapshot              `json:"-"`
	Declared map[api.ID]ledger.Declared `json:"-"`

	// entries are the reports of the placements, in the order of Details. filledIn says that the objects have what entries make on demand.
	entries  sharedlist.List[*placementEntry]
	filledIn bool
	plan     *plan.Plan
}

// Plan returns the plan of the report. It must not be changed.
func (r *Report) Plan() *plan.Plan { return r.plan }

// Decided reports whether the report has decisions: just after the ledger was lost, there are
// none.
func (r *Report) Decided() bool { return r.plan != nil && r.plan.Works != nil }

// UpdateLedger records the transitions and the events, so that reports continue after a
// restart.
func (r *Report) UpdateLedger(l *ledger.Ledger) {
	for _, t := range r.Transitions {
		l.SetTransitions(t.Key, t.Cluster, t.To)
	}
	l.SetEvents(r.Events)
}

// lists collects the lists of a report. A list with the same items as that of the report before is the same slice.
type lists struct {
	details sharedlist.Collector[*Detail]
	entries *sharedlist.Editor[*placementEntry]
	added   int // entries
}

// newLists returns empty lists for the report about some placements.
func newLists(last *Report, of sharedlist.List[*plan.Placement]) *lists {
	n := 0
	for p := range of.Values() {
		if !p.Forget {
			n++
		}
	}
	return &lists{details: sharedlist.Like(last.Details), entries: last.entries.Edit(n)}
}

// next returns the report that the last report has where the next one is added; nil if there is none.
func (l *lists) next() *placementEntry { return l.entries.At(l.added) }

// add adds the report of a placement.
func (l *lists) add(e *placementEntry) {
	if l.next() != e {
		l.entries.Set(l.added, e)
	}
	l.added++
	l.details.Add(e.detail)
}

// set sets the lists of a report.
func (l *lists) set(r *Report) {
	r.Details, r.entries = l.details.Slice(), l.entries.List()
	if r.Details == nil {
		r.Details = []*Detail{} // a list in JSON
	}
}

// An UnknownError says that no object has the requested name.
type UnknownError struct {
	// What is the kind, such as "placement"; Exist are the existing names.
	What, Name string
	Exist      []string
}

// unknown returns the error that none of all has a name, sorted as all are.
func unknown[T any](what, name string, all []T, nameOf func(T) string) *UnknownError {
	e := &UnknownError{What: what, Name: name}
	for _, t := range all {
		e.Exist = append(e.Exist, nameOf(t))
	}
	return e
}

func (e *UnknownError) Error() string {
	text := "there is no " + e.What + " " + e.Name
	if len(e.Exist) == 0 {
		return text + ", and no other either"
	}
	if near := e.suggestion(); near != "" {
		return text + "; " + api.DidYouMean(near)
	}
	return text + "; there are " + firstOf(e.Exist)
}

// firstOf lists names, and how many more there are than a message may have.
func firstOf(names []string) string {
	const few = 20
	text := strings.Join(names[:min(few, len(names))], ", ")
	if more := len(names) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// suggestion returns the name that the user probably meant: one that is similar to the given
// name, or whose last part is.
func (e *UnknownError) suggestion() string {
	if len(e.Name) <= 3 { // too short for a suggestion
		return ""
	}
	if near := api.Closest(e.Name, e.Exist); near != "" || strings.Contains(e.Name, "/") {
		return near
	}
	var last []string
	for _, name := range e.Exist {
		last = append(last, name[strings.LastIndexByte(name, '/')+1:])
	}
	if i := slices.Index(last, api.Closest(e.Name, last)); i >= 0 {
		return e.Exist[i]
	}
	return ""
}
