// Package status reports the state of the fleet in KubeFleet's terms.
//
// Build turns a plan and the ledger into a Report. It makes no decisions and computes
// everything from its input each time, so that a status cannot get stuck.
//
// What a report says of placements on clusters is nearly all of it, and rarely read. A report that was built has only
// what sums it up; Report.Whole, Only, On, Each and OnDemand make the rest of the plan, which a report keeps.
package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// An Event is something that happened to an object of the hub. Events are kept in the ledger.
type Event = ledger.Event

// An EventKey identifies repetitions of the same event.
type EventKey = ledger.EventKey

// Input is everything that a report depends on. Build changes nothing but the Memo.
type Input struct {
	Plan       *plan.Plan
	InForce    *hub.Snapshot // the commit in force; nil before there is one
	Ledger     *ledger.Ledger
	Source     Source
	Now        time.Time
	Conditions Conditions // the condition names to use; empty means the current ones
	// ApprovalsInGit says that stages of update runs are approved by commits only.
	ApprovalsInGit bool
	Memo           *Memo // keeps unchanged parts between reports; nil keeps nothing
}

// A Git is the state of polling the remote.
type Git struct {
	URL, Ref string // the tracked repository and reference; the URL has no credentials
	Head     string // the newest accepted commit of the reference; empty if there is none
	// LastPoll is the time of the last poll, LastSuccess that of the last successful one,
	// NextPoll that of the next.
	LastPoll    time.Time `json:",omitzero"`
	LastSuccess time.Time `json:",omitzero"`
	NextPoll    time.Time `json:",omitzero"`
	Failures    int       // failed polls since the last success
	Error       string    // why the last poll failed
	Refused     bool      `json:",omitempty"` // it did not: Error is why the newest commit is not accepted
}

// A Source is the state of the repository.
type Source struct {
	Git Git
	// Newest is the newest commit of the tracked reference, and InForce the newest that could
	// be loaded, which is planned and applied. Since is when it came into force.
	Newest  hub.Commit
	InForce hub.Commit
	Since   time.Time `json:",omitzero"`
	// Problems are the reasons why Newest is not in force; LoadError is set if it could not be
	// read at all. Warnings are those of the commit in force, and about overrides that select
	// nothing.
	Problems  problem.List
	LoadError string
	// Fetches are the remote bases and charts that are fetched before Newest is loaded; empty if it does not wait for any.
	Fetches  []string `json:",omitempty"`
	Warnings problem.List
}

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

// A Detail has what gitfleet reports of a placement beyond KubeFleet's status.
type Detail struct {
	Placement string   `json:"placement"`
	Origin    string   `json:"origin,omitempty"` // its position in the repository
	Warnings  []string `json:"warnings,omitempty"`
	Internal  string   `json:"internal,omitempty"`
	// Stopped is the cluster whose failed update stops the rollout; empty if it is not stopped.
	Stopped  string `json:"stopped,omitempty"`
	Proven   string `json:"proven,omitempty"` // the last commit whose content was available on every cluster
	Selected int    `json:"selected"`         // counts the objects it selects
	// Rollout is that of the newest content; nil before the first one, and if there was nothing to roll out.
	Rollout  *Rollout        `json:"rollout,omitempty"`
	Clusters []ClusterDetail `json:"clusters,omitempty"` // that it holds, by name
	// Absent are the clusters that would be chosen if they could be used, sorted by name. NoMembers says that the commit
	// declares no member clusters at all.
	Absent    []Absence `json:"absent,omitempty"`
	NoMembers bool      `json:"noMembers,omitempty"`
	// UpdateRun is its staged update run that is in force, or else the newest; nil if there is none.
	UpdateRun *updaterun.Run `json:"updateRun,omitempty"`
	// FailedContent is set if its newest content has failed in an update run, and was rolled back.
	FailedContent *updaterun.FailedContent `json:"failedContent,omitempty"`
	// Short is how many clusters of the number that the policy asks for are not selected.
	Short int `json:"short,omitempty"`
}

// A Rollout is the state of the rollout of a placement's newest content.
type Rollout struct {
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"` // the content was available on every cluster; zero until then
	Updated  int       `json:"updated"`           // clusters that hold the newest content
	Target   int       `json:"target"`            // clusters that are wanted
	// Unavailable is the number of selected clusters that are not available, without the
	// suspended and unreachable ones that the rollout skips. MaxUnavailable is the maximum.
	Unavailable    int `json:"unavailable"`
	MaxUnavailable int `json:"maxUnavailable"`
}

