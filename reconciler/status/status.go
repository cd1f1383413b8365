// Package status says what became of everything, in the words of KubeFleet.
//
// Build turns one plan and what was seen into one Report. It decides nothing,
// and what it tells is derived anew each time: a status cannot get stuck.
package status

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Input is all that a report depends on. Nothing in it is changed.
type Input struct {
	Plan *plan.Plan
	// Head is the snapshot in force; nil before there is one.
	Head   *hub.Snapshot
	Ledger *ledger.Ledger
	Source Source
	Now    time.Time
	// Conditions say which names conditions have; empty means the current ones.
	Conditions Conditions
	// Memo keeps from one report to the next what did not change; nil keeps
	// nothing.
	Memo *Memo
}

// A Git is how following the remote goes.
type Git struct {
	// URL and Ref are what is followed; the URL holds no credentials.
	URL, Ref string
	// Head is the newest commit known; empty if there is none.
	Head string
	// LastPoll is when the remote was last asked, LastSuccess when it last gave
	// an answer that could be used, NextPoll when it will be asked again.
	LastPoll, LastSuccess time.Time
	NextPoll              time.Time
	// Failures counts polls that failed since the last success; Error is why.
	Failures int
	Error    string
}

// A Source is what is known of the repository.
type Source struct {
	Git Git
	// Newest is the newest commit of the tracked reference, InForce the one that
	// is acted upon: the newest that could be loaded. Since is when it came
	// into force.
	Newest  hub.Commit
	InForce hub.Commit
	Since   time.Time
	// Problems are why Newest is not in force, LoadError if it could not even be
	// read; Warnings are those of the commit in force, and of overrides in it that
	// select nothing anywhere.
	Problems  hub.Problems
	LoadError string
	Warnings  hub.Problems
}

// A Report is everything we tell, at one moment. It is not changed once made.
// Of two reports in a row, made with one Memo, an object about which nothing
// else is told is the same one: who compares the pointers sees all that changed.
type Report struct {
	At     time.Time
	Source Source
	// Fleet is the name and the ID that tell what it keeps on members from what
	// others keep there.
	Fleet ledger.Fleet
	// Placements and ResourcePlacements are sorted by namespace and name.
	Placements         []*api.ClusterResourcePlacement
	ResourcePlacements []*api.ResourcePlacement
	// Statuses show in a namespace how the placement of the same name does that
	// places it; in the order of Placements.
	Statuses []*api.ClusterResourcePlacementStatus
	// Clusters are sorted by name.
	Clusters []*api.MemberCluster
	// Details say of each placement what its status has no field for.
	Details []*Detail
	// Suspensions are what people want left as it is, by subject.
	Suspensions []Suspension
	// Drifts are what is known of objects that differ, or once differed, from what
	// the hub wants: by placement, cluster and object.
	Drifts []Drift
	// Events are what happened, oldest first, as far as they are kept. As long as
	// nothing does it is the same list.
	Events []Event
	// Transitions are the conditions that changed, for the ledger to remember.
	Transitions []Transitions `json:"-"`
	// Head is the snapshot in force; nil before there is one. Declared is what is
	// known of all it declares but placements.
	Head     *hub.Snapshot              `json:"-"`
	Declared map[api.ID]ledger.Declared `json:"-"`
	// told is where it all comes from; see Explain.
	told []*told
	// plan is what was told of; see Trace.
	plan *plan.Plan
}

