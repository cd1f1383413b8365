// Package overview summarizes a report as an overview of the fleet, which the daemon serves and
// commands print.
package overview

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// schemaVersion identifies the schema of an overview in JSON. Fields of a version are never
// removed; new ones may be added.
const schemaVersion = "gitfleet.dev/status/v1"

// An Overview is a summary of the state of the fleet.
type Overview struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	Source     Source    `json:"source"`
	Fleet      Fleet     `json:"fleet"`
	// Forge lists what cannot be done on the forge, since when and why.
	Forge   []string `json:"forge,omitempty"`
	Commit  *Commit  `json:"commit"`            // in force; null before there is one
	Refused *Refused `json:"refused,omitempty"` // the newest commit, if it is refused
	Waiting *Waiting `json:"waiting,omitempty"` // the newest commit, before it is in force or refused
	// Warnings are about the commit in force and no placement, with file:line first.
	Warnings   []string    `json:"warnings,omitempty"`
	Placements []Placement `json:"placements"`
	Members    Members     `json:"members"`
	Drifts     []Drift     `json:"drifts"`
	// BlockedDeletions are those that wait for a commit that allows them. Here and in a placement the JSON field keeps the
	// name that the schema promises.
	BlockedDeletions []Deletions `json:"heldDeletions"`
	// FailedDeletions are those that member clusters have refused. They are retried.
	FailedDeletions []Deletions `json:"failedDeletions,omitempty"`
	// Lingering are objects that were deleted and still exist.
	Lingering []Deletions `json:"lingering,omitempty"`
	// Suspended are the suspensions in force.
	Suspended []status.Suspension `json:"suspended"`

	Age time.Duration `json:"-"` // age of the report when it was requested
}

// A Source is the state of reading the repository.
type Source struct {
	URL         string    `json:"url"`
	Ref         string    `json:"ref"`
	LastPoll    time.Time `json:"lastPoll,omitzero"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	Failures    int       `json:"failures"`
	Error       string    `json:"error,omitempty"`
	// Refused says that the repository can be read, and that Error is why its newest commit is not accepted.
	Refused bool `json:"refused,omitempty"`
	// NextPoll is the time of the next attempt to read the repository after a failed one; zero if the last one succeeded.
	NextPoll time.Time `json:"nextPoll,omitzero"`
	// Steps are what is being done now with what the repository has sent.
	Steps []gitsource.Step `json:"steps,omitempty"`
}

// A Fleet identifies this fleet on its members.
type Fleet struct {
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
}

// A Commit is one commit.
type Commit struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Signer  string    `json:"signer,omitempty"` // verified; empty if signatures are not asked for
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
	// Since is when it came into force.
	Since time.Time `json:"since,omitzero"`
}

// A Refused is a commit that is refused, with the reasons, which begin with file:line.
type Refused struct {
	Commit
	Problems []string `json:"problems"`
}

// A Waiting is a commit that is being read, or waits until remote bases and charts are fetched.
type Waiting struct {
	Commit
	Fetches []string `json:"fetches,omitempty"`
}

// A Placement is the state of one placement.
type Placement struct {
	Name   string `json:"name"` // crp/NAME or rp/NAMESPACE/NAME
	Origin string `json:"origin,omitempty"`
	// Warnings are about parts of its spec that are probably mistakes, with file:line first.
	Warnings []string `json:"warnings,omitempty"`
	// Fulfilled says that it is as Git asks for: applied and available on every cluster that its policy
	// asks for. NeedsAttention says that it is not, for another reason than that it is in progress.
	Fulfilled      bool `json:"fulfilled"`
	NeedsAttention bool `json:"needsAttention,omitempty"`
	// Clusters is the number of its clusters by state. Missing is the number of clusters that its
	// policy asks for and that could not be selected.
	Clusters map[State]int `json:"clusters"`
	Missing  int           `json:"missing,omitempty"`
	// Commits are the hashes of the commits assigned to the clusters, applied or not.
	Commits []string `json:"commits"`
	// ScheduleProblem is the reason why it is not scheduled as specified. Absent are members that its policy asks
	// for and that cannot be selected now.
	ScheduleProblem string   `json:"trouble,omitempty"`
	Absent          []Reason `json:"absent,omitempty"`
	// Waiting are clusters whose update has not begun, Failed those where something was refused
	// or will not become available, and Progressing those where it may become available.
	Waiting     []Reason `json:"waiting,omitempty"`
	Failed      []Reason `json:"failed,omitempty"`
	Progressing []Reason `json:"progressing,omitempty"`
	// BlockedDeletions are clusters with deletions that wait for a commit that allows them.
	BlockedDeletions []Reason `json:"held,omitempty"`
	// Stopped is the cluster because of which the rollout has stopped.
	Stopped string `json:"stopped,omitempty"`
	// Proven is the last commit whose content was available everywhere.
	Proven string `json:"proven,omitempty"`
	// UpdateRun says where its staged update run is; empty if there is none, or if it has finished.
	UpdateRun string `json:"updateRun,omitempty"`
}

// A Reason is a reason, with the clusters for which it is given.
type Reason struct {
	Clusters []string `json:"clusters"`
	Reason   string   `json:"reason"`
}

// Members is the state of the member clusters.
type Members struct {
	Total    int      `json:"total"`
	Ready    int      `json:"ready"`
	NotReady []Member `json:"notReady"`
	// Outdated are the members whose replaced credentials cannot be used, since when and why. Those
	// from before are kept, so that they may be ready as well.
	Outdated []Member `json:"outdated,omitempty"`
}

// A Member is a member that is not ready, with the time since when and the reason.
type Member struct {
	Name   string    `json:"name"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason"`
	// State is unreachable, forbidden if permissions are missing, or foreign if another fleet or
	// another member has claimed the cluster.
	State State `json:"state"`
}