// A ClusterDetail is one placement on one cluster.
type ClusterDetail struct {
	Cluster   string `json:"cluster"`
	Commit    string `json:"commit,omitempty"` // of the assigned content
	Applied   bool   `json:"applied"`          // the assigned content is applied
	Available bool   `json:"available"`
	Objects   int    `json:"objects"`
	// FailedObjects counts the objects that were refused or will not become available by
	// themselves.
	FailedObjects int `json:"failedObjects,omitempty"`
	// Behind is the number of commits that changed the content of the placement and that the
	// cluster does not have yet. BehindSince is when the first of them was seen, or could
	// come after a freeze or a window.
	Behind      int       `json:"behind,omitempty"`
	BehindSince time.Time `json:"behindSince,omitzero"`
	// Cause names the first object that is not applied, or else the first that is not available, and says why; empty if there
	// is none. Failure is the reason why the assigned content will not become available by itself; empty if it may. Both are
	// the same on all clusters where the reason is the same. Progressing says that the content is being applied or becoming
	// available.
	Cause       string `json:"cause,omitempty"`
	Failure     string `json:"failure,omitempty"`
	Progressing bool   `json:"progressing,omitempty"`
	Waits       string `json:"held,omitempty"` // why the cluster does not get the newest content yet
	// Hold is set if it waits for the end of a freeze or the opening of a window.
	Hold      *Hold  `json:"hold,omitempty"`
	Suspended string `json:"suspended,omitempty"` // why the placement writes nothing to the cluster; empty if it does
	Removing  bool   `json:"removing,omitempty"`  // the content is being removed
	// Braked are the objects whose deletion is held until a commit with the trailer
	// Gitfleet-Allow-Delete allows it, each with the reason. Deleting counts those for which a
	// commit has allowed it since.
	Braked         []string `json:"braked,omitempty"`
	DeletionErrors []string `json:"deletionErrors,omitempty"` // objects whose deletion fails and is retried, and why
	Deleting       int      `json:"deleting,omitempty"`
	// Lingering are objects that have a deletion timestamp and still exist, since when, their finalizers,
	// and conditions that say why. Objects that are deleted once these are gone follow.
	Lingering []string `json:"lingering,omitempty"`
}

// A Hold is a freeze or a closed window that new content waits for.
type Hold struct {
	// Until is when new content may come; zero if that is not known.
	Until time.Time `json:"until,omitzero"`
	// Overdue says that it has waited for longer than the maxAge of the window.
	Overdue bool `json:"overdue,omitempty"`
}

// Transitions are the times when the conditions of a placement, or of a placement on one
// cluster, last changed.
type Transitions struct {
	Key     api.PlacementKey
	Cluster string // empty for the placement itself
	To      map[string]ledger.Transition
}

// Build builds the report. Parts that have not changed since the Memo was last used are shared
// with the previous report.
func Build(in Input) *Report {
	if in.Memo == nil {
		in.Memo = NewMemo()
	}
	in.Memo.setEarlierEvents(in.Ledger.Events())
	r := &Report{
		At: in.Now, Source: in.Source, Fleet: in.Ledger.Fleet(), InForce: in.InForce, Declared: in.Ledger.Declared(), Suspensions: suspensions(in),
		plan: in.Plan,
	}
	if in.InForce != nil {
		r.Source.Warnings = append(slices.Clip(in.InForce.Warnings), in.Plan.Warnings...)
	}
	lists := newLists(&in.Memo.last, in.Plan.Placements)
	for _, c := range in.Plan.Members {
		lists.clusters.Add(in.Memo.cluster(c, in))
	}
	for p := range in.Plan.Placements.Values() {
		if p.Forget {
			continue // completely removed
		}
		e := in.Memo.placement(in, p)
		lists.add(e)
		r.Drifts = append(r.Drifts, e.drifts...)
		if e.changed != nil { // an entry of an earlier report is read concurrently and never changed
			r.Transitions = append(r.Transitions, e.changed...)
			e.changed = nil // transitions are reported once
		}
	}
	lists.set(r)
	in.Memo.last = Report{Clusters: r.Clusters, Details: r.Details, entries: r.entries}
	in.Memo.stagedObjects(in, r)
	r.Evictions = in.Memo.evictionObjects(in)
	r.Events = in.Memo.finish(in)
	return r
}

// UpdateLedger records the transitions and the events, so that reports continue after a
// restart.
func (r *Report) UpdateLedger(l *ledger.Ledger) {
	for _, t := range r.Transitions {
		l.SetTransitions(t.Key, t.Cluster, t.To)
	}
	l.SetEvents(r.Events)
}

func texts(ps problem.List) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Error())
	}
	return out
}