// A Detail is what gitfleet knows of a placement beyond KubeFleet's status.
type Detail struct {
	Placement string `json:"placement"`
	// Origin is where it stands in the repository.
	Origin   string   `json:"origin,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Internal string   `json:"internal,omitempty"`
	// Stopped is the cluster whose failed update stops the rollout; empty if
	// nothing does.
	Stopped string `json:"stopped,omitempty"`
	// Proven is the last commit whose content was available on every cluster.
	Proven string `json:"proven,omitempty"`
	// Selected counts the objects it selects.
	Selected int `json:"selected"`
	// Rollout is that of the newest content; nil before there was one.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Clusters are those it holds, by name.
	Clusters []ClusterDetail `json:"clusters,omitempty"`
}

// A Rollout is how far the newest content of a placement is.
type Rollout struct {
	Started time.Time `json:"started"`
	// Finished is when the content was available on every cluster; zero until then.
	Finished time.Time `json:"finished,omitzero"`
	// Updated counts the clusters that hold the content; Target is how many are wanted.
	Updated int `json:"updated"`
	Target  int `json:"target"`
	// Unavailable counts the wanted clusters that are not available, except suspended and
	// unreachable ones that nothing waits for; MaxUnavailable is how many may be.
	Unavailable    int `json:"unavailable"`
	MaxUnavailable int `json:"maxUnavailable"`
}

// A ClusterDetail is one placement on one cluster.
type ClusterDetail struct {
	Cluster string `json:"cluster"`
	// Commit brought the content that the cluster shall hold; Applied says that
	// it does.
	Commit    string `json:"commit,omitempty"`
	Applied   bool   `json:"applied"`
	Available bool   `json:"available"`
	Objects   int    `json:"objects"`
	// FailedObjects counts those that were refused, or will not become available by
	// themselves.
	FailedObjects int `json:"failedObjects,omitempty"`
	// Behind counts the commits that changed the content of the placement and that the
	// cluster does not hold yet; BehindSince is when the first of them was seen.
	Behind      int       `json:"behind,omitempty"`
	BehindSince time.Time `json:"behindSince,omitzero"`
	// Failure is why what the cluster shall hold will not become available by
	// itself; empty while it may. Progressing says that it is on its way there.
	Failure     string `json:"failure,omitempty"`
	Progressing bool   `json:"progressing,omitempty"`
	// Held is why the cluster does not get the newest content yet.
	Held string `json:"held,omitempty"`
	// Suspended is why nothing is written for the placement there; empty if it is.
	Suspended string `json:"suspended,omitempty"`
	// Removing says that what it holds is being taken away.
	Removing bool `json:"removing,omitempty"`
	// Braked are objects whose deletion is held, and why, until a commit with
	// the trailer Gitfleet-Allow-Delete allows it.
	Braked []string `json:"braked,omitempty"`
	// DeletionErrors are objects that the cluster does not let gitfleet delete, and
	// why. The deletions are tried again.
	DeletionErrors []string `json:"deletionErrors,omitempty"`
	// Deleting counts those of which a commit has allowed it, and that are not
	// deleted yet.
	Deleting int `json:"deleting,omitempty"`
	// Lingering are objects that were deleted and are still there, because
	// something has to be finished first, with their finalizers; it is said where
	// that is the garbage collector's.
	Lingering []string `json:"lingering,omitempty"`
}

// Transitions are when the conditions of a placement, or of a placement on one
// cluster, last changed.
type Transitions struct {
	Key     api.PlacementKey
	Cluster string // empty for the placement itself
	To      map[string]ledger.Transition
}

// Build tells everything. What did not change since the Memo was last used is
// the same in both reports.
func Build(in Input) *Report {
	if in.Memo == nil {
		in.Memo = NewMemo()
	}
	in.Memo.begin(in.Ledger.Events())
	n := len(in.Plan.Placements)
	r := &Report{At: in.Now, Source: in.Source, Fleet: in.Ledger.Fleet(), Head: in.Head, Declared: in.Ledger.Declared(), plan: in.Plan, Details: make([]*Detail, 0, n), told: make([]*told, 0, n)}
	if n > 0 {
		r.Placements = make([]*api.ClusterResourcePlacement, 0, n)
	}
	if in.Head != nil {
		r.Source.Warnings = append(slices.Clip(in.Head.Warnings), in.Plan.Warnings...)
	}
	for _, c := range in.Plan.Members {
		r.Clusters = append(r.Clusters, in.Memo.cluster(c, in))
	}
	for _, p := range in.Plan.Placements {
		if p.Forget {
			continue // nothing is left of it, nowhere
		}
		t := in.Memo.placement(in, p)
		r.Details = append(r.Details, t.detail)
		r.Drifts = append(r.Drifts, t.drifts...)
		r.Transitions = append(r.Transitions, t.changed...)
		t.changed = nil // they are told once
		switch {
		case t.cluster != nil:
			r.Placements = append(r.Placements, t.cluster)
		case t.namespaced != nil:
			r.ResourcePlacements = append(r.ResourcePlacements, t.namespaced)
		}
		if t.mirror != nil {
			r.Statuses = append(r.Statuses, t.mirror)
		}
		r.told = append(r.told, t)
	}
	r.Suspensions = suspensions(in)
	r.Events = in.Memo.end(in)
	return r
}

// Remember writes down when conditions changed, and which events were told, so
// that a report after a restart goes on from there.
func (r *Report) Remember(l *ledger.Ledger) {
	for _, t := range r.Transitions {
		l.Transit(t.Key, t.Cluster, t.To)
	}
	l.Tell(r.Events)
}

func texts(ps hub.Problems) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Error())
	}
	return out
}

func detail(p *plan.Placement) *Detail {
	d := &Detail{
		Placement: p.Key.String(), Warnings: texts(p.Warnings), Internal: p.InternalError, Stopped: p.Rollout.Stopped,
		Proven: p.Record.Proven.Commit, Selected: len(p.Selection.Objects),
	}
	if p.Spec != nil {
		d.Origin = p.Spec.Origin.String()
	}
	updated := 0 // clusters that hold the newest content
	for _, c := range p.Clusters {
		e := ClusterDetail{Cluster: c.Binding.Cluster, Commit: c.Binding.Assigned.Commit, Failure: c.Failure, Held: c.Held, Suspended: c.Suspended, Removing: c.Binding.Removing}
		lag := p.Lag(c)
		e.Behind, e.BehindSince = lag.Commits, lag.Since
		if lag.Commits == 0 && !c.Binding.Unscheduled && !c.Binding.Removing {
			updated++
		}
		if seen := c.Seen(); seen != nil {
			for i := range seen.Exceptions {
				if seen.Exceptions[i].HasFailed() {
					e.FailedObjects++
				}
			}
			held, pending := c.HeldDeletions()
			if pending {
				e.Deleting, held = len(held), nil
			}
			for _, b := range held {
				e.Braked = append(e.Braked, b.ID.String()+": "+b.Why)
			}
			for _, f := range seen.DeletionErrors {
				e.DeletionErrors = append(e.DeletionErrors, f.ID.String()+": "+f.Message)
			}
			for _, id := range seen.Lingering {
				text := id.String()
				if i := slices.IndexFunc(seen.Finalizing, func(f ledger.Finalizing) bool { return f.ID == id }); i >= 0 {
					text += " (finalizers: " + seen.Finalizing[i].Finalizers + ")"
				}
				if slices.Contains(seen.Collecting, id) {
					text += " (until the garbage collector has deleted what was made of it)"
				}
				e.Lingering = append(e.Lingering, text)
			}
			ours := c.Foreign == ""
			e.Applied, e.Available, e.Objects = ours && seen.Applied(), ours && seen.Available(), seen.Total
			e.Progressing = ours && seen.Done && !e.Available && c.Failure == "" && seen.Failed() == nil
		}
		d.Clusters = append(d.Clusters, e)
	}
	d.Rollout = rolloutOf(p, updated)
	return d
}