// A Drift is an object that has drifted.
type Drift struct {
	Placement string         `json:"placement"`
	Cluster   string         `json:"cluster"`
	Object    string         `json:"object"`
	State     api.DriftState `json:"state"`
	By        []string       `json:"by,omitempty"`
	Since     time.Time      `json:"since"`
	// Message says what is done about it, such as the pull request that it is offered as.
	Message string `json:"message,omitempty"`
	// Undecided says that it stays until a user decides about it.
	Undecided bool `json:"undecided,omitempty"`
}

// A Deletions is a group of deletions that are blocked, have failed, or are not finished.
type Deletions struct {
	Placement string   `json:"placement"`
	Cluster   string   `json:"cluster"`
	Objects   []string `json:"objects"`
}

// New derives an overview from a report.
func New(r *status.Report) *Overview {
	git := r.Source.Git
	o := &Overview{
		APIVersion: schemaVersion, At: r.At,
		Source:     Source{URL: git.URL, Ref: git.Ref, LastPoll: git.LastPoll, LastSuccess: git.LastSuccess, Failures: git.Failures, Error: git.Error, Refused: git.Refused},
		Fleet:      Fleet{r.Fleet.Name, r.Fleet.ID},
		Placements: []Placement{}, Drifts: []Drift{}, BlockedDeletions: []Deletions{},
		Suspended: append([]status.Suspension{}, r.Suspensions...),
	}
	if git.Failures > 0 && !git.Refused {
		o.Source.NextPoll = git.NextPoll
	}
	if r.Source.InForce.Hash != "" {
		c := commitOverview(r.Source.InForce)
		c.Since = r.Source.Since
		o.Commit = &c
		for _, w := range r.Source.Warnings {
			o.Warnings = append(o.Warnings, w.Error())
		}
	}
	if newest := r.Source.Newest; newest.Hash != r.Source.InForce.Hash {
		if refused := NewRefused(r.Source); len(refused.Problems) > 0 {
			o.Refused = refused
		} else if newest.Hash != "" {
			o.Waiting = &Waiting{commitOverview(newest), r.Source.Fetches}
		}
	}
	members, judge := status.MemberStatesOf(r), status.NewJudge(r, status.ToBeAvailable)
	for d, s := range r.Each() {
		p := NewPlacement(d, s, members)
		missing, _ := judge.Placement(d, s)
		p.Fulfilled, p.NeedsAttention = missing.Fulfilled(), missing.NeedsAttention()
		o.Placements = append(o.Placements, p)
		for _, c := range d.Clusters {
			if len(c.DeletionErrors) > 0 {
				o.FailedDeletions = append(o.FailedDeletions, Deletions{d.Placement, c.Cluster, c.DeletionErrors})
			}
			if len(c.Lingering) > 0 {
				o.Lingering = append(o.Lingering, Deletions{d.Placement, c.Cluster, c.Lingering})
			}
			if len(c.BlockedDeletions) > 0 {
				o.BlockedDeletions = append(o.BlockedDeletions, Deletions{d.Placement, c.Cluster, c.BlockedDeletions})
			}
		}
	}
	o.Members = memberOverview(r)
	for i := range r.Drifts {
		if d := &r.Drifts[i]; d.State.Present() && d.State != api.DriftIgnored {
			o.Drifts = append(o.Drifts, NewDrift(d))
		}
	}
	return o
}

