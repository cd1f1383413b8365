package server

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// A collector computes gauges from the newest report at each scrape. Values for each placement
// on each cluster are exported only as sums and maxima, so that the number of series grows with
// the placements plus the clusters, and not with their product. Only the leader exports them,
// so that sums over replicas count the fleet once and an alert fires once.
type collector struct {
	// report returns the newest report, and nil if there is nothing to export.
	report func() *status.Report
	now    func() time.Time
}

// statesHelp describes the values of AssignedState.
const statesHelp = "available, progressing (also while being updated), waiting (for its update), failed (will not become available by itself) or removing, which has a series only while it is not 0. An unreachable cluster keeps the state last seen; gitfleet status shows it as unreachable."

// gauges are all gauges of the report.
var gauges []*series.Desc

// describe returns a new gauge, and adds it to gauges.
func describe(name, help string, labels ...string) *series.Desc {
	d := series.NewGaugeDesc(name, help, labels...)
	gauges = append(gauges, d)
	return d
}

var (
	commitInfo     = describe("gitfleet_commit_info", "Always 1, by the first 12 digits of a commit's hash and its state: inForce, or refused for a newest commit with errors.", "commit", "state")
	commitSince    = describe("gitfleet_commit_in_force_timestamp_seconds", "Unix time at which the commit in force came into force.")
	commitObjects  = describe("gitfleet_commit_objects", "Objects of the commit in force that placements may select.")
	commitProblems = describe("gitfleet_commit_problems", "Problems by severity: error for those that refuse the newest commit, warning for those of the commit in force.", "severity")
	gitLastSuccess = describe("gitfleet_git_last_success_timestamp_seconds", "Unix time of the last successful poll of the remote.")
	gitFailures    = describe("gitfleet_git_consecutive_failures", "Polls of the remote that failed since the last success.")

	memberUp         = describe("gitfleet_member_up", "1 if the member cluster is reachable, ready and not claimed by another fleet or member, otherwise 0.", "cluster")
	memberPlacements = describe("gitfleet_member_placements", "Placements on a member cluster by state: "+statesHelp, "cluster", "state")
	memberLag        = describe("gitfleet_member_lag_commits", "Commits that a member cluster is behind, counting those that changed its content; the maximum over its placements.", "cluster")
	memberLagSeconds = describe("gitfleet_member_lag_seconds", "How long a member cluster has been behind the commit in force, the maximum over its placements; 0 if it is up to date. Content that waits for a freeze or a RolloutWindow does not count before the maxAge of the window.", "cluster")

	memberProblems = describe("gitfleet_member_problems", "Always 1, by what keeps gitfleet from using a member cluster in full: duplicate (another member is the same cluster), foreign (another fleet has claimed it), credentials (new ones do not work) or permissions (some are missing); a member without problems has no series.", "cluster", "problem")

	placementClusters   = describe("gitfleet_placement_clusters", "Clusters of a placement by state: "+statesHelp, "placement", "state")
	placementProblems   = describe("gitfleet_placement_problems", "Always 1, by what keeps a placement from being scheduled as it asks for: unfulfilled (too few clusters fit its policy), selectors (its resource selectors are invalid) or internal (an internal error); a placement without problems has no series.", "placement", "problem")
	placementSelected   = describe("gitfleet_placement_selected_objects", "Objects that a placement selects.", "placement")
	placementFailed     = describe("gitfleet_placement_failed_objects", "Objects of a placement that were refused or will not become available by themselves, summed over its clusters.", "placement")
	placementHeld       = describe("gitfleet_placement_held_deletions", "Deletions of a placement that wait for a commit that allows them, summed over its clusters.", "placement")
	placementOverdue    = describe("gitfleet_placement_overdue_clusters", "Clusters of a placement for which new content has waited for a RolloutWindow longer than its maxAge; absent if there are none.", "placement")
	placementLag        = describe("gitfleet_placement_lag_commits", "Commits that a placement is behind, counting those that changed its content; the maximum over its clusters.", "placement")
	placementLagSeconds = describe("gitfleet_placement_lag_seconds", "How long a placement has been behind the commit in force, the maximum over its clusters; 0 if all are up to date. Content that waits for a freeze or a RolloutWindow does not count before the maxAge of the window.", "placement")
	drifted             = describe("gitfleet_drifted_objects", "Objects on clusters that differ from Git, by placement and state: standing, held, added, contested, ignored, altered or foreign; a state without objects has no series.", "placement", "state")

	rolloutStopped        = describe("gitfleet_rollout_stopped", "1 if a failed update has stopped the rollout of a placement, otherwise 0.", "placement")
	rolloutStop           = describe("gitfleet_rollout_stop_info", "Always 1, by the first cluster whose failed update stops the rollout of a placement, and the first 12 digits of the hash of the commit that it was updated to; a rollout that is not stopped has no series.", "placement", "cluster", "commit")
	updateRun             = describe("gitfleet_rollout_update_run_info", "Always 1, by the staged update run of a placement that is in force or, if none is, the newest, the stage whose turn it is, and the reason of the condition that says where the run is; placements without runs have no series.", "placement", "run", "stage", "reason")
	approvalRequested     = describe("gitfleet_rollout_approval_requested_timestamp_seconds", "Unix time since which a staged update run waits for an approval of a stage; absent if it waits for none.", "placement", "run", "stage")
	gateInfo              = describe("gitfleet_rollout_gate_info", "Always 1, by the gates of the stage whose turn it is in a staged update run, once its clusters are updated, and the state of each: waiting, unknown (it cannot be evaluated), passed or failed.", "placement", "run", "stage", "gate", "state")
	gateDue               = describe("gitfleet_rollout_gate_due_timestamp_seconds", "Unix time at which a gate could have passed at the earliest, for a Job when its timeout ends; absent once it has passed or failed, and before the clusters of its stage are updated.", "placement", "run", "stage", "gate")
	rolloutStarted        = describe("gitfleet_rollout_started_timestamp_seconds", "Unix time at which the rollout in progress began; absent if no rollout is in progress.", "placement")
	rolloutUpdated        = describe("gitfleet_rollout_updated_clusters", "Clusters that hold the newest content of a placement; absent if no rollout is in progress.", "placement")
	rolloutUnavailable    = describe("gitfleet_rollout_unavailable_clusters", "Clusters of a placement that are not available and count against maxUnavailable; absent if no rollout is in progress.", "placement")
	rolloutMaxUnavailable = describe("gitfleet_rollout_max_unavailable_clusters", "Clusters of a placement that may be unavailable at once; absent if no rollout is in progress.", "placement")

	suspensions    = describe("gitfleet_suspensions", "Suspensions in force, by what is suspended: cluster, placement, object, content, which is a freeze, or scheduling, which is the drain of a cluster.", "of")
	suspendedSince = describe("gitfleet_suspended_since_timestamp_seconds", "Unix time at which the oldest suspension in force began, by whether it expires: true or false; absent if there is none.", "expires")
	// outstanding has KubeFleet's name, for existing alerts.
	outstanding = describe("fleet_workload_placement_status_last_timestamp_seconds",
		"Unix time of the last evaluation of a placement, by the next condition to be met; conditionType is Completed if all are.",
		"namespace", "name", "generation", "conditionType", "status", "reason")
)