// detail returns the details of the placement without those of its clusters.
func (b *builder) detail() *Detail {
	p := b.p
	d := &Detail{
		Placement: p.Key.String(), Warnings: texts(p.Warnings), Internal: p.InternalError, Stopped: p.Rollout.Stopped,
		Proven: p.Record.Proven.Commit, Selected: len(p.Selection.Objects),
	}
	if p.Spec == nil {
		return d
	}
	updated := count(lineBuilder{b}.lines().All(), func(of line) bool { return of.facts&isUpdated != 0 })
	d.UpdateRun, d.FailedContent = updaterun.Of(p, b.in.Now, b.in.ApprovalsInGit), updaterun.FailedContentOf(p)
	d.Origin, d.NoMembers, d.Short = p.Spec.Origin.String(), p.NoMembers, max(0, p.Schedule.Wanted-p.Schedule.Found)
	for _, a := range p.Absent {
		reason, _, _ := strings.Cut(a.Reason, fleet.LastReceived) // which is said of the cluster
		d.Absent = append(d.Absent, Absence{a.Cluster, reason, a.Usability == fulfilment.Refused})
	}
	budget := p.Rollout.Budget
	nothing := len(p.Clusters) == 0 && budget.Target == 0 && !p.Record.RollingOut()
	if !nothing && !p.Record.RolloutStarted.IsZero() {
		d.Rollout = &Rollout{
			Started: p.Record.RolloutStarted, Finished: p.Record.RolloutFinished, Updated: updated, Target: budget.Target,
			Unavailable: max(0, budget.Target-budget.NotCounted-budget.Ready), MaxUnavailable: budget.MaxUnavailable,
		}
	}
	return d
}

// bareDetail returns the details of a cluster without the texts about its objects, and the deletions that are held.
func bareDetail(p *plan.Placement, c *plan.OnCluster) (e ClusterDetail, held []protocol.Braked) {
	lag := p.Lag(c)
	e = ClusterDetail{
		Cluster: c.Binding.Cluster, Commit: c.Binding.Assigned.Commit, Behind: lag.Commits, BehindSince: lag.Since,
		Failure: c.Unusual().Failure, Waits: c.Waits, Suspended: c.Unusual().Suspended, Removing: c.Binding.Removing,
	}
	if c.Deferred {
		e.Hold = &Hold{c.DeferredUntil(), c.Overdue}
	}
	seen := c.Seen()
	if seen == nil {
		return e, nil
	}
	ours := c.Unusual().Refusal == ""
	e.Applied, e.Available, e.Objects = ours && seen.Applied(), ours && seen.Available(), seen.Total
	e.Progressing = ours && seen.Done && !e.Available && c.Unusual().Failure == "" && seen.Failed() == nil
	e.FailedObjects = seen.FailedObjects()
	held, pending := c.HeldDeletions()
	if pending {
		e.Deleting, held = len(held), nil
	}
	return e, held
}

func (b *builder) clusterDetail(c *plan.OnCluster) ClusterDetail {
	p := b.p
	e, held := bareDetail(p, c)
	seen := c.Seen()
	if seen == nil {
		return e
	}
	if p.Spec != nil {
		e.Cause = b.onCluster(c).Cause()
	}
	e.Failure = conditions.FailureText(c.Unusual().Failure, seen)
	for _, b := range held {
		e.Braked = append(e.Braked, b.ID.String()+": "+b.Why)
	}
	undeleted := seen.Unusual()
	for _, f := range undeleted.DeletionErrors {
		e.DeletionErrors = append(e.DeletionErrors, f.ID.String()+": "+f.Message)
	}
	for _, id := range undeleted.Lingering {
		e.Lingering = append(e.Lingering, lingeringText(undeleted, id))
	}
	for _, w := range undeleted.Waiting {
		e.Lingering = append(e.Lingering, waitingText(p.Key, w))
	}
	return e
}

// lingeringText describes an object that was deleted and still exists: since when, and why.
func lingeringText(of protocol.Incidents, id api.ID) string {
	var notes []string
	at := slices.IndexFunc(of.Terminating, func(t protocol.Terminating) bool { return t.ID == id })
	if at >= 0 {
		notes = append(notes, "since "+of.Terminating[at].Since.UTC().Format(time.RFC3339))
	}
	if i := slices.IndexFunc(of.Finalizing, func(f protocol.Finalizing) bool { return f.ID == id }); i >= 0 {
		notes = append(notes, "finalizers: "+of.Finalizing[i].Finalizers)
	}
	if slices.Contains(of.Collecting, id) {
		notes = append(notes, "until the garbage collector has deleted what was made of it")
	}
	if at >= 0 && of.Terminating[at].Why != "" {
		notes = append(notes, of.Terminating[at].Why)
	}
	if len(notes) == 0 {
		return id.String()
	}
	return id.String() + " (" + strings.Join(notes, "; ") + ")"
}

// waitingText describes objects that are not deleted yet.
func waitingText(placement api.PlacementKey, w protocol.DeletionWait) string {
	first := w.For.String()
	if w.Of != placement {
		first += " of " + w.Of.String()
	}
	if w.Objects == 1 {
		return fmt.Sprintf("%s (not deleted before %s is gone)", w.Example, first)
	}
	return fmt.Sprintf("%s and %d more (not deleted before %s is gone)", w.Example, w.Objects-1, first)
}