func commitOverview(c hub.Commit) Commit {
	return Commit{Hash: c.Hash, Author: c.Author, Signer: c.Signer, Subject: c.Subject, Time: c.Time}
}

// NewRefused describes the newest commit and why it is refused.
func NewRefused(s status.Source) *Refused {
	out := &Refused{Commit: commitOverview(s.Newest), Problems: []string{}}
	for _, p := range s.Problems {
		out.Problems = append(out.Problems, p.Marked())
	}
	if s.LoadError != "" {
		out.Problems = append(out.Problems, s.LoadError)
	}
	return out
}

// NewPlacement describes a placement. s is its status; nil if it was removed from the
// repository.
func NewPlacement(d *status.Detail, s *api.PlacementStatus, members status.MemberStates) Placement {
	out := Placement{Name: d.Placement, Origin: d.Origin, Warnings: d.Warnings, Clusters: map[State]int{}, Commits: []string{}, Stopped: d.Stopped, Proven: d.Proven, UpdateRun: updateRun(d)}
	on := status.PerCluster(s)
	if s != nil {
		for i := range s.PlacementStatuses {
			if s.PlacementStatuses[i].ClusterName == "" {
				out.Missing++
			}
		}
	}
	out.ScheduleProblem = status.ScheduleProblem(d, s)
	absent := 0
	for _, a := range d.Absent {
		out.Absent = AddReason(out.Absent, a.Cluster, a.Reason)
		if !slices.ContainsFunc(d.Clusters, func(c status.ClusterDetail) bool { return c.Cluster == a.Cluster }) { // not being evicted from it
			absent++
		}
	}
	out.Missing = max(out.Missing, absent)
	for i := range d.Clusters {
		c := &d.Clusters[i]
		at := status.StateOf(c, on[c.Cluster], members)
		out.Clusters[at]++
		if c.Commit != "" && !slices.Contains(out.Commits, c.Commit) {
			out.Commits = append(out.Commits, c.Commit)
		}
		switch at {
		case status.StateWaiting:
			out.Waiting = AddReason(out.Waiting, c.Cluster, c.Waits)
		case status.StateFailed:
			out.Failed = AddReason(out.Failed, c.Cluster, status.FailureOf(c, on[c.Cluster]))
		case status.StateDeletionsBlocked:
			out.BlockedDeletions = AddReason(out.BlockedDeletions, c.Cluster, BlockedText(d.Placement, c.BlockedDeletions))
		case status.StateProgressing:
			if c.Cause != "" {
				out.Progressing = AddReason(out.Progressing, c.Cluster, c.Cause)
			}
		}
	}
	return out
}