// Describe implements series.Source.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range gauges {
		ch <- d.Prometheus()
	}
}

// AddTo implements series.Source.
func (c *collector) AddTo(to *series.Scrape) {
	r := c.report()
	if r == nil {
		return
	}
	p := &scrape{report: r, now: c.now(), to: to}
	p.git()
	p.source()
	sums := p.placements()
	p.outstanding()
	p.members(sums)
	all := suspended(r.Suspensions)
	for _, of := range slices.Sorted(maps.Keys(all)) {
		p.gauge(suspensions, float64(all[of]), of)
	}
	p.oldestSuspensions()
}

// A scrape exports the gauges of one report.
type scrape struct {
	report *status.Report
	now    time.Time
	to     *series.Scrape
}

func (p *scrape) gauge(d *series.Desc, v float64, labels ...string) { p.to.Add(d, v, labels...) }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// since exports a time, unless it is zero.
func (p *scrape) since(d *series.Desc, t time.Time, labels ...string) {
	if !t.IsZero() {
		p.gauge(d, seconds(t), labels...)
	}
}

// shortHash is the number of digits of a commit hash in a label.
const shortHash = 12

func short(hash string) string { return hash[:min(len(hash), shortHash)] }

// git exports the state of this replica's polls of the remote.
func (p *scrape) git() {
	p.gauge(gitFailures, float64(p.report.Source.Git.Failures))
	p.since(gitLastSuccess, p.report.Source.Git.LastSuccess)
}