// AddReason adds a cluster to the clusters with the same reason.
func AddReason(all []Reason, cluster, reason string) []Reason {
	if i := slices.IndexFunc(all, func(r Reason) bool { return r.Reason == reason }); i >= 0 {
		all[i].Clusters = append(all[i].Clusters, cluster)
		return all
	}
	return append(all, Reason{[]string{cluster}, reason})
}

func memberOverview(r *status.Report) Members {
	out := Members{Total: len(r.Clusters), NotReady: []Member{}}
	for _, c := range r.Clusters {
		if cond := meta.FindStatusCondition(c.Status.Conditions, api.CredentialsRenewed); cond != nil && cond.Status == metav1.ConditionFalse {
			out.Outdated = append(out.Outdated, Member{Name: c.Name, Since: cond.LastTransitionTime.Time, Reason: cond.Message, State: status.MemberStateOf(c)})
		}
		if m := NewMember(c); m.State != status.StateAvailable {
			out.NotReady = append(out.NotReady, m)
			continue
		}
		out.Ready++
	}
	return out
}

// NewMember describes a member: its state, and since when and why it is not ready. The state of a
// member that is ready is available.
func NewMember(c *api.MemberCluster) Member {
	m := Member{Name: c.Name, Reason: "it has not answered yet", State: status.MemberStateOf(c)}
	if denied := status.MissingPermissions(c); denied != nil {
		m.State, m.Since, m.Reason = status.StateForbidden, denied.LastTransitionTime.Time, denied.Message
		return m
	}
	conditions := slices.Clone(c.Status.Conditions)
	for _, a := range c.Status.AgentStatus {
		conditions = append(slices.Clone(a.Conditions), conditions...)
	}
	if status.IsClaimedByOthers(c) {
		m.State = status.StateForeign
	}
	if m.State == status.StateAvailable {
		return m
	}
	if c := status.FirstUntrue(conditions); c != nil {
		m.Since, m.Reason = c.LastTransitionTime.Time, c.Message
	}
	return m
}

// NewDrift describes a drift.
func NewDrift(d *status.Drift) Drift {
	out := Drift{
		Placement: d.Placement, Cluster: d.Cluster, Object: d.ID().String(), State: d.State, Since: d.Since, Message: d.Message,
		Undecided: d.State.AwaitsDecision(d.Rule),
	}
	for _, a := range d.By {
		out.By = append(out.By, a.String())
	}
	if d.State == api.DriftAltered {
		out.By = []string{"the API server or an admission webhook, at each apply"}
	}
	return out
}

// NeedsAttention reports whether the newest commit is refused, the repository cannot be read, a
// placement is not fulfilled for another reason than that it is in progress, or a member cannot be used, or will not be
// usable once its credentials from before expire.
func (o *Overview) NeedsAttention() bool {
	troubled := slices.ContainsFunc(o.Placements, func(p Placement) bool { return p.NeedsAttention || p.Stopped != "" })
	return o.Refused != nil || o.Source.Failures > 0 || troubled ||
		len(o.Members.NotReady)+len(o.BlockedDeletions)+len(o.FailedDeletions)+len(o.Members.Outdated) > 0
}

// well reports whether a placement is available on all its clusters.
func (p *Placement) well() bool {
	return p.Missing == 0 && p.ScheduleProblem == "" && p.Stopped == "" && p.Total() == p.Clusters[status.StateAvailable]
}

// Total returns the number of its clusters.
func (p *Placement) Total() int {
	all := 0
	for _, n := range p.Clusters {
		all += n
	}
	return all
}

// count returns the number of available clusters, and of all.
func (p *Placement) count() string {
	return fmt.Sprintf("%d/%d", p.Clusters[status.StateAvailable], p.Total()+p.Missing)
}