// source exports the commit in force and the newest one.
func (p *scrape) source() {
	s := &p.report.Source
	failed := len(s.Problems.Errors())
	if s.LoadError != "" {
		failed++
	}
	if s.InForce.Hash != "" {
		p.gauge(commitInfo, 1, short(s.InForce.Hash), "inForce")
	}
	if s.Newest.Hash != s.InForce.Hash && failed > 0 {
		p.gauge(commitInfo, 1, short(s.Newest.Hash), "refused")
	}
	p.since(commitSince, s.Since)
	if p.report.InForce != nil {
		p.gauge(commitObjects, float64(len(p.report.InForce.Objects)))
	}
	p.gauge(commitProblems, float64(failed), "error")
	p.gauge(commitProblems, float64(len(s.Warnings)), "warning")
}

// A summary is over all clusters of one placement, or all placements on one cluster. It has the
// number in each of status.AssignedStates, and the greatest lag.
type summary struct {
	counts  [len(status.AssignedStates)]int
	commits int
	since   time.Time
}

func (s *summary) add(c *status.Summary) {
	if i := slices.Index(status.AssignedStates[:], c.State); i >= 0 {
		s.counts[i]++
	}
	s.commits = max(s.commits, c.Behind)
	waitsInTime := c.Deferred && !c.Overdue
	if !waitsInTime && !c.BehindSince.IsZero() && (s.since.IsZero() || c.BehindSince.Before(s.since)) {
		s.since = c.BehindSince
	}
}

// summary exports the states and the lag of one placement, or of one cluster.
func (p *scrape) summary(s *summary, state, commits, seconds *series.Desc, name string) {
	for i, n := range s.counts {
		if s := status.AssignedStates[i]; s != status.StateRemoving || n > 0 {
			p.gauge(state, float64(n), name, string(s))
		}
	}
	p.gauge(commits, float64(s.commits), name)
	behind := 0.0
	if !s.since.IsZero() {
		behind = max(0, p.now.Sub(s.since).Seconds())
	}
	p.gauge(seconds, behind, name)
}

// placements exports all placements. It returns a summary for each cluster of the fleet, so that the entries, of which there may be
// a hundred thousand, are read once.
func (p *scrape) placements() (members map[string]*summary) {
	members = make(map[string]*summary, len(p.report.Clusters))
	for _, m := range p.report.Clusters {
		members[m.Name] = &summary{}
	}
	differ := countDrifts(p.report.Drifts)
	for i, d := range p.report.Details {
		sum, failed, held, overdue, stoppedAt := &summary{}, 0, 0, 0, ""
		for c := range p.report.Summaries(i) {
			sum.add(&c)
			if on := members[c.Cluster]; on != nil { // the cluster may have left the fleet
				on.add(&c)
			}
			failed += c.FailedObjects
			held += c.BlockedDeletions
			if c.Overdue {
				overdue++
			}
			if c.Cluster == d.Stopped {
				stoppedAt = c.Commit
			}
		}
		p.summary(sum, placementClusters, placementLag, placementLagSeconds, d.Placement)
		p.gauge(placementSelected, float64(d.Selected), d.Placement)
		p.gauge(placementFailed, float64(failed), d.Placement)
		p.gauge(placementHeld, float64(held), d.Placement)
		if overdue > 0 {
			p.gauge(placementOverdue, float64(overdue), d.Placement)
		}
		for _, state := range slices.Sorted(maps.Keys(differ[d.Placement])) {
			p.gauge(drifted, float64(differ[d.Placement][state]), d.Placement, string(state))
		}
		p.rollout(d, stoppedAt)
	}
	return members
}

// rollout exports the rollout of a placement. stoppedAt is the commit of the content of the cluster that stops it.
func (p *scrape) rollout(d *status.Detail, stoppedAt string) {
	stopped := 0.0
	if d.Stopped != "" {
		stopped = 1
		p.gauge(rolloutStop, 1, d.Placement, d.Stopped, short(stoppedAt))
	}
	p.gauge(rolloutStopped, stopped, d.Placement)
	if run := d.UpdateRun; run != nil {
		stage := ""
		if i := slices.IndexFunc(run.Stages, func(s updaterun.Stage) bool { return s.Finished.IsZero() }); i >= 0 {
			stage = run.Stages[i].Name
			for _, g := range run.Stages[i].Gates {
				p.gauge(gateInfo, 1, d.Placement, run.Name, stage, g.Name, string(g.State))
				p.since(gateDue, g.Due, d.Placement, run.Name, stage, g.Name)
			}
		}
		p.gauge(updateRun, 1, d.Placement, run.Name, stage, run.Reason)
		p.since(approvalRequested, run.ApprovalSince, d.Placement, run.Name, run.ApprovalStage)
	}
	if d.Rollout == nil || !d.Rollout.Finished.IsZero() {
		return
	}
	p.since(rolloutStarted, d.Rollout.Started, d.Placement)
	p.gauge(rolloutUpdated, float64(d.Rollout.Updated), d.Placement)
	p.gauge(rolloutUnavailable, float64(d.Rollout.Unavailable), d.Placement)
	p.gauge(rolloutMaxUnavailable, float64(d.Rollout.MaxUnavailable), d.Placement)
}