// state returns the state of the placement as a whole, with its style.
func (p *Placement) state() (string, output.Style) {
	n := p.Clusters
	switch {
	case p.Stopped != "":
		return "stopped", output.Red
	case n[status.StateFailed] > 0:
		return "failed", output.Red
	case p.ScheduleProblem != "":
		return "not scheduled", output.Red
	case n[status.StateDeletionsBlocked] > 0:
		return "deletions blocked", output.Yellow
	case n[status.StateForbidden] > 0:
		return "forbidden", output.Red
	case n[status.StateUnreachable] > 0:
		return "unreachable", output.Yellow
	case n[status.StateWaiting] > 0 && n[status.StateRolling]+n[status.StateProgressing] == 0:
		return "waiting", output.Cyan // no update is in progress
	case n[status.StateWaiting] > 0:
		return "rolling out", output.Cyan
	case n[status.StateRolling] > 0:
		return "applying", output.Cyan
	case n[status.StateProgressing] > 0:
		return "progressing", output.Cyan
	case n[status.StateRemoving] > 0:
		return "removing", output.Dim
	case p.Missing > 0:
		return "incomplete", output.Yellow
	case p.Total() == 0:
		return "nowhere", output.Dim
	}
	return "available", output.Green
}

// Sentence describes on how many clusters a placement is available, and why not on the others.
func (p *Placement) Sentence() string {
	text := fmt.Sprintf("%s: %s of its clusters available", p.Name, p.count())
	for _, of := range []struct {
		State
		reasons []Reason
	}{{status.StateFailed, p.Failed}, {status.StateProgressing, p.Progressing}, {status.StateWaiting, p.Waiting}} {
		if len(of.reasons) > 0 {
			first := of.reasons[0]
			text += fmt.Sprintf("; %s: %s: %s", of.State, forecast.FewOf(first.Clusters), first.Reason)
			break
		}
	}
	if p.ScheduleProblem != "" {
		text += "; " + p.ScheduleProblem
	}
	for _, a := range p.Absent {
		text += "; " + AbsentText(a)
	}
	return text
}

// Unexplained reports whether Sentence has no reason.
func (p *Placement) Unexplained() bool {
	return len(p.Failed)+len(p.Progressing)+len(p.Waiting)+len(p.Absent) == 0 && p.ScheduleProblem == ""
}

// AbsentText says which members a policy asks for and cannot select.
func AbsentText(a Reason) string { return "not on " + forecast.FewOf(a.Clusters) + ": " + a.Reason }

// BlockedText describes which deletions of a placement on a cluster are blocked, why, and how to
// allow them.
func BlockedText(placement string, blocked []string) string {
	first := blocked[0]
	if n := len(blocked) - 1; n > 0 {
		first += fmt.Sprintf(" (and %d more)", n)
	}
	verb := "are"
	if len(blocked) == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s blocked: %s; %s", output.Count(len(blocked), "deletion"), verb, first, conditions.DeletionAdvice(placement))
}

// Path is the path at which the daemon serves the overview.
const Path = "/overview"

// Serve serves the overview of the newest report. git returns the state of the repository, since a
// poll without a new commit causes no report; if it is nil, that in the report is used. forgeProblems lists what cannot be
// done on the forge; it may be nil.
func Serve(srv *server.Server, git func() (gitsource.Status, []gitsource.Step), forgeProblems func() []string) {
	srv.MountReport("GET "+Path, func(r *status.Report) any {
		o := New(r)
		if git != nil {
			now, steps := git()
			o.Source.LastPoll, o.Source.LastSuccess, o.Source.Steps = now.LastPoll, now.LastSuccess, steps
			if o.Source.Failures > 0 && !o.Source.Refused {
				o.Source.NextPoll = now.NextPoll
			}
		}
		if forgeProblems != nil {
			o.Forge = forgeProblems()
		}
		return o
	})
}