// outstanding exports the next condition that each placement has to reach, and what keeps it from
// being scheduled.
func (p *scrape) outstanding() {
	export := func(m *metav1.ObjectMeta, spec *api.PlacementSpec, s *api.PlacementStatus) {
		if m.DeletionTimestamp != nil {
			return // the placement is being deleted
		}
		for _, c := range s.Conditions {
			if problem := schedulingProblems[c.Reason]; problem != "" && c.Status == metav1.ConditionFalse {
				p.gauge(placementProblems, 1, api.PlacementKey{Namespace: m.Namespace, Name: m.Name}.String(), problem)
			}
		}
		o := status.OutstandingOf(m, spec, s.Conditions)
		p.gauge(outstanding, float64(p.report.At.Unix()), m.Namespace, m.Name, strconv.FormatInt(m.Generation, 10), o.Type, o.Status, o.Reason)
	}
	for c := range p.report.EachClusterResourcePlacement() {
		export(&c.ObjectMeta, &c.Spec, &c.Status)
	}
	for c := range p.report.EachResourcePlacement() {
		export(&c.ObjectMeta, &c.Spec, &c.Status)
	}
}

func (p *scrape) members(sums map[string]*summary) {
	for _, m := range p.report.Clusters {
		up := 0.0
		if status.IsHealthy(m) && !status.IsClaimedByOthers(m) {
			up = 1
		}
		for _, c := range m.Status.Conditions {
			if problem := problems[c.Reason]; problem != "" && c.Status == metav1.ConditionFalse {
				p.gauge(memberProblems, 1, m.Name, problem)
			}
		}
		p.gauge(memberUp, up, m.Name)
		p.summary(sums[m.Name], memberPlacements, memberLag, memberLagSeconds, m.Name)
	}
}

// problems are the values of the label problem by the reason of the condition that says it.
var problems = map[string]string{
	api.MemberClusterDuplicate: "duplicate", api.MemberClusterForeign: "foreign", api.CredentialsUnusable: "credentials", api.PermissionsMissing: "permissions",
}

// schedulingProblems are the values of the label problem by the reason of the condition Scheduled.
var schedulingProblems = map[string]string{
	api.SchedulingPolicyUnfulfilled: "unfulfilled", api.InvalidResourceSelectors: "selectors", api.SchedulingFailed: "internal",
}

// countDrifts counts the objects that differ from Git, by placement and state. It leaves out
// repaired and ended drift.
func countDrifts(drifts []status.Drift) map[string]map[api.DriftState]int {
	all := map[string]map[api.DriftState]int{}
	for i := range drifts {
		d := &drifts[i]
		if !d.State.Present() {
			continue
		}
		if all[d.Placement] == nil {
			all[d.Placement] = map[api.DriftState]int{}
		}
		all[d.Placement][d.State]++
	}
	return all
}

// oldestSuspensions exports when the oldest suspension with an end and the oldest without one began.
func (p *scrape) oldestSuspensions() {
	oldest := map[bool]time.Time{}
	for i := range p.report.Suspensions {
		s := &p.report.Suspensions[i]
		expires := !s.Until.IsZero()
		if first, found := oldest[expires]; !found || s.Since.Before(first) {
			oldest[expires] = s.Since
		}
	}
	for _, expires := range []bool{false, true} {
		p.since(suspendedSince, oldest[expires], strconv.FormatBool(expires))
	}
}

// suspended counts suspensions by kind of subject.
func suspended(all []status.Suspension) map[string]int {
	n := map[string]int{"cluster": 0, "placement": 0, "object": 0, "content": 0, "scheduling": 0}
	for i := range all {
		switch {
		case all[i].Effect == "freeze":
			n["content"]++
		case all[i].Effect == "cordon":
			n["scheduling"]++
		case all[i].Object != api.ID{}:
			n["object"]++
		case all[i].Placement != "":
			n["placement"]++
		default:
			n["cluster"]++
		}
	}
	return n
}
